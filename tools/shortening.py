"""Shortens results of tools for a model, and keeps every citation in them whole."""

import re

from knowledge.sections import count_tokens

LONGEST_TEXT = 1_500
"""Characters of a result that a model reads whose window is unknown."""
LONGEST_STORED = 12_000
"""Characters of a result that are kept for models with a large window."""
_FIRST_SHARE, _LAST_SHARE = 0.6, 0.35
_CITATION = re.compile(r"\[[^\[\]\s]{1,300}\]")
"""The id of a chunk in brackets, as built-in tools write it before each passage."""


def shorten(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return a text of at most `longest` characters: its first 60 %, a mark, and its last 35 %.

    The mark says how many characters are left out. A citation that a cut would divide is left out
    of both parts, so that no half of an id can be quoted.
    """
    if len(text) <= longest:
        return text
    start = _move_before_citation(text, int(longest * _FIRST_SHARE))
    end = _move_after_citation(text, len(text) - int(longest * _LAST_SHARE))
    return f"{text[:start]}\n... [{end - start} characters left out] ...\n{text[end:]}"


def count_estimated_tokens(text: str) -> int:
    """Return about how many tokens a model reads."""
    return count_tokens(text)


def _move_before_citation(text: str, position: int) -> int:
    found = _find_divided(text, position)
    return position if found is None else found[0]


def _move_after_citation(text: str, position: int) -> int:
    found = _find_divided(text, position)
    return position if found is None else found[1]


def _find_divided(text: str, position: int) -> tuple[int, int] | None:
    """Return the place of the citation that a cut at `position` divides."""
    begin = text.rfind("[", max(0, position - 302), position)
    if begin < 0:
        return None
    found = _CITATION.match(text, begin)
    return found.span() if found is not None and found.end() > position else None
