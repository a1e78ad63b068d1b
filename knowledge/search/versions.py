"""Chooses among versions of one page: the one that a question names, else the newest.

Versions are stated by documents or folders, such as `1.4`, `v2`, `r5` or `2024-05-01`. They are
compared by their numbers. Two documents are versions of one page if they have the same language,
and their names differ only where they state their versions.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from knowledge.documents.metadata.stated_version import Numbers, find_numbers, remove_version

_NUMBERED = re.compile(r"(?<![\w.])([^\W\d_]{0,12})(\d{1,9}(?:[.-]\d{1,9}){0,4})(?![\w-])")
_WORDS = (
    "v", "ver", "vers", "version", "versión", "versione", "versão", "wersja", "verze", "verzi",
    "версия", "версии", "версія", "версії", "sürüm", "r", "rev", "revision", "release", "edition",
    "版", "版本", "バージョン",
)  # fmt: skip
"""Words before the number of a version; a single number needs one of them."""
_LONGEST_BEFORE = 40
"""The characters before a number among which its word is looked for."""
_YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True, slots=True)
class PageVersion:
    """A document by its page, its language and the version that it states, or an empty text."""

    page: str
    language: str
    version: str


class PageVersions:
    """The versions of the documents of an index, by the positions of the documents."""

    def __init__(self, documents: Sequence[PageVersion]) -> None:
        self._stated: dict[Numbers, list[int]] = {}
        numbers = [find_numbers(one.version) for one in documents]
        pages = [(remove_version(one.page, one.version), one.language) for one in documents]
        newest: dict[tuple[str, str], Numbers] = {}
        for at, (one, page) in enumerate(zip(documents, pages, strict=True)):
            if one.version:
                self._stated.setdefault(numbers[at], []).append(at)
                newest[page] = max(newest.get(page, ()), numbers[at])
        self._superseded = [
            at
            for at, (one, page) in enumerate(zip(documents, pages, strict=True))
            if one.version and numbers[at] < newest[page]
        ]
        self._numbers, self._pages = numbers, pages

    @property
    def has_superseded(self) -> bool:
        """Whether there are documents of which a newer version exists."""
        return bool(self._superseded)

    def names_one(self, texts: Iterable[str]) -> bool:
        """Return whether a text of the question names a version that exists."""
        return bool(_find_named(frozenset(self._stated), texts))

    def find_earlier(self, position: int) -> list[int]:
        """Return the positions of the earlier versions of a document, newest first."""
        own, page = self._numbers[position], self._pages[position]
        earlier = [
            at for at in self._superseded if self._pages[at] == page and self._numbers[at] < own
        ]
        return sorted(earlier, key=lambda at: self._numbers[at], reverse=True)

    def find_others(self, texts: Iterable[str]) -> list[int]:
        """Return the positions of the documents that a search leaves out.

        If a text of the question names versions that exist, these are the documents of other
        versions; else those of which a newer version exists.
        """
        if not self._stated:
            return []
        wanted = _find_named(frozenset(self._stated), texts)
        if not wanted:
            return self._superseded
        return [at for version, own in self._stated.items() if version not in wanted for at in own]


def _find_named(known: frozenset[Numbers], texts: Iterable[str]) -> set[Numbers]:
    """Return the known versions that a question names; several if it compares some."""
    found: set[Numbers] = set()
    for text in texts:
        for match in _NUMBERED.finditer(text):
            before = text[max(0, match.start() - _LONGEST_BEFORE) : match.start()].split()
            word = match[1] or (before[-1] if before else "").strip(":,.")
            numbers = find_numbers(match[2])
            has_word = word.casefold() in _WORDS
            if has_word or len(numbers) > 1 or (not match[1] and _YEAR.fullmatch(match[2])):
                found |= _find_matching(known, numbers, is_prefix=has_word or len(numbers) == 1)
    return found


def _find_matching(known: frozenset[Numbers], numbers: Numbers, *, is_prefix: bool) -> set[Numbers]:
    if numbers in known or not is_prefix:
        return {numbers}.intersection(known)
    return {one for one in known if one[: len(numbers)] == numbers}
