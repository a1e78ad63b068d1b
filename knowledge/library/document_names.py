"""Finds documents by their names: their titles, and the codes with which titles begin.

A name is compared by its words, without case and punctuation: "AC-2 (10)" names the document whose
title begins with "AC-2(10)", "Article 6(2)" the one that begins with "Article 6".
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from knowledge.documents.metadata.stated_version import find_numbers
from knowledge.index.listing import ListedDocument

MOST_WORDS = 10
_WORD = re.compile(r"[^\W_]+")
_LEAST_LETTERS = 4
_CODE = re.compile(
    r"(?:(?:articles?|art|sections?|sec|chapters?|annex|appendix|clause|rule)[. ]{1,2})?"
    r"[A-Za-z]{0,10}[-. ]?\d{1,6}(?:[.-]\d{1,6}){0,5}(?:\(\w{1,4}\)){0,4}(?!\w)",
    re.IGNORECASE,
)
_LONGEST_TEXT = 200_000

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A name in a text, with the documents that have it; `start` counts words."""

    name: str
    start: int
    document_ids: tuple[str, ...]


class DocumentNames:
    """The names of documents; several documents may have one name."""

    def __init__(self, documents: Iterable[ListedDocument]) -> None:
        self._by_name: dict[Words, list[ListedDocument]] = {}
        by_title: dict[str, list[ListedDocument]] = {}
        for document in documents:
            by_title.setdefault(document.title, []).append(document)
            for name in dict.fromkeys(_list_names(document.title)):
                self._by_name.setdefault(name, []).append(document)

        self._superseded = frozenset(
            one.id
            for versions in by_title.values()
            if len(versions) > 1
            for one in versions
            if one.id not in _choose_version(versions, "")
        )

    def is_superseded(self, document_id: str) -> bool:
        """Return whether a document of the same title states a newer version."""
        return document_id in self._superseded

    def find(self, name: str, version: str = "") -> list[str]:
        """Return the ids of the documents that have exactly this name.

        Of the versions of a document it is the one that is asked for, else the newest.
        """
        return _choose_version(self._by_name.get(tuple(split_words(name)), []), version)

    def find_in(self, text: str, version: str = "") -> list[NamedDocument]:
        """Return the names in a text, in their order; of names that overlap the longest."""
        words = split_words(text[:_LONGEST_TEXT])
        found: list[NamedDocument] = []
        start = 0
        while start < len(words):
            length = self._measure_name(words, start)
            if length:
                name = words[start : start + length]
                ids = _choose_version(self._by_name[tuple(name)], version)
                found.append(NamedDocument(" ".join(name), start, tuple(ids)))
            start += max(length, 1)
        return found

    def _measure_name(self, words: list[str], start: int) -> int:
        """Return the number of words of the longest name at a position; 0: there is none."""
        for length in range(min(MOST_WORDS, len(words) - start), 0, -1):
            if tuple(words[start : start + length]) in self._by_name:
                return length
        return 0


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _WORD.findall(text.casefold())


def _list_names(title: str) -> Iterator[Words]:
    # "Victrola (song)" is called "Victrola", but "AC-2(10)" is not called "AC-2".
    whole = title.rpartition(" (")[0] if title.endswith(")") else ""
    for name in (title, whole):
        words = tuple(split_words(name))
        if 0 < len(words) <= MOST_WORDS and len("".join(words)) >= _LEAST_LETTERS:
            yield words
    code = _CODE.match(title)
    if code is not None and any(sign.isalpha() for sign in code[0]):
        yield tuple(split_words(code[0]))


def _choose_version(documents: list[ListedDocument], version: str) -> list[str]:
    if version:
        return [one.id for one in documents if one.stated_version == version]
    newest = max((find_numbers(one.stated_version) for one in documents), default=())
    return [one.id for one in documents if find_numbers(one.stated_version) == newest]
