import json
from pathlib import PurePosixPath
from typing import Any

import pytest

from knowledge.documents import formats
from knowledge.documents.errors import NoDocumentError, WrongFormatError
from knowledge.documents.location import locate
from knowledge.documents.page import Page

DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Messages", "version": "2.4", "description": "Sends *texts*."},
    "servers": [{"url": "https://api.example.com/v2"}],
    "components": {
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        "parameters": {"id": {"name": "id", "in": "path", "required": True,
                              "schema": {"type": "string", "format": "uuid"}}},
        "schemas": {
            "Message": {
                "type": "object",
                "required": ["to"],
                "properties": {
                    "to": {"type": "string", "description": "The number, as `+49…`."},
                    "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Part"}},
                },
            },
            "Part": {"type": "object", "properties": {"text": {"type": "string", "maxLength": 160},
                     "next": {"$ref": "#/components/schemas/Part"}}},
        },
    },
    "paths": {
        "/messages/{id}": {
            "parameters": [{"$ref": "#/components/parameters/id"}],
            "delete": {"summary": "Delete a message", "tags": ["Messages"], "deprecated": True,
                       "responses": {"404": {"description": "No such message."}}},
        },
        "/messages": {
            "post": {
                "summary": "Send",
                "requestBody": {"content": {"application/json": {
                    "schema": {"$ref": "#/components/schemas/Message"},
                    "example": {"to": "+4930"}}}},
                "responses": {"201": {"description": "Sent."}},
            }
        },
    },
}  # fmt: skip


def pages_of(data: bytes, name: str = "api.json") -> list[Page]:
    path = PurePosixPath(name)
    place = locate(path, ())
    return [formats.read(item, path, place) for item in formats.split(path, data)]


def test_an_operation_is_a_page_whose_path_is_kept_byte_for_byte() -> None:
    overview, delete, post = pages_of(json.dumps(DOCUMENT).encode())

    assert delete.title == "DELETE /messages/{id}"
    assert delete.name == "api.json/DELETE/messages/{id}"
    assert delete.crumbs == ("Messages", "Messages", "DELETE /messages/{id}")
    assert "`DELETE /messages/{id}`: Delete a message" in delete.content
    assert "`DELETE /messages/{id}` is deprecated." in delete.content
    assert "| `id` | path | string (uuid) | required |  |" in delete.content
    assert "Response `404`: No such message." in delete.content
    assert post.title == "POST /messages"
    assert overview.title == "Messages"


def test_fields_of_a_body_have_types_and_needs_also_inside_others() -> None:
    post = pages_of(json.dumps(DOCUMENT).encode())[2]

    assert "| `to` | string | required | The number, as `+49…`. |" in post.content
    assert "| `parts` | array of object | optional |  |" in post.content
    assert "| `parts[].text` | string, at most 160 characters | optional |  |" in post.content
    assert '"to": "+4930"' in post.content


def test_the_overview_lists_servers_security_and_operations() -> None:
    overview = pages_of(json.dumps(DOCUMENT).encode())[0]

    assert "Servers: `https://api.example.com/v2`" in overview.content
    assert "Security key: apiKey, header, X-Key" in overview.content
    assert "| `POST /messages` | Send |" in overview.content


def test_yaml_is_read_as_json_is() -> None:
    data = b"""
swagger: "2.0"
info: {title: Old, version: 2026-01-01}
host: example.com
basePath: /v1
paths:
  /users/{name}:
    get:
      summary: Find
      parameters:
        - {name: name, in: path, required: true, type: string}
      responses:
        200: {description: Found., schema: {type: object, properties: {name: {type: string}}}}
"""

    overview, operation = pages_of(data, "api.yaml")

    assert "Version: 2026-01-01" in overview.content
    assert operation.title == "GET /users/{name}"
    assert "| `name` | path | string | required |  |" in operation.content
    assert "Response `200`: Found." in operation.content


def test_examples_patterns_and_numbers_are_kept_as_they_are_written() -> None:
    yaml = b"""
openapi: 3.0.3
paths:
  /rooms:
    get:
      parameters:
        - {name: lang, in: query, deprecated: true, example: no, schema: {enum: [de, no]}}
        - {name: at, in: query, schema: {type: string, pattern: '^\\d+$', default: 22:30}}
        - {name: fee, in: query, schema: {type: number, example: 12.50, maximum: 0250}}
        - {name: age, in: query, schema: {type: integer, minimum: 5, exclusiveMinimum: true,
            exclusiveMaximum: false, nullable: true}}
        - {name: key, in: query, schema: {oneOf: [{type: string}, {type: integer}], const: x}}
"""
    json_text = b"""{"openapi": "3.0.3", "paths": {"/a": {"get": {"requestBody":
        {"content": {"a/b": {"example": {"paid": 1.50, "ok": true}}}}}}}}"""

    rows, example = pages_of(yaml, "a.yaml")[1].content, pages_of(json_text)[1].content

    assert "| any, one of `de`, `no`, for example `no`, deprecated | optional |" in rows
    assert "| string, pattern `^\\d+$`, default `22:30` | optional |" in rows
    assert "| number, at most 0250, for example `12.50` | optional |" in rows
    assert "| integer, more than 5, or null | optional |" in rows
    assert "| string or integer, always `x` | optional |" in rows
    assert '"paid": 1.50,\n  "ok": true' in example


