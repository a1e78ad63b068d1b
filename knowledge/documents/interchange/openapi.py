"""Reads descriptions of HTTP APIs (OpenAPI 3, Swagger 2): every operation becomes a page.

Method and path are kept byte for byte. Only references within the document are followed.

YAML aliases share one value, so readers must also limit the text that they generate.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import chain, islice
from typing import Any, TypeGuard

import yaml

from knowledge.documents.decoding import decode
from knowledge.documents.errors import TooLargeError, WrongFormatError
from knowledge.documents.markup import markdown
from knowledge.documents.page import Block, BlockKind, LeftOut, LeftOutCounts, Page, make_code
from knowledge.documents.tables import write_rows

Value = Mapping[str, Any]
Scalar = str | int | float | Decimal
"""A value without parts; numbers with a decimal point are decimals, as they are written."""

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_MOST_OPERATIONS = 20_000
_LONGEST_EXAMPLE = 20_000
_NUMBER = "\ue000"
"""Marks a number that the JSON encoder can write only as text."""


def split_operations(
    document: Value, source: str, warnings: tuple[str, ...] = ()
) -> Iterator[Page]:
    """Yield the pages of a description: an overview with the warnings, then each operation."""
    references = References(document)
    webhooks = (
        (method, f"webhook {name}", webhook)
        for method, name, webhook in list_operations(document, references, "webhooks")
    )
    listed = chain(list_operations(document, references), webhooks)
    operations = list(islice(listed, _MOST_OPERATIONS + 1))
    if len(operations) > _MOST_OPERATIONS:
        raise TooLargeError(f"an API can have at most {_MOST_OPERATIONS} operations")
    for page in chain(
        [replace(_write_overview(document, operations, source), warnings=warnings)],
        (_write_operation(document, references, *each, source) for each in operations),
        _write_other_schemas(document, references, source),
    ):
        yield replace(page, left_out=references.take_left_out())


def is_description(value: object) -> TypeGuard[Value]:
    """Return whether a parsed file is an API description."""
    return isinstance(value, dict) and ("openapi" in value or "swagger" in value)


def list_operations(
    document: Value, references: "References", key: str = "paths"
) -> Iterator[tuple[str, str, Value]]:
    """Yield method, path and description of each operation, with the parameters of its path."""
    for path, methods in _mapping(document, key).items():
        methods = references.resolve(methods)
        for method in _METHODS:
            operation = methods.get(method)
            if isinstance(operation, dict):
                parameters = [*_list(methods, "parameters"), *_list(operation, "parameters")]
                yield method.upper(), str(path), {**operation, "parameters": parameters}


def _write_overview(
    document: Value, operations: Sequence[tuple[str, str, Value]], source: str
) -> Page:
    information = _mapping(document, "info")
    title = _text(information, "title") or "API"
    blocks = [Block(BlockKind.HEADING, title, 1, None), *_describe(information)]
    if version := _text(information, "version"):
        blocks.append(Block(BlockKind.TEXT, f"Version: {version}"))
    servers = [_text(server, "url") for server in _list(document, "servers")]
    if host := _text(document, "host"):
        servers.append(f"{host}{_text(document, 'basePath')}")
    if shown := ", ".join(f"`{server}`" for server in servers if server):
        blocks.append(Block(BlockKind.TEXT, f"Servers: {shown}"))
    blocks += _write_security(document)
    rows = [
        (f"`{method} {path}`", _text(operation, "summary"))
        for method, path, operation in operations
    ]
    if rows:
        blocks.append(Block(BlockKind.HEADING, "Operations", 2, "operations"))
        blocks.append(Block(BlockKind.TABLE, write_rows(("Operation", "Summary"), rows)))
    return Page(source, title, tuple(blocks), name="overview", crumbs=(title,))


def _write_security(document: Value) -> Iterator[Block]:
    schemes = _mapping(_mapping(document, "components"), "securitySchemes")
    schemes = schemes or _mapping(document, "securityDefinitions")
    for name, scheme in schemes.items():
        parts = (_text(scheme, key) for key in ("type", "scheme", "in", "name", "description"))
        yield Block(BlockKind.TEXT, f"Security {name}: {', '.join(filter(None, parts))}")


class References:
    """Resolves `$ref` within one document; external and circular references resolve to an empty
    mapping, and are counted as left out.
    """

    def __init__(self, document: Value) -> None:
        self._document = document
        self._lost: set[str] = set()
        self.left_out = LeftOutCounts()
        self.found: set[str] = set()
        """The targets of all references that were followed."""

    def take_left_out(self) -> tuple[LeftOut, ...]:
        """Return the content that was left out since the last call."""
        for target in sorted(self._lost):
            self.left_out.add("reference", "the target is not in the file", name=target)
        taken = self.left_out.list()
        self._lost, self.left_out = set(), LeftOutCounts()
        return taken

    def resolve(self, value: object) -> Value:
        """Return the mapping that a value is or refers to, or an empty one."""
        for _ in range(_DEEPEST_REFERENCE):
            if not isinstance(value, dict):
                return {}
            target = value.get("$ref")
            if not isinstance(target, str):
                return value
            self.found.add(target)
            value = self._find(target)
            if value is None:
                self._lost.add(target)
        return {}

    def _find(self, target: str) -> object:
        start, *parts = target.split("/")
        value: object = self._document if start == "#" else None
        for part in parts:
            key = part.replace("~1", "/").replace("~0", "~")
            value = value.get(key) if isinstance(value, dict) else None
        return value


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
    blocks += _write_responses(references, operation)
    callbacks = len(_mapping(operation, "callbacks"))
    references.left_out.add("callback", "callbacks of operations are not read", callbacks)
    interface = _text(_mapping(document, "info"), "title")
    tags = tuple(tag for tag in operation.get("tags") or () if isinstance(tag, str))
    return Page(
        source,
        name,
        tuple(blocks),
        name=f"{method}{path}",
        crumbs=tuple(filter(None, (interface, *tags[:1], name))),
        description=summary,
        keywords=tags,
    )


def _write_parameters(references: References, operation: Value) -> Iterator[Block]:
    """Yield the parameters and the body, which is one of the parameters in Swagger 2."""
    parameters = [references.resolve(each) for each in _list(operation, "parameters")]
    rows = [_write_parameter(references, each) for each in parameters if each.get("in") != "body"]
    if rows:
        yield Block(BlockKind.HEADING, "Parameters", 2, "parameters")
        yield Block(BlockKind.TABLE, write_rows(_PARAMETER, rows))
    bodies = [each for each in parameters if each.get("in") == "body"]
    for body in (*bodies, references.resolve(operation.get("requestBody"))):
        if body:
            yield Block(BlockKind.HEADING, "Request body", 2, "request-body")
            yield from _describe(body)
            yield from _write_content(references, body)


def _write_parameter(references: References, parameter: Value) -> tuple[str, ...]:
    stated = {key: parameter[key] for key in ("deprecated", "example") if key in parameter}
    media = next(iter(_mapping(parameter, "content").values()), parameter)
    schema = {**references.resolve(_mapping(media, "schema") or parameter), **stated}
    return (
        f"`{_text(parameter, 'name')}`",
        _text(parameter, "in"),
        name_type(references, schema),
        "required" if parameter.get("required") is True else "optional",
        _text(parameter, "description") or _text(schema, "description"),
    )


def _write_content(references: References, holder: Value) -> Iterator[Block]:
    """Yield the content of a body or a response, whose media type Swagger 2 does not state."""
    is_content = "schema" in holder or "examples" in holder
    contents = {**_mapping(holder, "content"), **({"": holder} if is_content else {})}
    for kind, media in contents.items():
        if kind:
            yield Block(BlockKind.TEXT, f"Content type: `{kind}`")
        yield from _write_schema(references, _mapping(media, "schema"))
        examples = list(_mapping(media, "examples").values())
        if kind:
            examples = [references.resolve(example).get("value") for example in examples]
        for example in (media.get("example"), *examples):
            if example is not None:
                yield _write_example(references, example)


def _write_schema(references: References, schema: object) -> Iterator[Block]:
    resolved = references.resolve(schema)
    if not resolved:
        return
    if rows := list(list_fields(references, resolved)):
        header = ("Field", "Type", "Required", "Description")
        yield Block(BlockKind.TABLE, write_rows(header, rows))
    else:
        yield Block(BlockKind.TEXT, f"Type: {name_type(references, resolved)}")
    if "example" in resolved:
        yield _write_example(references, resolved["example"])


def _write_other_schemas(document: Value, references: References, source: str) -> Iterator[Page]:
    """Yield a page with the schemas to which no operation refers, such as those of events."""
    blocks = [Block(BlockKind.HEADING, "Schemas", 1, None)]
    holders = {"components/schemas": _mapping(document, "components"), "definitions": document}
    for place, holder in holders.items():
        for name, schema in _mapping(holder, place.rpartition("/")[2]).items():
            if f"#/{place}/{name}" not in references.found:
                blocks.append(Block(BlockKind.HEADING, str(name), 2, str(name)))
                blocks += (*_describe(schema), *_write_schema(references, schema))
    if len(blocks) > 1:
        yield Page(source, "Schemas", tuple(blocks), name="schemas", crumbs=("Schemas",))


def _write_example(references: References, value: object) -> Block:
    shown = _write_scalar(value)
    if len(shown) > _LONGEST_EXAMPLE:
        reason = f"only the first {_LONGEST_EXAMPLE} characters are shown"
        references.left_out.add("long example", reason)
        shown = f"{shown[:_LONGEST_EXAMPLE]}…"
    return make_code(shown, "json")


def _write_json(value: object) -> str:
    """Return a value as JSON, of which no more than one piece exceeds the length of an example,
    because aliases can make it endless.
    """
    written = ""
    encoder = json.JSONEncoder(
        ensure_ascii=False, indent=2, default=lambda value: f"{_NUMBER}{value}{_NUMBER}"
    )
    for piece in encoder.iterencode(value):
        written += piece.removeprefix(f'"{_NUMBER}').removesuffix(f'{_NUMBER}"')
        if len(written) > _LONGEST_EXAMPLE:
            break
    return written


def _write_responses(references: References, operation: Value) -> Iterator[Block]:
    if responses := _mapping(operation, "responses"):
        yield Block(BlockKind.HEADING, "Responses", 2, "responses")
    for status, response in responses.items():
        resolved = references.resolve(response)
        description = _text(resolved, "description")
        yield Block(BlockKind.TEXT, f"Response `{status}`: {description}".rstrip(": "))
        headers = [
            _write_parameter(
                references, {**references.resolve(header), "name": name, "in": "header"}
            )
            for name, header in _mapping(resolved, "headers").items()
        ]
        if headers:
            yield Block(BlockKind.TABLE, write_rows(("Header", *_PARAMETER[1:]), headers))
        links = len(_mapping(resolved, "links"))
        references.left_out.add("link", "links between operations are not read", links)
        yield from _write_content(references, resolved)


def _write_scalar(value: object) -> str:
    return value if isinstance(value, str) else _write_json(value)


def _describe(holder: Value) -> tuple[Block, ...]:
    """Return a description, parsed as Markdown, with its headings below those of the page."""
    blocks = markdown.blocks_of(_text(holder, "description"))
    return tuple(
        replace(block, level=min(block.level + 2, 6)) if block.level else block for block in blocks
    )


def _mapping(holder: object, key: str) -> Value:
    value = holder.get(key) if isinstance(holder, dict) else None
    return value if isinstance(value, dict) else {}


def _list(holder: object, key: str) -> list[Value]:
    value = holder.get(key) if isinstance(holder, dict) else None
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(holder: object, key: str) -> str:
    value = holder.get(key) if isinstance(holder, dict) else None
    return str(value).strip() if isinstance(value, Scalar) else ""


_DEEPEST_REFERENCE = 16
_DEEPEST_FIELD = 5
_MOST_FIELDS = 200
_MOST_VALUES = 50
_TOO_MANY = f"only the first {_MOST_FIELDS} fields of a schema are shown"
_TOO_DEEP = f"fields are shown at most {_DEEPEST_FIELD} levels deep"
_COMBINED = ("allOf", "oneOf", "anyOf")
_INNER = {"items": "[]", "additionalProperties": ".*"}
"""The schemas of the values in an array or a map, by the sign after the name of the field."""
_PARAMETER = ("Parameter", "In", "Type", "Required", "Description")


_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "pattern `{}`",
    "multipleOf": "a multiple of {}",
    "const": "always `{}`",
    "default": "default `{}`",
    "example": "for example `{}`",
}
_FLAGS = {
    "nullable": "or null", "readOnly": "only in responses", "writeOnly": "only in requests",
    "deprecated": "deprecated",
}  # fmt: skip


def name_type(references: References, schema: Value) -> str:
    """Return the type of a schema in words: `array of string, one of a, b; default a`."""
    items = references.resolve(schema.get("items"))
    named = _name_kind(references, schema, items)
    if isinstance(schema.get("format"), str):
        named += f" ({schema['format']})"
    values = schema.get("enum") or items.get("enum")
    if isinstance(values, list) and values:
        shown = (f"`{_write_scalar(value)}`" for value in values[:_MOST_VALUES])
        more = f" and {len(values) - _MOST_VALUES} more" if len(values) > _MOST_VALUES else ""
        named += f", one of {', '.join(shown)}{more}"
    return ", ".join((named, *_list_limits(schema)))


def list_fields(references: References, schema: Value) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, type, whether required, and description of each field of an object, including
    nested ones.
    """
    left = _MOST_FIELDS
    waiting: list[tuple[str, Value, tuple[int, ...]]] = [("", schema, (id(schema),))]
    while waiting:
        prefix, current, outer = waiting.pop()
        for name, field, is_required in _own_fields(references, current):
            left -= 1
            if left < 0:
                references.left_out.add("field", _TOO_MANY)
                continue
            yield (
                f"`{prefix}{name}`",
                name_type(references, field),
                "required" if is_required else "optional",
                _text(field, "description"),
            )
            inner, signs = _find_values(references, field)
            if id(inner) in outer:
                continue
            if len(outer) < _DEEPEST_FIELD:
                waiting.append((f"{prefix}{name}{signs}.", inner, (*outer, id(inner))))
            else:
                count = sum(1 for _ in _own_fields(references, inner))
                references.left_out.add("field", _TOO_DEEP, count)


