"""Reads values of journals and replies, which processes of other versions wrote, too.

A value of another type counts as none, so that whatever they wrote can be shown.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue


def read_text(fields: Mapping[str, Any], name: str) -> str:
    """Return the text of an attribute, else an empty one."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def read_whole(value: JsonValue) -> int:
    """Return a whole number, else 0."""
    return value if isinstance(value, int) else 0


def read_list(value: JsonValue) -> list[JsonValue]:
    """Return a list, else an empty one."""
    return value if isinstance(value, list) else []


def read_objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    """Return the objects of a list."""
    return [one for one in read_list(value) if isinstance(one, dict)]
