"""Reads the text of an answer from the JSON that a model has written so far."""

import re

from pydantic_core import from_json

_OPENING = re.compile(r"\s*+(?:```[a-z]*+\s*+)?+\{")
_THOUGHTS_END = "</think>"


def read_partial_answer(text: str) -> str:
    """Return the `answer` in JSON that is not complete; empty while there is none to show.

    Only an output whose `status` is already known to be `answered` has one. A fence and the
    thoughts of a reasoning model are skipped. After any other prose nothing is read, because prose
    may hold braces as well.
    """
    _, mark, after = text.rpartition(_THOUGHTS_END)
    bare = after if mark else text
    opening = _OPENING.match(bare)
    if opening is None:
        return ""
    try:
        found = from_json(bare[opening.end() - 1 :], allow_partial="trailing-strings")
    except ValueError:
        # No JSON after all; whether the whole text can be read is decided when it has come.
        return ""
    if not isinstance(found, dict) or found.get("status") != "answered":
        return ""
    answer = found.get("answer")
    return answer if isinstance(answer, str) else ""