def _name_kind(references: References, schema: Value, items: Value) -> str:
    stated = schema.get("type")
    if not stated:
        parts = (*_list(schema, "oneOf"), *_list(schema, "anyOf"))
        stated = [_text(references.resolve(part), "type") or "any" for part in parts]
    kinds = stated if isinstance(stated, list) else [stated]
    named = " or ".join(dict.fromkeys(map(str, kinds)))
    if named == "array" and items:
        return f"array of {items.get('type') or 'object'}"
    return named or ("object" if schema.get("properties") or schema.get("allOf") else "any")


def _list_limits(schema: Value) -> Iterator[str]:
    limits = dict(schema)
    # A flag up to OpenAPI 3.0, a limit since 3.1.
    for limit, exclusive in ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"):
        if isinstance(limits.get(exclusive), bool):
            limits[exclusive] = limits.pop(limit, None) if limits[exclusive] else None
    for key, words in _LIMITS.items():
        if isinstance(limits.get(key), Scalar):
            yield words.format(_write_scalar(limits[key]))
    yield from (words for key, words in _FLAGS.items() if schema.get(key) is True)


def _find_values(references: References, schema: Value) -> tuple[Value, str]:
    """Return the schema of the values in arrays and maps, and the signs of these."""
    signs = ""
    for _ in range(_DEEPEST_FIELD):
        for key, sign in _INNER.items():
            if values := references.resolve(schema.get(key)):
                schema, signs = values, f"{signs}{sign}"
    return schema, signs


