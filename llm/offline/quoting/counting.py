"""Checks that a number counts or measures what a question asks for: "How many members ...?".

"A drone must not carry more than 8 kilograms" states a maximum weight without either word.
"""

import re
from collections.abc import Iterable, Mapping

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
_NUMBER = re.compile(r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|half)\b")
_MASS = (
    r"\d ?(?:k?g|mg|t|lbs?|oz)\b|\b(?:(?:kilo|milli)?gram(?:me)?s?|kilos?|ton(?:ne)?s?|pounds?"
    r"|ounces?)\b"
)
_LENGTH = (
    r"\d ?(?:[kcm]?m|ft|in)\b|\b(?:(?:kilo|centi|milli)?met(?:re|er)s?|feet|foot|inch(?:es)?|miles?"
    r"|yards?)\b"
)
_TIME = r"\b(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)\b|\d ?(?:ms|s|min|h)\b"
_RATE = (
    r"\b(?:per|an?) (?:second|minute|hour|day)\b|/ ?(?:s|h|min|second|minute|hour)\b|\b[mk]ph\b"
    r"|\bknots?\b"
)
_AT_ONCE = r"|\b(?:immediately|instantly|at once|same day)\b"
_LIMIT = (
    r"\b(?:more|less|fewer|greater|longer|higher|heavier|faster|larger) than\b|\bexceed|\bup to\b"
    r"|\bat (?:most|least)\b|\b(?:over|under|above|below|within|no more|max\b|min\b)|\blimit"
)
_UNITS = {
    "mass": re.compile(_MASS, re.IGNORECASE),
    "length": re.compile(_LENGTH, re.IGNORECASE),
    "span": re.compile(rf"{_LENGTH}|{_TIME}", re.IGNORECASE),
    "rate": re.compile(_RATE, re.IGNORECASE),
    "pace": re.compile(rf"{_RATE}|{_TIME}{_AT_ONCE}|\bbit", re.IGNORECASE),
    "limit": re.compile(_LIMIT, re.IGNORECASE),
}
_NOUNS = {
    "weight": "mass",
    "mass": "mass",
    "height": "length",
    "width": "length",
    "depth": "length",
    "distance": "length",
    "speed": "rate",
    "maximum": "limit",
    "maximal": "limit",
    "minimum": "limit",
    "minimal": "limit",
    "limit": "limit",
}
_ADJECTIVES = {
    "heavy": "mass",
    "tall": "length",
    "wide": "length",
    "deep": "length",
    "far": "span",
    "fast": "pace",
}
_HOW = re.compile(r"\bhow (heavy|tall|wide|deep|far|fast)\b", re.IGNORECASE)


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


def find_measured(words: Iterable[str]) -> Mapping[str, str]:
    """Return those of some words that name a measure or a limit, each with its kind.

    A limit is of the measure that is named: a height limit is not stated in kilograms.
    """
    kinds = {word: _NOUNS[word] for word in words if word in _NOUNS}
    measure = next((kind for kind in kinds.values() if kind != "limit"), "limit")
    return {word: measure if kind == "limit" else kind for word, kind in kinds.items()}


def states_measure(kind: str | None, text: str) -> bool:
    """Return whether a text states a measure of a kind by number and unit; None is none."""
    if kind is None or _NUMBER.search(text) is None:
        return False
    return _UNITS[kind].search(text) is not None


def lacks_unit(question: str, text: str) -> bool:
    """Return whether a question such as "How heavy ...?" gets no number with a unit from a text."""
    asked = _HOW.search(question)
    if asked is None:
        return False
    return _UNITS[_ADJECTIVES[asked[1].lower()]].search(text) is None
