"""Finds sentences of different sources that say the same with other numbers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from llm.offline.support import matter_of, measure_likeness, numbers_of

_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
_LIKE = 0.7
"""The least share of words, without numbers, that two sentences have in common."""
_LEAST_WORDS = 4
_MOST_SENTENCES = 200
_MOST_CHARACTERS = 500

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Statement:
    """A sentence with a number: its source, its words, and its numbers."""

    source: int
    text: str
    words: frozenset[str]
    numbers: frozenset[str]


def find_differing_statements(texts: Sequence[str]) -> list[tuple[Pair, tuple[str, str]]]:
    """Return pairs of texts, by position, with a sentence of each: alike, with other numbers.

    A pair of texts is named once. What it finds are differences, such as those between two
    versions; which of them holds is not said.
    """
    statements = [
        one for source, text in enumerate(texts) for one in _list_statements(source, text)
    ]
    found: dict[Pair, tuple[str, str]] = {}
    for place, one in enumerate(statements[:_MOST_SENTENCES]):
        for other in statements[place + 1 : _MOST_SENTENCES]:
            if one.source == other.source or one.numbers == other.numbers:
                continue
            if measure_likeness(one.words, other.words) >= _LIKE:
                found.setdefault((one.source, other.source), (one.text, other.text))
    return list(found.items())


def _list_statements(source: int, text: str) -> list[_Statement]:
    statements = []
    for part in _SENTENCE_END.split(text):
        sentence = " ".join(part.split())
        numbers = frozenset(numbers_of(sentence))
        words = matter_of(sentence)
        if numbers and len(words) >= _LEAST_WORDS and len(sentence) <= _MOST_CHARACTERS:
            statements.append(_Statement(source, sentence, words, numbers))
    return statements
