"""Reads the schemas of an interface's description: fields with their types and what they mean."""

from collections.abc import Iterator, Mapping
from typing import Any

Value = Mapping[str, Any]

_DEEPEST_REFERENCE = 16
_DEEPEST_FIELD = 3
_MOST_FIELDS = 200
_MOST_VALUES = 50


class References:
    """Follows `$ref` inside one document; what leads out of it or in circles is empty."""

    def __init__(self, document: Value) -> None:
        self._document = document

    def resolve(self, value: object) -> Value:
        """Return the mapping that a value is or refers to, or an empty one."""
        for _ in range(_DEEPEST_REFERENCE):
            if not isinstance(value, dict):
                return {}
            target = value.get("$ref")
            if not isinstance(target, str):
                return value
            value = self._find(target)
        return {}

    def _find(self, target: str) -> object:
        if not target.startswith("#/"):
            return {}
        value: object = self._document
        for part in target[2:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            value = value.get(key) if isinstance(value, dict) else None
        return value


def name_type(references: References, schema: Value) -> str:
    """Return the type of a schema in words: `array of string, one of a, b; default a`."""
    kind = schema.get("type")
    named = " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind or "")
    items = references.resolve(schema.get("items"))
    if named == "array" and items:
        inner = items.get("type") or "object"
        named = f"array of {inner}"
    if not named:
        named = "object" if schema.get("properties") or schema.get("allOf") else "any"
    if isinstance(schema.get("format"), str):
        named += f" ({schema['format']})"
    values = schema.get("enum") or items.get("enum")
    if isinstance(values, list) and values:
        named += f", one of {', '.join(f'`{value}`' for value in values[:_MOST_VALUES])}"
    for word, key in (("at least", "minimum"), ("at most", "maximum"), ("at most", "maxLength")):
        if isinstance(schema.get(key), int | float):
            unit = " characters" if key == "maxLength" else ""
            named += f", {word} {schema[key]}{unit}"
    if "default" in schema and isinstance(schema["default"], str | int | float):
        named += f", default `{schema['default']}`"
    return named


def list_fields(references: References, schema: Value) -> Iterator[tuple[str, str, str, str]]:
    """Yield the name, type, need and description of each field of an object, also inner ones."""
    left = _MOST_FIELDS
    waiting: list[tuple[str, Value, int]] = [("", schema, 0)]
    while waiting:
        prefix, current, depth = waiting.pop()
        for name, field, is_required in _own_fields(references, current):
            left -= 1
            if left < 0:
                return
            description = field.get("description")
            yield (
                f"`{prefix}{name}`",
                name_type(references, field),
                "required" if is_required else "optional",
                description if isinstance(description, str) else "",
            )
            inner = references.resolve(field.get("items")) or field
            if depth < _DEEPEST_FIELD - 1 and (inner.get("properties") or inner.get("allOf")):
                sign = "[]." if field.get("items") else "."
                waiting.append((f"{prefix}{name}{sign}", inner, depth + 1))


def _own_fields(references: References, schema: Value) -> Iterator[tuple[str, Value, bool]]:
    items = references.resolve(schema.get("items"))
    whole = [items if schema.get("type") == "array" else schema]
    for key in ("allOf", "oneOf", "anyOf"):
        parts = whole[0].get(key)
        whole += [references.resolve(part) for part in parts] if isinstance(parts, list) else []
    for part in whole:
        required = part.get("required")
        names = required if isinstance(required, list) else []
        properties = part.get("properties")
        for name, field in properties.items() if isinstance(properties, dict) else ():
            yield str(name), references.resolve(field), name in names