def _own_fields(references: References, schema: Value) -> Iterator[tuple[str, Value, bool]]:
    items = references.resolve(schema.get("items"))
    whole = [items if schema.get("type") == "array" else schema]
    known = {id(whole[0])}
    for part in whole:
        for inner in (each for key in _COMBINED for each in _list(part, key)):
            resolved = references.resolve(inner)
            if id(resolved) not in known:
                known.add(id(resolved))
                whole.append(resolved)
        required = part.get("required")
        names = required if isinstance(required, list) else []
        for name, field in _mapping(part, "properties").items():
            yield str(name), references.resolve(field), name in names


_MOST_BYTES = 16 * 1024 * 1024


class _Loader(yaml.CSafeLoader):
    """A safe loader in C for YAML 1.2, in which dates, times, `no` and `0042` are text."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern in (
    ("null", r"null|Null|NULL|~|"),
    ("bool", r"true|True|TRUE|false|False|FALSE"),
    ("int", r"-?(?:0|[1-9]\d*)"),
    ("decimal", r"-?(?:0|[1-9]\d*)(?:\.\d*)?(?:[eE][+-]?\d{1,4})?"),
    ("merge", r"<<"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), None
    )
_Loader.add_constructor("tag:yaml.org,2002:decimal", lambda _, node: Decimal(str(node.value)))


def _ignore_tag(loader: yaml.CSafeLoader, _suffix: str, node: yaml.Node) -> object:
    """Construct a value with an application-specific tag, such as `!ENV`, as if it had no tag."""
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return str(node.value)


_Loader.add_multi_constructor("", _ignore_tag)


def parse_structured(data: bytes, *, is_json: bool) -> tuple[Any, tuple[str, ...]]:
    """Return the value of a JSON or YAML text, and warnings; raise a `ReadingError`."""
    if len(data) > _MOST_BYTES and not is_json:
        raise TooLargeError(f"a YAML file can have at most {_MOST_BYTES} bytes, found {len(data)}")
    text, warnings = decode(data)
    kind = "JSON" if is_json else "YAML"
    try:
        # Not with orjson: it crashes where a limit of memory ends, instead of an error.
        value = json.loads(text, parse_float=Decimal) if is_json else yaml.load(text, _Loader)  # noqa: S506 - safe
    except RecursionError as error:
        raise WrongFormatError(f"the {kind} is nested too deeply") from error
    except (ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())[:200]
        raise WrongFormatError(f"the file is not valid {kind}: {reason}") from error
    return value, warnings
