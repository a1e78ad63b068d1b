"""Writes values so that every channel shows them exactly: nothing in them is a link or a mark.

What a person approves must be what runs. Texts of replies lose addresses, marks and hidden
characters, so that these are written as JSON escapes, which stand for the same value.
"""

import json
import re

from pydantic import JsonValue

from citations.links import allow, keep_links, plain_line

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_MARKS = frozenset("`<>[]@/:")
_LEVELS = (frozenset("`"), _MARKS, _MARKS | frozenset(". "))
"""Characters that are escaped, from the most readable form to the safest."""


def write_exactly(value: JsonValue, longest: int) -> str | None:
    """Return a value as JSON that replies show unchanged; None if it is longer than `longest`."""
    text = json.dumps(value, ensure_ascii=False)
    for escaped in _LEVELS:
        shown = _STRING.sub(lambda found: _escape(found[0], escaped), text)  # noqa: B023 - used at once
        if len(shown) <= longest and is_shown_unchanged(f"`{shown}`"):
            return shown
    return None


def is_shown_unchanged(text: str) -> bool:
    """Return whether a reply shows a text as it is."""
    return plain_line(text) == text and keep_links(text, allow(())).text == text


def _escape(literal: str, escaped: frozenset[str]) -> str:
    return "".join(
        json.dumps(sign)[1:-1] if not sign.isprintable() else _write_code(sign, escaped)
        for sign in literal
    )


def _write_code(sign: str, escaped: frozenset[str]) -> str:
    return f"\\u{ord(sign):04x}" if sign in escaped else sign
