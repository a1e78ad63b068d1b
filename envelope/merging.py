"""Merges a write with the present value of an attribute: one function for each rule of the
catalogue. The rules apply to the writes of a hop and to the results of branches. A repeated hop
starts from the same payload, so each write is merged once.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum

from pydantic import JsonValue

Payload = Mapping[str, JsonValue]


class MergeRule(StrEnum):
    """How a write of a payload attribute is merged with the present value."""

    REPLACE = "replace"
    KEEP_FIRST = "keep_first"
    APPEND = "append"
    APPEND_UNIQUE = "append_unique"
    MERGE = "merge"
    MAX = "max"


def replace_value(_present: JsonValue, written: JsonValue) -> JsonValue:
    """Return the value that was written."""
    return written


def keep_first(present: JsonValue, written: JsonValue) -> JsonValue:
    """Return the present value, or the written one if there is none."""
    return written if present is None else present


def append_items(present: JsonValue, written: JsonValue) -> JsonValue:
    """Return the present items, then the written ones."""
    return [*_list_items(present), *_list_items(written)]


def append_unique_items(present: JsonValue, written: JsonValue) -> JsonValue:
    """Return the present items, then those of the written ones that are not among them."""
    items: list[JsonValue] = []
    for item in (*_list_items(present), *_list_items(written)):
        if item not in items:
            items.append(item)
    return items


def merge_objects(present: JsonValue, written: JsonValue) -> JsonValue:
    """Return both objects as one, level by level; where both have a value, the written one."""
    if not (isinstance(present, dict) and isinstance(written, dict)):
        return written
    merged = dict(present)
    for name, value in written.items():
        merged[name] = merge_objects(merged[name], value) if name in merged else value
    return merged


def take_maximum(present: JsonValue, written: JsonValue) -> JsonValue:
    """Return the greater number, or the written value if one of them is not a number."""
    numbers = isinstance(present, int | float) and isinstance(written, int | float)
    return present if numbers and present > written else written  # type: ignore[operator]


MERGE_FUNCTIONS: dict[MergeRule, Callable[[JsonValue, JsonValue], JsonValue]] = {
    MergeRule.REPLACE: replace_value,
    MergeRule.KEEP_FIRST: keep_first,
    MergeRule.APPEND: append_items,
    MergeRule.APPEND_UNIQUE: append_unique_items,
    MergeRule.MERGE: merge_objects,
    MergeRule.MAX: take_maximum,
}


def merge_writes(
    payload: Payload, writes: Payload, rules: Mapping[str, MergeRule]
) -> dict[str, JsonValue]:
    """Return the payload with these writes; `rules` has the attributes that are not replaced."""
    merged = {**payload, **writes}
    if not rules.keys().isdisjoint(writes):
        for name in rules.keys() & writes.keys() & payload.keys():
            merged[name] = MERGE_FUNCTIONS[rules[name]](payload[name], writes[name])
    return merged


def _list_items(value: JsonValue) -> list[JsonValue]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]
