"""Reads the fields of an output from the JSON that a model has written so far."""

import re
from collections.abc import Mapping
from typing import Literal

from pydantic_core import from_json

_OPENING = re.compile(r"\s*+(?:```[a-z]*+\s*+)?+\{")
_THOUGHTS_END = "</think>"


def read_partial_answer(text: str) -> str:
    """Return the `answer` in JSON that is not complete; empty while there is none to show.

    Only an output whose `status` is already known to be `answered` has one.
    """
    found = _read_fields(text, "trailing-strings")
    answer = found.get("answer") if found.get("status") == "answered" else None
    return answer if isinstance(answer, str) else ""


def read_complete_fields(text: str) -> Mapping[str, object]:
    """Return the fields of JSON that is not complete, without the one that is being written."""
    return _read_fields(text, "on")


def _read_fields(text: str, partial: Literal["on", "trailing-strings"]) -> Mapping[str, object]:
    """Return the fields of an object that is being written; empty while there is none.

    A fence and the thoughts of a reasoning model are skipped. After any other prose nothing is
    read, because prose may hold braces as well.
    """
    _, mark, after = text.rpartition(_THOUGHTS_END)
    bare = after if mark else text
    opening = _OPENING.match(bare)
    if opening is None:
        return {}
    try:
        found = from_json(bare[opening.end() - 1 :], allow_partial=partial)
    except ValueError:
        # No JSON after all; whether the whole text can be read is decided when it has come.
        return {}
    return found if isinstance(found, dict) else {}
