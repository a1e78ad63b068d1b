"""Finds references to numbered parts of a document, such as "Annex V", "clause 44" or "§ 5"."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

_REFERENCE = re.compile(
    r"(?<![^\W\d_])([^\W\d_]{2,20}|§{1,2})\s{1,3}(\d{1,4}[a-z]?|[IVXLC]{1,6}|[A-Z])(?![^\W_])"
)
"""A word, or a sign, with a number or a letter."""
LABELS = frozenset(
    {"annex", "appendix", "article", "chapter", "clause", "exhibit", "paragraph", "part", "rule",
     "schedule", "section", "table", "§", "§§", "abschnitt", "absatz", "anhang", "anlage",
     "artikel", "kapitel", "příloha", "článek", "oddíl", "príloha", "článok", "załącznik",
     "artykuł", "annexe", "anexo", "artículo", "capítulo", "allegato", "articolo", "artigo"}
)  # fmt: skip
"""Words that number the parts of a document. Any other word counts if a source numbers with it."""

_PART = re.compile(r"(?m)^[\s>#*_(-]{0,12}(\d{1,4}[a-z]?|[IVXLC]{1,6}|[A-Z])[.):\s]")
"""The number of a part at the beginning of a line, such as a heading: "27. Termination"."""


class KnownReferences:
    """The numbers and letters of the parts that texts name, under any known label.

    The labels are not compared: an answer in another language has other words for them.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._numbers = frozenset[str]().union(*map(_list_numbers, texts))

    def find_unknown(self, text: str) -> tuple[str, ...]:
        """Return the references of `text` to parts that the texts do not name."""
        found = (
            f"{label} {number}"
            for label, number in _list_labelled(text)
            if number.casefold() not in self._numbers
        )
        return tuple(dict.fromkeys(found))


def list_references(text: str) -> Iterator[tuple[str, str]]:
    """Yield each label with its number or letter, such as "Annex" and "V".

    A word in lower case counts if it is a known label and a number follows.
    """
    for found in _REFERENCE.finditer(text):
        label, number = found[1], found[2]
        is_written_small = label.casefold() in LABELS and number[0].isdecimal()
        if label[0].isupper() or label.startswith("§") or is_written_small:
            yield label, number


def list_part_numbers(text: str) -> set[str]:
    """Return the numbers and letters at the beginning of lines, in lower case."""
    return {found.casefold() for found in _PART.findall(text)}


@lru_cache(maxsize=256)
def _list_numbers(text: str) -> frozenset[str]:
    labelled = {number.casefold() for _, number in _list_labelled(text)}
    return frozenset(labelled | list_part_numbers(text))


def _list_labelled(text: str) -> Iterator[tuple[str, str]]:
    return (found for found in list_references(text) if found[0].casefold() in LABELS)
