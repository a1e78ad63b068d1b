"""Reads operations of an OpenAPI 3 document: what a caller gives, and where it goes in a request.

References are followed inside the document only. The servers that a document names are not used.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from knowledge.documents.errors import ReadingError
from knowledge.documents.interchange.openapi import References, list_operations, parse_structured
from tools.errors import InvalidSchema, InvalidToolSet
from tools.outside.foreign_schemas import ForeignSchema
from tools.outside.foreign_text import MOST_DESCRIPTION, clean

BODY = "body"
"""The argument that becomes the body of a request."""
_TEMPLATE = re.compile(r"\{([^{}/]{1,100})\}")
_JSON_TYPE = re.compile(r"application/(?:[\w.-]{1,60}\+)?json")
_SCHEMAS = "#/components/schemas/"
_MOST_SCHEMAS = 200
_DEEPEST = 30
_MOST_NAMED = 20

Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OperationParameter:
    """A parameter of the path or of the query; `explodes`: a list repeats it."""

    name: str
    place: str
    explodes: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation; `headers` are those that it needs, in lower case."""

    method: str
    path: str
    description: str
    parameters: tuple[OperationParameter, ...]
    headers: tuple[str, ...]
    schema: ForeignSchema


class OperationReader:
    """The operations of one document by their ids; raises `InvalidToolSet`."""

    def __init__(self, path: Path) -> None:
        self._source = path.name
        try:
            found, _ = parse_structured(path.read_bytes(), is_json=path.suffix == ".json")
        except (OSError, ReadingError) as error:
            raise self._fail(f"expected an OpenAPI document, found {error}") from error
        version = found.get("openapi") if isinstance(found, dict) else None
        if not isinstance(version, str) or not version.startswith("3."):
            raise self._fail(f"expected an OpenAPI document of version 3, found {version!r:.80}")
        self._document: dict[str, Any] = found
        self._is_3_0 = version.startswith("3.0")
        self._references = References(found)
        self._operations = {
            str(operation.get("operationId")): (method, path, operation)
            for method, path, operation in list_operations(found)
        }

    def read(self, operation_id: str) -> Operation:
        """Return an operation that the document describes."""
        if operation_id not in self._operations:
            known = ", ".join(sorted(self._operations)[:_MOST_NAMED])
            raise self._fail(f"expected one of {known}, found {operation_id!r:.80}")
        method, path, operation = self._operations[operation_id]
        try:
            return self._read(method, path, operation)
        except InvalidSchema as error:
            raise self._fail(f"{operation_id}: {error}") from error

    def _read(self, method: str, path: str, operation: Node) -> Operation:
        given = {
            (one.get("name"), one.get("in")): one
            for one in map(self._references.resolve, operation["parameters"])
        }
        properties: dict[str, JsonValue] = {}
        required: list[str] = []
        parameters = []
        for (name, place), one in given.items():
            if place not in ("path", "query"):
                continue
            schema = self._references.resolve(one.get("schema"))
            if not isinstance(name, str) or name in properties or name == BODY:
                raise InvalidSchema(f"expected parameters of different names, found {name!r:.80}")
            if "content" in one or schema.get("type") == "object":
                raise InvalidSchema(f"expected a value or a list, found an object in {name!r:.80}")
            properties[name] = {"description": one.get("description", ""), **schema}
            if one.get("required") is True:
                required.append(name)
            parameters.append(OperationParameter(name, place, one.get("explode") is not False))
        body = self._references.resolve(operation.get("requestBody"))
        if body:
            properties[BODY] = self._read_body(body)
            if body.get("required") is True:
                required.append(BODY)
        self._check_path(path, parameters)
        description = operation.get("description") or operation.get("summary") or f"{method} {path}"
        return Operation(
            method,
            path,
            clean(str(description), MOST_DESCRIPTION),
            tuple(parameters),
            tuple(_list_needed_headers(given)),
            ForeignSchema(self._make_schema(properties, required), is_trusted=True),
        )

    def _read_body(self, body: Node) -> JsonValue:
        content = body.get("content")
        for kind, media in content.items() if isinstance(content, dict) else ():
            if _JSON_TYPE.fullmatch(kind.partition(";")[0].strip()) and isinstance(media, dict):
                schema: JsonValue = media.get("schema", {})
                return schema
        raise InvalidSchema("expected a body in JSON, found none")

    def _check_path(self, path: str, parameters: Sequence[OperationParameter]) -> None:
        named = {one.name for one in parameters if one.place == "path"}
        if not path.startswith("/") or path.startswith("//") or {".", ".."} & {*path.split("/")}:
            raise InvalidSchema(f"expected a path below the address, found {path!r:.80}")
        if set(_TEMPLATE.findall(path)) != named:
            raise InvalidSchema(f"expected the parameters of the path {path!r:.80}, found {named}")

    def _make_schema(
        self, properties: dict[str, JsonValue], required: list[str]
    ) -> dict[str, JsonValue]:
        schema: dict[str, JsonValue] = {
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        }
        used = self._collect_schemas(schema)
        if used:
            schema["components"] = {"schemas": used}
        return _modernise(schema) if self._is_3_0 else schema

    def _collect_schemas(self, schema: JsonValue) -> dict[str, JsonValue]:
        """Return the named schemas that a schema refers to, also indirectly."""
        components = self._document.get("components")
        named = components.get("schemas") if isinstance(components, dict) else None
        known = named if isinstance(named, dict) else {}
        used: dict[str, JsonValue] = {}
        waiting: list[JsonValue] = [schema]
        while waiting:
            for name in _list_references(waiting.pop(), 0):
                if name in used or name not in known:
                    continue
                used[name] = known[name]
                waiting.append(known[name])
                if len(used) > _MOST_SCHEMAS:
                    raise InvalidSchema(f"expected at most {_MOST_SCHEMAS} schemas, found more")
        return used

    def _fail(self, reason: str) -> InvalidToolSet:
        return InvalidToolSet(f"{self._source}: {reason}")


def fill_path(path: str, values: Mapping[str, str]) -> str:
    """Return the path with its parameters, which are encoded already."""
    return _TEMPLATE.sub(lambda found: values[found[1]], path)


def _list_needed_headers(given: Mapping[tuple[Any, Any], Node]) -> Iterator[str]:
    for (name, place), one in given.items():
        if place == "header" and one.get("required") is True:
            yield str(name).lower()


def _list_references(value: JsonValue, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        raise InvalidSchema(f"expected a schema of at most {_DEEPEST} levels, found more")
    if isinstance(value, list):
        for one in value:
            yield from _list_references(one, depth + 1)
    elif isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str) and reference.startswith(_SCHEMAS):
            yield reference.removeprefix(_SCHEMAS).replace("~1", "/").replace("~0", "~")
        for one in value.values():
            yield from _list_references(one, depth + 1)


def _modernise(value: Any) -> Any:
    """Return a schema of OpenAPI 3.0 in the words of JSON Schema, which 3.1 uses."""
    if isinstance(value, list):
        return [_modernise(one) for one in value]
    if not isinstance(value, dict):
        return value
    schema = {key: _modernise(one) for key, one in value.items()}
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        flag = schema.get(exclusive)
        if isinstance(flag, bool):
            del schema[exclusive]
            if flag and bound in schema:
                schema[exclusive] = schema.pop(bound)
    if schema.get("nullable") is True:
        del schema["nullable"]
        return {"anyOf": [schema, {"type": "null"}]}
    return schema
