"""Finds references to numbered parts of a document, such as "Annex V", "clause 44" or "§ 5"."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

_REFERENCE = re.compile(
    r"(?<![^\W\d_])([^\W\d_]{2,20}|§{1,2})\s{1,3}(\d{1,4}[a-z]?|[IVXLC]{1,6}|[A-Z])(?![^\W_])"
)
"""A word or a section sign, followed by a number or a letter."""
LABELS = frozenset(
    {"annex", "appendix", "article", "chapter", "clause", "exhibit", "paragraph", "part", "rule",
     "schedule", "section", "table", "§", "§§", "abschnitt", "absatz", "anhang", "anlage",
     "artikel", "kapitel", "příloha", "článek", "oddíl", "príloha", "článok", "załącznik",
     "artykuł", "annexe", "anexo", "artículo", "capítulo", "allegato", "articolo", "artigo"}
)  # fmt: skip
"""Words that documents use to number their parts."""

_PART = re.compile(r"(?m)^[\s>#*_(-]{0,12}(\d{1,4}[a-z]?|[IVXLC]{1,6}|[A-Z])[.):\s]")
"""The number of a part at the beginning of a line, such as in the heading "27. Termination"."""


class KnownReferences:
    """The numbers and letters of document parts in texts, with any known label.

    Labels are not compared, because an answer may be in a different language.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._numbers = frozenset[str]().union(*map(_list_numbers, texts))

    def find_unknown(self, text: str) -> tuple[str, ...]:
        """Return the references in `text` to parts that do not occur in the texts."""
        references = (
            f"{label} {number}"
            for label, number in _list_labelled(text)
            if number.casefold() not in self._numbers
        )
        return tuple(dict.fromkeys(references))


def list_references(text: str) -> Iterator[tuple[str, str]]:
    """Yield each label with its number or letter, such as "Annex" and "V".

    A lower-case word counts only if it is a known label followed by a number.
    """
    for match in _REFERENCE.finditer(text):
        label, number = match[1], match[2]
        is_written_small = label.casefold() in LABELS and number[0].isdecimal()
        if label[0].isupper() or label.startswith("§") or is_written_small:
            yield label, number


def list_part_numbers(text: str) -> set[str]:
    """Return the numbers and letters at the beginning of lines, in lower case."""
    return {number.casefold() for number in _PART.findall(text)}


@lru_cache(maxsize=256)
def _list_numbers(text: str) -> frozenset[str]:
    labelled = {number.casefold() for _, number in _list_labelled(text)}
    return frozenset(labelled | list_part_numbers(text))


def _list_labelled(text: str) -> Iterator[tuple[str, str]]:
    return (pair for pair in list_references(text) if pair[0].casefold() in LABELS)
