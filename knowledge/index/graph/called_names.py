"""The names by which texts refer to documents: titles, and the codes at the beginning of titles.

Names are compared by words, ignoring case and punctuation: "AC-2 (10)" refers to the document whose
title begins with "AC-2(10)", and "Article 6(2)" to the one that begins with "Article 6".
"""

import re
from collections.abc import Iterable, Iterator

MOST_WORDS = 10
_WORD = re.compile(r"[^\W_]+")
_LEAST_LETTERS = 4
_CODE = re.compile(
    r"(?:(?:articles?|art|sections?|sec|chapters?|annex|appendix|clause|rule)[. ]{1,2})?"
    r"[A-Za-z]{0,10}[-. ]?\d{1,6}(?:[.-]\d{1,6}){0,5}(?:\(\w{1,4}\)){0,4}(?!\w)",
    re.IGNORECASE,
)

Words = tuple[str, ...]


class NameTable:
    """Names by their first words, which finds all names in a text, including overlapping ones."""

    def __init__(self, names: Iterable[str]) -> None:
        self._lengths: dict[str, set[int]] = {}
        self._names = frozenset(names)
        for name in self._names:
            words = name.split()
            self._lengths.setdefault(words[0], set()).add(len(words))

    def __len__(self) -> int:
        return len(self._names)

    def find_all(self, text: str) -> list[str]:
        """Return the names in a text, without duplicates."""
        words = split_words(text)
        names: dict[str, None] = {}
        for start, word in enumerate(words):
            for length in sorted(self._lengths.get(word, ())):
                name = " ".join(words[start : start + length])
                if name in self._names:
                    names[name] = None
        return list(names)


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _WORD.findall(text.casefold())


def list_called_names(title: str) -> list[str]:
    """Return the names of a document with this title, in lower case with single spaces, without
    duplicates.
    """
    return list(dict.fromkeys(" ".join(name) for name in _list_names(title)))


def list_word_runs(text: str, most_words: int) -> list[str]:
    """Return the sequences of words in a text that may be names, without duplicates.

    `most_words` limits the part of the text that is read.
    """
    words = split_words(text)[:most_words]
    runs = (
        " ".join(words[start : start + length])
        for start in range(len(words))
        for length in range(1, min(MOST_WORDS, len(words) - start) + 1)
    )
    return list(dict.fromkeys(run for run in runs if len(run) >= 2))


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