def test_schemas_that_no_operation_uses_are_a_page() -> None:
    event = {"type": "object", "properties": {"seat": {"type": "string"}}}
    schemas = {**DOCUMENT["components"]["schemas"], "Event": event}
    document = {**DOCUMENT, "components": {**DOCUMENT["components"], "schemas": schemas}}

    page = pages_of(json.dumps(document).encode())[-1]

    assert [block.text for block in page.blocks if block.level] == ["Schemas", "Event"]
    assert "| `seat` | string | optional |  |" in page.content


def test_data_that_describe_no_interface_are_no_document() -> None:
    with pytest.raises(NoDocumentError, match="no published articles"):
        pages_of(b'{"name": "openapi"}')
    with pytest.raises(NoDocumentError, match="or API description"):
        pages_of(b"name: openapi", "a.yaml")
    with pytest.raises(NoDocumentError, match="or API description"):
        formats.refuse_other_data(b'{"name": "package"}')


@pytest.mark.parametrize(
    ("data", "name", "found"),
    [
        (b"[" * 100_000 + b'"openapi"', "a.json", "nested too deeply"),
        (b'{"openapi": ', "a.json", "not valid JSON"),
        (b"openapi: [", "a.yaml", "not valid YAML"),
    ],
)
def test_damaged_or_hostile_data_are_one_clear_line(data: bytes, name: str, found: str) -> None:
    with pytest.raises(WrongFormatError, match=found):
        pages_of(data, name)


def test_a_tag_of_another_program_is_ignored_and_never_executed() -> None:
    text = b"openapi: 3.1.0\ninfo: {title: !!python/name:os.getcwd Desk, version: !ENV [a, b]}\n"

    (page,) = pages_of(text, "a.yaml")

    assert page.title == "Desk"


def read_body(schema: object, **media: object) -> Page:
    content = {"application/json": {"schema": schema, **media}}
    operation = {"requestBody": {"content": content}}
    document = {"openapi": "3.1.0", "paths": {"/a": {"post": operation}}}
    return pages_of(json.dumps(document).encode())[1]


def nest(depth: int) -> dict[str, object]:
    return {"properties": {f"level{depth}": nest(depth - 1) if depth else {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "left_out"),
    [
        (
            {"properties": {f"f{n}": {"type": "string"} for n in range(203)}},
            "3 fields left out: only the first 200 fields of a schema are shown",
        ),
        (nest(6), "1 field left out: fields are shown at most 5 levels deep"),
        (
            {"properties": {"a": {"$ref": "b.yaml"}, "c": {"$ref": "#/x"}}},
            "2 references left out (#/x, b.yaml): the target is not in the file",
        ),
    ],
)
def test_fields_beyond_the_limits_are_counted(schema: object, left_out: str) -> None:
    assert [str(part) for part in read_body(schema).left_out] == [left_out]


def test_an_example_that_is_too_long_is_cut_and_counted() -> None:
    page = read_body({"type": "string"}, example="x" * 30_000)

    assert "x…" in page.content
    assert [part.what for part in page.left_out] == ["long example"]


def test_a_schema_that_contains_itself_is_shown_once_and_nothing_of_it_is_missing() -> None:
    tree = {"properties": {"name": {"type": "string"}, "children": {"items": {"$ref": "#/$/T"}}}}
    operation = {"requestBody": {"content": {"a/b": {"schema": {"$ref": "#/$/T"}}}}}
    document = {"openapi": "3.1.0", "$": {"T": tree}, "paths": {"/a": {"post": operation}}}

    page = pages_of(json.dumps(document).encode())[1]

    assert (page.content.count("`name`"), page.left_out) == (1, ())


def test_fields_of_inherited_schemas_maps_and_nested_arrays_are_shown() -> None:
    amount = {"properties": {"amount": {"type": "number"}}}
    base = {"allOf": [{"properties": {"id": {"type": "string"}}}]}
    schema = {
        "allOf": [base],
        "properties": {
            "prices": {"type": "object", "additionalProperties": amount},
            "grid": {"type": "array", "items": {"type": "array", "items": amount}},
        },
    }

    content = read_body(schema).content

    assert all(f"`{name}`" in content for name in ("id", "prices.*.amount", "grid[][].amount"))


def test_headers_examples_of_swagger_2_and_webhooks_are_shown_and_callbacks_counted() -> None:
    response = {
        "description": "Sent.",
        "headers": {"X-Left": {"type": "integer", "description": "Messages left."}},
        "examples": {"application/json": {"id": "m-1"}},
    }
    operation = {"responses": {"200": response}, "callbacks": {"sent": {}}}
    document = {
        "swagger": "2.0",
        "paths": {"/send": {"post": operation}},
        "webhooks": {"delivered": {"post": {"summary": "A message arrived."}}},
    }

    _, send, webhook = pages_of(json.dumps(document).encode())

    assert "| `X-Left` | header | integer | optional | Messages left. |" in send.content
    assert '"id": "m-1"' in send.content
    assert [part.what for part in send.left_out] == ["callback"]
    assert (webhook.title, webhook.description) == ("POST webhook delivered", "A message arrived.")


def test_aliases_that_multiply_are_cut() -> None:
    lines = ["x0: &x0 [lol, lol]"]
    lines += [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]" for n in range(1, 12)]
    operation = "paths: {/a: {get: {requestBody: {content: {text/plain: {example: *x11}}}}}}"
    data = "\n".join(("openapi: 3.1.0", *lines, operation)).encode()

    page = pages_of(data, "a.yaml")[1]

    assert len(page.content) < 30_000
