"""Reads values from journals and replies that processes of other versions may have written.

A value with an unexpected type counts as missing, so that the rest can still be shown.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import JsonValue


def read_text(fields: Mapping[str, Any], name: str) -> str:
    """Return the value of a field, or "" if it is not a string."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def read_whole(value: JsonValue) -> int:
    """Return an integer, or 0 for any other value."""
    return value if isinstance(value, int) else 0


def read_list(value: JsonValue) -> list[JsonValue]:
    """Return a list, or an empty one for any other value."""
    return value if isinstance(value, list) else []


def read_objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    """Return the objects in a list."""
    return [item for item in read_list(value) if isinstance(item, dict)]


def map_texts(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    """Return a value with each of its texts changed; the names of its fields remain."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [map_texts(item, change) for item in value]
    if isinstance(value, dict):
        return {name: map_texts(item, change) for name, item in value.items()}
    return value
