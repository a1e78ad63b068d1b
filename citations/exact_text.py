"""Writes values so that every channel shows them exactly: nothing in them is a link or a mark.

What a person approves must be what runs. Texts of replies lose addresses, marks and hidden
characters, so that these are written as JSON escapes, which stand for the same value.
"""

import json
from collections.abc import Iterator

from pydantic import JsonValue

from citations.links import allow, keep_links, plain_line

_MARKS = frozenset("`<>[]@/:")
_LEVELS = (frozenset("`"), _MARKS, _MARKS | frozenset(". "))
"""Characters that are escaped, from the most readable form to the safest."""


def write_exactly(value: JsonValue, longest: int) -> str | None:
    """Return a value as JSON that replies show unchanged; None if it is longer than `longest`."""
    text = json.dumps(value, ensure_ascii=False)
    for escaped in _LEVELS:
        shown = "".join(_escape(text, escaped))
        if len(shown) <= longest and is_shown_unchanged(f"`{shown}`"):
            return shown
    return None


def is_shown_unchanged(text: str) -> bool:
    """Return whether a reply shows a text as it is."""
    return plain_line(text) == text and keep_links(text, allow(())).text == text


def _escape(text: str, escaped: frozenset[str]) -> Iterator[str]:
    """Yield the signs of a JSON text; those of strings that are to be escaped as `\\uXXXX`."""
    in_string = after_backslash = False
    for sign in text:
        if sign == '"' and not after_backslash:
            in_string = not in_string
        after_backslash = in_string and sign == "\\" and not after_backslash
        yield _write_sign(sign, escaped) if in_string else sign


def _write_sign(sign: str, escaped: frozenset[str]) -> str:
    if not sign.isprintable():
        return json.dumps(sign)[1:-1]
    return f"\\u{ord(sign):04x}" if sign in escaped else sign
