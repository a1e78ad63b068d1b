"""The page of the HTTP API at `/docs`: its OpenAPI document as HTML, without any script."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Response
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from gateway.http.routes.documents import HTML, document_policy, document_style

PATH = "/docs"
_SCHEMAS = "#/components/schemas/"
Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field of a schema, or a parameter; `types` are names, those of schemas with a link."""

    name: str
    types: tuple[tuple[str, bool], ...]
    description: str
    is_required: bool = False
    place: str = ""


@dataclass(frozen=True, slots=True)
class OperationPart:
    """An operation; `answers` have status, description and the types of their content."""

    method: str
    path: str
    summary: str
    description: str
    parameters: tuple[FieldRow, ...]
    body: tuple[tuple[str, bool], ...]
    answers: tuple[tuple[str, str, tuple[tuple[str, bool], ...]], ...]


def api_page_router(describe: Callable[[], Node]) -> APIRouter:
    """Return the route; `describe` returns the OpenAPI document."""
    router = APIRouter(include_in_schema=False)

    @router.get(PATH)
    async def read_api_page() -> Response:
        """Show every operation and schema of the API."""
        headers = {"Content-Security-Policy": document_policy().replace("; sandbox", "")}
        page = write_page(describe())
        return Response(page, headers=headers, media_type=f"{HTML}; charset=utf-8")

    return router


def write_page(document: Node) -> bytes:
    """Return the page of an OpenAPI document."""
    grouped: dict[str, list[OperationPart]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = (operation.get("tags") or ["other"])[0]
            grouped.setdefault(tag, []).append(_read_operation(method, path, operation))
    schemas = {
        name: (str(schema.get("description") or ""), tuple(_list_fields(schema)))
        for name, schema in sorted(document.get("components", {}).get("schemas", {}).items())
    }
    style = Markup(document_style())  # noqa: S704 # our own file
    page = _template().render(info=document["info"], groups=grouped, schemas=schemas, style=style)
    return page.encode()


def _read_operation(method: str, path: str, operation: Node) -> OperationPart:
    return OperationPart(
        method.upper(),
        path,
        str(operation.get("summary") or ""),
        str(operation.get("description") or ""),
        tuple(
            FieldRow(
                one["name"],
                _list_types(one.get("schema", {})),
                str(one.get("description") or ""),
                bool(one.get("required")),
                one["in"],
            )
            for one in operation.get("parameters", ())
        ),
        _list_content(operation.get("requestBody", {})),
        tuple(
            (status, str(answer.get("description") or ""), _list_content(answer))
            for status, answer in sorted(operation["responses"].items())
        ),
    )


def _list_content(body: Node) -> tuple[tuple[str, bool], ...]:
    found = [one.get("schema", {}) for one in body.get("content", {}).values()]
    return tuple(dict.fromkeys(pair for schema in found for pair in _list_types(schema)))


def _list_fields(schema: Node) -> Iterator[FieldRow]:
    required = schema.get("required", ())
    for name, one in schema.get("properties", {}).items():
        described = str(one.get("description") or "")
        yield FieldRow(name, _list_types(one), described, name in required)


def _list_types(schema: Node) -> tuple[tuple[str, bool], ...]:
    """Return the names of the types that a value may have, and whether each is a schema."""
    if "$ref" in schema:
        return ((str(schema["$ref"]).removeprefix(_SCHEMAS), True),)
    for kind in ("anyOf", "oneOf", "allOf"):
        if kind in schema:
            parts: Sequence[Node] = schema[kind]
            return tuple(dict.fromkeys(pair for one in parts for pair in _list_types(one)))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return tuple((repr(value), False) for value in values)
    if schema.get("type") == "array":
        inner = _list_types(schema.get("items", {}))
        return (("list of", False), *inner)
    return ((str(schema.get("type") or "any"), False),)


@cache
def _template() -> Template:
    source = files(__package__).joinpath("api_page.html").read_text()
    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).from_string(source)
