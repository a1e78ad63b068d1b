"""Bounds the result of a branch: long texts keep their beginning and their end."""

from pydantic import JsonValue

from broker.values import Fields
from envelope.encoding import to_json

LARGEST_RESULT = 32_000
"""The most bytes that a branch returns."""
_HEAD, _TAIL = 0.60, 0.35
_COUNTS = ("hops", "seconds", "model_usage", "exhausted_budget")
_SHORTEST = 200
"""Texts of fewer characters are never cut."""


def bound_result(result: Fields, largest: int = LARGEST_RESULT) -> Fields:
    """Return a result of at most `largest` bytes as JSON.

    Texts are cut to the same length each, by halves, until the result is small enough. One that is
    too large even then, such as a list of a million numbers, becomes a failure that says so.
    """
    size = len(to_json(result))
    if size <= largest:
        return result
    longest = largest
    while longest > _SHORTEST:
        longest //= 2
        cut = {name: _cut(value, longest) for name, value in result.items()}
        if len(to_json(cut)) <= largest:
            return {**cut, "cut": True}
    counted: Fields = {name: result[name] for name in _COUNTS if name in result}
    reason = f"expected a result of at most {largest} bytes, found {size}"
    return {"status": "failed", "writes": {}, "reason": reason, **counted}


def cut_text(text: str, longest: int) -> str:
    """Return a text of about `longest` characters: its first 60 % and its last 35 %."""
    if len(text) <= longest:
        return text
    head, tail = int(longest * _HEAD), int(longest * _TAIL)
    return f"{text[:head]} [... {len(text) - head - tail} characters ...] {text[-tail:]}"


def _cut(value: JsonValue, longest: int) -> JsonValue:
    if isinstance(value, str):
        return cut_text(value, longest)
    if isinstance(value, list):
        return [_cut(item, longest) for item in value]
    if isinstance(value, dict):
        return {name: _cut(item, longest) for name, item in value.items()}
    return value
