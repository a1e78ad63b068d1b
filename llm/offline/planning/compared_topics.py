"""Reads which topics a question compares: "Compare the fees and the notice periods of A and B"."""

import re

from envelope.ways.tool_loop import Intent
from llm.offline.planning.question_parts import read_question

_LONGEST = 2_000
_MOST_TOPICS = 8
_LONGEST_TOPIC_WORDS = 10
_BEGINNING = re.compile(
    r"\b(?:compare|vergleiche?|comparez?|confronta|compara)\b|"
    r"\b(?:differences?|unterschiede?|différences?|diferencias?|differenze)\b",
    re.IGNORECASE,
)
_BEFORE_NAMES = re.compile(
    r"\s(?:in|of|between|across|for|under|among|im|in der|des|der|von|zwischen|dans|de|del|en)\s",
    re.IGNORECASE,
)
_AFTER_NAMES = re.compile(
    r"\b(?:regarding|concerning|about|on|in terms of|with respect to|differ in|hinsichtlich|"
    r"bezüglich|concernant|sobre)\s",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"[,;]|\b(?:and|und|et|y|e|or)\b", re.IGNORECASE)
_LEAD_IN = re.compile(
    r"\A(?:(?:the|a|an|their|its|all|each|in|between|der|die|das|den|les?|las?|el|los|i|gli)\s+)+",
    re.IGNORECASE,
)


def is_comparison_request(question: str) -> bool:
    """Return whether a question compares something."""
    text = question[:_LONGEST]
    return bool(_BEGINNING.search(text)) or read_question(text).intent is Intent.COMPARISON


def find_compared_topics(question: str, first_name: int, last_name: int) -> tuple[str, ...]:
    """Return the topics before the first name of the compared things, or after the last one.

    The names are given by their positions in the question. No topics are returned where the named
    things are compared as a whole.
    """
    text = question[:_LONGEST]
    begun = _BEGINNING.search(text)
    start = begun.end() if begun is not None and begun.end() <= first_name else 0
    between = text[start:first_name]
    places = [found.start() for found in _BEFORE_NAMES.finditer(between)]
    topics = _list_topics(between[: places[-1]]) if places else ()
    after = _AFTER_NAMES.search(text, last_name)
    return topics or (_list_topics(text[after.end() :]) if after is not None else ())


def _list_topics(text: str) -> tuple[str, ...]:
    parts = (part.strip(" .?!:") for part in _SEPARATOR.split(text))
    topics = (_LEAD_IN.sub("", part) for part in parts)
    short = (one for one in topics if one and len(one.split()) <= _LONGEST_TOPIC_WORDS)
    return tuple(dict.fromkeys(short))[:_MOST_TOPICS]
