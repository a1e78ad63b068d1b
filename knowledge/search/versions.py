"""Chooses among the versions of a page: the one named in a question or, if none is named, the
newest.

Versions, such as `1.4`, `v2`, `r5` or `2024-05-01`, are stated by documents or folders. They are
compared by their numbers. Two documents are versions of one page if they have the same language,
and their names differ only in their stated versions. Versions without numbers, such as `cloud` and
`server`, are neither newer nor older than each other.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from knowledge.documents.stated_version import Numbers, find_numbers, remove_version

_NUMBERED = re.compile(r"(?<![\w.])([^\W\d_]{0,12})(\d{1,9}(?:[.-]\d{1,9}){0,4})(?![\w-])")
_WORDS = (
    "v", "ver", "vers", "version", "versión", "versione", "versão", "wersja", "verze", "verzi",
    "версия", "версии", "версія", "версії", "sürüm", "r", "rev", "revision", "release", "edition",
    "版", "版本", "バージョン",
)  # fmt: skip
"""Words before the number of a version; a single number must be preceded by one of them."""
_WORD = re.compile(r"\w+")
_LONGEST_BEFORE = 40
"""The number of characters before a number within which such a word is searched for."""
_YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True, slots=True)
class PageVersion:
    """A document, given by its page, its language, and the version that it states, or an empty
    string.
    """

    page: str
    language: str
    version: str


class PageVersions:
    """The versions of the documents of an index, by the positions of the documents."""

    def __init__(self, documents: Sequence[PageVersion]) -> None:
        self._stated: dict[Numbers, list[int]] = {}
        numbers = [find_numbers(document.version) for document in documents]
        pages = [
            (remove_version(document.page, document.version), document.language)
            for document in documents
        ]
        newest: dict[tuple[str, str], Numbers] = {}
        for at, (version, page) in enumerate(zip(documents, pages, strict=True)):
            if version.version:
                self._stated.setdefault(numbers[at], []).append(at)
                newest[page] = max(newest.get(page, ()), numbers[at])
        self._superseded = [
            at
            for at, (version, page) in enumerate(zip(documents, pages, strict=True))
            if version.version and numbers[at] < newest[page]
        ]
        self._numbers, self._pages = numbers, pages
        unnumbered = {at: documents[at].version.casefold() for at in self._stated.get((), ())}
        names: dict[tuple[str, str], set[str]] = {}
        for at, name in unnumbered.items():
            names.setdefault(pages[at], set()).add(name)
        self._names = {
            at: version for at, version in unnumbered.items() if len(names[pages[at]]) > 1
        }

    @property
    def has_several(self) -> bool:
        """Whether any page has several versions."""
        return bool(self._superseded or self._names)

    def names_one(self, texts: Sequence[str]) -> bool:
        """Return whether a text of the question names an existing version."""
        if _find_named(frozenset(self._stated), texts):
            return True
        words = {word for text in texts for word in _WORD.findall(text.casefold())}
        return any(words.issuperset(_WORD.findall(name)) for name in set(self._names.values()))

    def find_not_newer(self, position: int) -> list[int]:
        """Return the positions of those other versions of a document that are not newer.

        Earlier versions are sorted with the newest first, and those without numbers by name.
        """
        own, page = self._numbers[position], self._pages[position]
        earlier = [
            at for at in self._superseded if self._pages[at] == page and self._numbers[at] < own
        ]
        if not earlier and position in self._names:
            name = self._names[position]
            equal = [at for at, other in self._names.items() if other != name]
            of_page = [at for at in equal if self._pages[at] == page]
            return sorted(of_page, key=lambda at: self._names[at])
        return sorted(earlier, key=lambda at: self._numbers[at], reverse=True)

    def find_others(self, texts: Iterable[str]) -> list[int]:
        """Return the positions of the documents that a search omits.

        If a text of the question names existing versions, these are the documents in other
        versions; if not, they are the documents of which a newer version exists.
        """
        if not self._stated:
            return []
        wanted = _find_named(frozenset(self._stated), texts)
        if not wanted:
            return self._superseded
        return [at for version, own in self._stated.items() if version not in wanted for at in own]


def _find_named(known: frozenset[Numbers], texts: Iterable[str]) -> set[Numbers]:
    """Return the known versions that a question names; there are several if the question compares
    versions.
    """
    named: set[Numbers] = set()
    for text in texts:
        for match in _NUMBERED.finditer(text):
            before = text[max(0, match.start() - _LONGEST_BEFORE) : match.start()].split()
            word = match[1] or (before[-1] if before else "").strip(":,.")
            numbers = find_numbers(match[2])
            has_word = word.casefold() in _WORDS
            if has_word or len(numbers) > 1 or (not match[1] and _YEAR.fullmatch(match[2])):
                named |= _find_matching(known, numbers, is_prefix=has_word or len(numbers) == 1)
    return named


def _find_matching(known: frozenset[Numbers], numbers: Numbers, *, is_prefix: bool) -> set[Numbers]:
    if numbers in known or not is_prefix:
        return {numbers}.intersection(known)
    return {version for version in known if version[: len(numbers)] == numbers}
