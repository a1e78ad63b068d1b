"""Reads descriptions of HTTP interfaces (OpenAPI 3, Swagger 2): every operation is a page.

Method and path are kept byte for byte. References are followed inside the document only.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from knowledge.documents.errors import NoDocumentError, TooLargeError
from knowledge.documents.interchange.openapi_schema import References, list_fields, name_type
from knowledge.documents.interchange.structured import parse_structured
from knowledge.documents.markup import markdown
from knowledge.documents.page import Block, BlockKind, Page
from knowledge.documents.tables import write_rows

Value = Mapping[str, Any]

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_MOST_OPERATIONS = 20_000
_LONGEST_EXAMPLE = 20_000


def split_operations(data: bytes, source: str, *, is_json: bool) -> Iterator[Page]:
    """Yield the pages of a description: an overview, then each operation.

    Raises `NoDocumentError` for data that are no description of an interface.
    """
    document, warnings = parse_structured(data, is_json=is_json)
    if not isinstance(document, dict) or not ("openapi" in document or "swagger" in document):
        raise NoDocumentError("it holds data and is no description of an interface (OpenAPI)")
    references = References(document)
    yield replace(_write_overview(document, source), warnings=warnings)
    for count, (method, path, operation) in enumerate(list_operations(document)):
        if count == _MOST_OPERATIONS:
            raise TooLargeError(f"an interface may have {_MOST_OPERATIONS} operations")
        yield _write_operation(document, references, method, path, operation, source)


def list_operations(document: Value) -> Iterator[tuple[str, str, Value]]:
    """Yield method, path and description of each operation, with the parameters of its path."""
    for path, methods in _mapping(document, "paths").items():
        methods = References(document).resolve(methods)
        for method in _METHODS:
            operation = methods.get(method)
            if isinstance(operation, dict):
                shared = methods.get("parameters")
                own = operation.get("parameters")
                parameters = [*_sequence(shared), *_sequence(own)]
                yield method.upper(), str(path), {**operation, "parameters": parameters}


def _write_overview(document: Value, source: str) -> Page:
    information = _mapping(document, "info")
    title = _text(information, "title") or "API"
    blocks = [Block(BlockKind.HEADING, title, 1, None), *_describe(information)]
    if version := _text(information, "version"):
        blocks.append(Block(BlockKind.TEXT, f"Version: {version}"))
    servers = [_text(server, "url") for server in _sequence(document.get("servers"))]
    host = _text(document, "host")
    servers += [f"{host}{_text(document, 'basePath')}"] if host else []
    if servers := [server for server in servers if server]:
        blocks.append(Block(BlockKind.TEXT, f"Servers: {', '.join(f'`{url}`' for url in servers)}"))
    blocks += _write_security(document)
    rows = [
        (f"`{method} {path}`", _text(operation, "summary"))
        for method, path, operation in list_operations(document)
    ]
    if rows:
        blocks.append(Block(BlockKind.HEADING, "Operations", 2, "operations"))
        blocks.append(Block(BlockKind.TABLE, write_rows(("Operation", "Summary"), rows)))
    return Page(source, title, tuple(blocks), name="overview", crumbs=(title,))


def _write_security(document: Value) -> Iterator[Block]:
    schemes = _mapping(_mapping(document, "components"), "securitySchemes")
    schemes = schemes or _mapping(document, "securityDefinitions")
    for name, scheme in schemes.items():
        if isinstance(scheme, dict):
            parts = (_text(scheme, key) for key in ("type", "scheme", "in", "name", "description"))
            yield Block(BlockKind.TEXT, f"Security {name}: {', '.join(filter(None, parts))}")


def _write_operation(
    document: Value, references: References, method: str, path: str, operation: Value, source: str
) -> Page:
    name = f"{method} {path}"
    summary = _text(operation, "summary")
    blocks: list[Block] = [
        Block(BlockKind.HEADING, name, 1, _text(operation, "operationId") or None),
        Block(BlockKind.TEXT, f"`{name}`{f': {summary}' if summary else ''}"),
        *_describe(operation),
    ]
    if operation.get("deprecated") is True:
        blocks.append(Block(BlockKind.TEXT, f"`{name}` is deprecated."))
    blocks += _write_parameters(references, operation)
    blocks += _write_body(references, operation)
    blocks += _write_responses(references, operation)
    interface = _text(_mapping(document, "info"), "title")
    tags = tuple(tag for tag in operation.get("tags") or () if isinstance(tag, str))
    page = Page(source, name, tuple(blocks), description=summary, keywords=tags)
    crumbs = tuple(filter(None, (interface, *tags[:1], name)))
    return replace(page, name=f"{method}{path}", crumbs=crumbs)


def _write_parameters(references: References, operation: Value) -> Iterator[Block]:
    rows: list[tuple[str, ...]] = []
    body: Value | None = None
    for parameter in map(references.resolve, _sequence(operation.get("parameters"))):
        if parameter.get("in") == "body":
            body = parameter
            continue
        schema = references.resolve(parameter.get("schema") or parameter)
        rows.append(
            (
                f"`{_text(parameter, 'name')}`",
                _text(parameter, "in"),
                name_type(references, schema),
                "required" if parameter.get("required") is True else "optional",
                _text(parameter, "description") or _text(schema, "description"),
            )
        )
    if rows:
        yield Block(BlockKind.HEADING, "Parameters", 2, "parameters")
        header = ("Parameter", "In", "Type", "Required", "Description")
        yield Block(BlockKind.TABLE, write_rows(header, rows))
    if body is not None:
        yield Block(BlockKind.HEADING, "Request body", 2, "request-body")
        yield from _describe(body)
        yield from _write_schema(references, body.get("schema"))


def _write_body(references: References, operation: Value) -> Iterator[Block]:
    body = references.resolve(operation.get("requestBody"))
    if not body:
        return
    yield Block(BlockKind.HEADING, "Request body", 2, "request-body")
    yield from _describe(body)
    yield from _write_content(references, body)


def _write_content(references: References, holder: Value) -> Iterator[Block]:
    for kind, media in _mapping(holder, "content").items():
        if not isinstance(media, dict):
            continue
        yield Block(BlockKind.TEXT, f"Content type: `{kind}`")
        yield from _write_schema(references, media.get("schema"))
        examples = [media["example"]] if "example" in media else []
        named = _mapping(media, "examples").values()
        examples += [references.resolve(found).get("value") for found in named]
        yield from (_write_example(found) for found in examples if found is not None)


def _write_schema(references: References, schema: object) -> Iterator[Block]:
    resolved = references.resolve(schema)
    if not resolved:
        return
    rows = list(list_fields(references, resolved))
    if rows:
        header = ("Field", "Type", "Required", "Description")
        yield Block(BlockKind.TABLE, write_rows(header, rows))
    else:
        yield Block(BlockKind.TEXT, f"Type: {name_type(references, resolved)}")
    if "example" in resolved:
        yield _write_example(resolved["example"])


def _write_example(value: object) -> Block:
    shown = value[:_LONGEST_EXAMPLE] if isinstance(value, str) else _write_json(value)
    fence = "````" if "```" in shown else "```"
    return Block(BlockKind.CODE, f"{fence}json\n{shown}\n{fence}")


def _write_json(value: object) -> str:
    """Return a value as JSON; one that is too long, as aliases can make it, is cut."""
    written = ""
    for piece in json.JSONEncoder(ensure_ascii=False, indent=2, default=str).iterencode(value):
        written += piece
        if len(written) > _LONGEST_EXAMPLE:
            return f"{written[:_LONGEST_EXAMPLE]}…"
    return written


def _write_responses(references: References, operation: Value) -> Iterator[Block]:
    responses = _mapping(operation, "responses")
    if not responses:
        return
    yield Block(BlockKind.HEADING, "Responses", 2, "responses")
    for status, response in responses.items():
        resolved = references.resolve(response)
        description = _text(resolved, "description")
        yield Block(BlockKind.TEXT, f"Response `{status}`: {description}".rstrip(": "))
        yield from _write_content(references, resolved)
        if resolved.get("schema") is not None:
            yield from _write_schema(references, resolved["schema"])


def _describe(holder: Value) -> tuple[Block, ...]:
    """Return a description as the Markdown that it is, its headings below those of the page."""
    found = markdown.blocks_of(_text(holder, "description"))
    return tuple(
        replace(block, level=min(block.level + 2, 6)) if block.level else block for block in found
    )


def _mapping(holder: object, key: str) -> Value:
    value = holder.get(key) if isinstance(holder, dict) else None
    return value if isinstance(value, dict) else {}


def _sequence(value: object) -> list[Value]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(holder: object, key: str) -> str:
    value = holder.get(key) if isinstance(holder, dict) else None
    return str(value).strip() if isinstance(value, str | int | float) else ""
