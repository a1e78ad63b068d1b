"""Checks that a number counts what a question asks for: "How many members has the club?"."""

import re

from llm.offline.phrases import FUNCTION_WORDS
from llm.offline.quoting.key_terms import extract_key_terms
from llm.offline.quoting.question_kinds import has_number

_COUNTED = re.compile(
    r"\bhow many ((?:[\w-]{1,30} ){0,2}?[\w-]{1,30})"
    r"(?: (?:do|does|did|can|may|must|should|will|would|is|are|was|were|has|have|had|per|in|of|for"
    r"|at|on|there|a|an|the|each|every|i|we|you)\b|\s?[?.!]*\Z)",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"\d[\d.,]{0,20}|[^\W\d_][\w'-]{0,40}")
_BETWEEN = (
    FUNCTION_WORDS | {"limited", "restricted", "set", "maximum", "total", "default", "number"}
) - {
    "over",
    "under",
    "above",
    "below",
    "from",
    "until",
    "after",
    "before",
    "since",
    "by",
    "with",
    "in",
    "on",
}
_BREAKS = FUNCTION_WORDS - {"of"}
_REACH = 3
"""Words between a number and what it counts: "28 days of paid leave"."""


def find_counted(question: str) -> frozenset[str]:
    """Return the term of what a question wants counted; empty if it wants nothing counted."""
    found = _COUNTED.search(question)
    return extract_key_terms(found[1].split()[-1]) if found is not None else frozenset()


def counts_something_else(text: str, counted: frozenset[str], question: frozenset[str]) -> bool:
    """Return whether a text names the things to be counted, but its numbers count other things.

    `question` has the terms of the question: they may stand between the name and its number.
    """
    tokens = _TOKEN.findall(text)
    places = [at for at, token in enumerate(tokens) if extract_key_terms(token) & counted]
    return bool(places) and not any(_is_counted(tokens, at, question) for at in places)


def _is_counted(tokens: list[str], at: int, question: frozenset[str]) -> bool:
    for token in reversed(tokens[max(at - _REACH, 0) : at]):
        if has_number(token):
            return True
        if token.lower() in _BREAKS:
            break
    following = (
        token
        for token in tokens[at + 1 :]
        if token.lower() not in _BETWEEN and not extract_key_terms(token) & question
    )
    return has_number(next(following, ""))
