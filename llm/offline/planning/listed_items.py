"""Finds lists: the items that a passage lists, and the names that a question lists.

A question about every member of a group is answered in two steps: one passage lists the members,
and each of them is asked about with those words of the question that this passage lacks.
"""

import re
from collections.abc import Sequence

from llm.offline.support import terms, weight_of

_LONGEST = 4_000
_SENTENCE_END = re.compile(r"(?<=[?!])\s+|\n{2,}")
_STRONG = re.compile(r"[;\n]")
_WEAK = re.compile(r",\s|;|\n")
_LAST = re.compile(r"\A(?:and|or|und|y|et)\s+")
_MARK = re.compile(r"\A\s*(?:\d{1,4}\s*[:.)]|[-*•])\s*")
_NAME = r"[A-Z][\w.'&-]{0,40}(?: (?:(?:of|the|de|and the) )?[A-Z][\w.'&-]{0,40}){0,5}"
_LISTED_NAMES = re.compile(rf"{_NAME}(?:, (?:the )?{_NAME}){{1,20}},? (?:and|or) (?:the )?{_NAME}")
_TWO_NAMES = re.compile(rf"({_NAME})(?:,? (?:and|or|versus|vs\.?) |, )(?:the )?({_NAME})")
_BETWEEN_NAMES = re.compile(r"(?:, (?:and |or )?| (?:and|or) )(?:the )?")
_LEAD_INS = (" are ", " is ", " were ", " include ", " includes ", " including ", ": ", " sind ")
"""What ends the words before the first item of a list."""
_LEAST_ITEMS = 3
_LONGEST_ITEM_WORDS = 10
_LONGEST_WEAK_WORDS = 6
_MOST_LONG_ITEMS = 0.2
_MOST_ITEMS = 100


def find_listed_items(text: str) -> tuple[str, ...]:
    """Return the items of the longest list in a text, at least three; none if it lists nothing."""
    best: Sequence[str] = ()
    for sentence in _SENTENCE_END.split(text[:_LONGEST]):
        items = _split_items(sentence)
        if len(items) > len(best):
            best = items
    return tuple(dict.fromkeys(best))[:_MOST_ITEMS]


def find_listed_names(question: str) -> tuple[str, ...]:
    """Return the names that a question lists, at least three; or none."""
    found = _LISTED_NAMES.search(question[:_LONGEST])
    if found is None:
        return ()
    return tuple(dict.fromkeys(_BETWEEN_NAMES.split(found[0])))


def find_compared_names(question: str) -> tuple[str, ...]:
    """Return the two names that a question sets against each other; or none."""
    found = _TWO_NAMES.search(question.partition(" ")[2][:_LONGEST])
    return (found[1], found[2]) if found is not None else ()


def find_asked_words(question: str, known: str) -> str:
    """Return the words of a question that carry a subject and that the `known` text lacks."""
    have = set(terms(known))
    words = dict.fromkeys(terms(question, cut=False))
    return " ".join(word for word in words if weight_of(word) >= 1 and not set(terms(word)) & have)


def _split_items(sentence: str) -> Sequence[str]:
    items = _clean(_STRONG.split(sentence))
    if len(items) < _LEAST_ITEMS:
        items = _clean(_WEAK.split(sentence))
        if any(len(item.split()) > _LONGEST_WEAK_WORDS for item in items):
            return ()
    long = sum(len(item.split()) > _LONGEST_ITEM_WORDS for item in items)
    if len(items) < _LEAST_ITEMS or long > _MOST_LONG_ITEMS * len(items):
        return ()
    items[0] = _leave_lead_in_out(items[0])
    return [item for item in items if len(item.split()) <= _LONGEST_ITEM_WORDS]


def _leave_lead_in_out(item: str) -> str:
    for lead_in in _LEAD_INS:
        item = item.rpartition(lead_in)[2]
    return item


def _clean(parts: Sequence[str]) -> list[str]:
    cleaned = (_LAST.sub("", _MARK.sub("", part.strip())).strip() for part in parts)
    return [part for part in cleaned if part]
