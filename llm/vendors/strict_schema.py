"""Makes the JSON schema of an output type as strict as vendors require."""

from collections.abc import Mapping
from functools import lru_cache
from typing import cast

from pydantic import BaseModel, JsonValue

from llm.errors import UnusableSchema

DROPPED = frozenset(
    {"title", "default", "minLength", "maxLength", "uniqueItems", "discriminator", "examples"}
)
"""Keywords that strict schemas lack; these constraints are checked when the answer is parsed."""

Node = dict[str, JsonValue]


@lru_cache(maxsize=64)
def strict_schema(output: type[BaseModel]) -> Node:
    """Return the schema with closed objects and required fields, without unsupported keywords.

    Raises `UnusableSchema` for a mapping with free keys, which strict schemas cannot express.
    """
    schema = cast("Node", output.model_json_schema())
    if "$ref" in schema:
        # The schema of a recursive model is a reference; vendors require an object at the top.
        definitions = cast("dict[str, Node]", schema["$defs"])
        own = definitions[cast("str", schema["$ref"]).rpartition("/")[2]]
        schema = {**own, "$defs": cast("JsonValue", definitions)}
    return _strict(schema, output.__qualname__)


def _strict(node: Mapping[str, JsonValue], place: str) -> Node:
    if "$ref" in node:
        # Other keywords next to a reference (a description) are not allowed.
        return {"$ref": node["$ref"]}
    strict: Node = {}
    for key, value in node.items():
        if key in DROPPED:
            continue
        strict["anyOf" if key == "oneOf" else key] = _value(key, value, place)
    _close_tuple(strict)
    return _close_object(strict, place) if strict.get("type") == "object" else strict


def _value(key: str, value: JsonValue, place: str) -> JsonValue:
    if key in {"properties", "$defs"} and isinstance(value, dict):
        return {
            name: _strict(cast("Node", part), f"{place}.{name}") for name, part in value.items()
        }
    if key in {"anyOf", "oneOf", "allOf", "prefixItems"} and isinstance(value, list):
        return [_strict(cast("Node", part), place) for part in value]
    if key == "items" and isinstance(value, dict):
        return _strict(value, f"{place}[]")
    return value


def _close_tuple(strict: Node) -> None:
    parts = strict.pop("prefixItems", None)
    if isinstance(parts, list):
        different = [part for n, part in enumerate(parts) if part not in parts[:n]]
        strict["items"] = different[0] if len(different) == 1 else {"anyOf": different}


def _close_object(strict: Node, place: str) -> Node:
    if strict.get("additionalProperties", False) is not False or "properties" not in strict:
        raise UnusableSchema(
            f"expected fields with names at {place}, found a mapping with free keys: "
            "a strict schema cannot say that"
        )
    properties = cast("Node", strict["properties"])
    return {**strict, "required": list(properties), "additionalProperties": False}
