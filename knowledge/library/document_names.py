"""Finds documents by the names that texts use for them, see `called_names`."""

from collections.abc import Iterable
from dataclasses import dataclass

from knowledge.documents.stated_version import find_numbers
from knowledge.index.graph.called_names import MOST_WORDS, list_called_names, split_words
from knowledge.index.listing import ListedDocument

_LONGEST_TEXT = 200_000


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A name in a text, with the documents that have it; `start` counts words."""

    name: str
    start: int
    document_ids: tuple[str, ...]


class DocumentNames:
    """The names of documents; several documents may have one name."""

    def __init__(self, documents: Iterable[ListedDocument]) -> None:
        self._by_name: dict[str, list[ListedDocument]] = {}
        by_title: dict[str, list[ListedDocument]] = {}
        for document in documents:
            by_title.setdefault(document.title, []).append(document)
            for name in list_called_names(document.title):
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
        return _choose_version(self._by_name.get(" ".join(split_words(name)), []), version)

    def find_in(self, text: str, version: str = "") -> list[NamedDocument]:
        """Return the names in a text, in their order; of names that overlap the longest."""
        words = split_words(text[:_LONGEST_TEXT])
        found: list[NamedDocument] = []
        start = 0
        while start < len(words):
            length = self._measure_name(words, start)
            if length:
                name = " ".join(words[start : start + length])
                ids = _choose_version(self._by_name[name], version)
                found.append(NamedDocument(name, start, tuple(ids)))
            start += max(length, 1)
        return found

    def _measure_name(self, words: list[str], start: int) -> int:
        """Return the number of words of the longest name at a position; 0: there is none."""
        for length in range(min(MOST_WORDS, len(words) - start), 0, -1):
            if " ".join(words[start : start + length]) in self._by_name:
                return length
        return 0


def _choose_version(documents: list[ListedDocument], version: str) -> list[str]:
    if version:
        return [one.id for one in documents if one.stated_version == version]
    newest = max((find_numbers(one.stated_version) for one in documents), default=())
    return [one.id for one in documents if find_numbers(one.stated_version) == newest]
