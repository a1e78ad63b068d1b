"""Splits words into parts, because inflected forms and compounds of a word share most of their
parts.

Parts are sequences of four letters, which is the size that works best for most European languages
(McNamee and Mayfield 2004, Character N-Gram Tokenization for European Language Text Retrieval), and
the first three letters. An index contains them for documents in languages that its embedding model
does not support, in addition to the terms of the text. They are not needed for scripts without
spaces, whose terms are pairs of characters.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from knowledge.index.terms import find_runs, surface_words, terms, without_accents
from knowledge.stop_words import list_small_words

_SIZE = 4
_BEGINNING = 3
_LEAST_PARTS = 2
_SHARE = 0.65
"""The share of a word's parts that must be in a text for it to contain a form of the word:
"gestern" is not in a text with "gestellt".
"""
_MARK = "~"
"""The first character of every part, which no term of a text begins with."""
_HIRAGANA = re.compile("[\u3040-\u309f]")
_HANGUL = re.compile("[\uac00-\ud7af]")
_ALPHABET = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
"""Letters in scripts without spaces in which two letters do not form a word."""
_ADJACENT = 3
"""The number of adjacent pairs of such letters that indicate a word."""


@dataclass(frozen=True, slots=True)
class ContentWord:
    """A word of a question that names a subject.

    A text contains the word if it contains all of its `terms`, or most of its `parts`.
    """

    terms: tuple[str, ...]
    parts: tuple[str, ...] = ()

    def is_in(self, has: Callable[[str], bool]) -> bool:
        """Return whether a text contains the word; `has` returns whether the text contains a term
        or part.
        """
        held = sum(map(has, self.parts))
        is_likely = held >= _LEAST_PARTS and held >= _SHARE * len(self.parts)
        return is_likely or all(map(has, self.terms))


def list_parts(text: str, language: str) -> list[str]:
    """Return the parts of the words in a text, except for function words."""
    small = list_small_words(language)
    return [part for word in surface_words(text) if word not in small for part in _split(word)]


def list_content_words(text: str, language: str) -> list[ContentWord]:
    """Return the words in a question, without question words and function words."""
    small = list_small_words(language)
    spaced = [
        ContentWord(tuple(terms(word, language)), tuple(_split(word)))
        for word in surface_words(text)
        if word not in small
    ]
    return [*spaced, *_list_unspaced(text, small)]


def _split(word: str) -> Iterator[str]:
    plain = "".join(filter(str.isalpha, without_accents(word)))
    if plain == "" or len(word) < _SIZE:
        return
    yield f"{_MARK}^{plain[:_BEGINNING]}"
    for start in range(len(plain) - _SIZE + 1):
        yield _MARK + plain[start : start + _SIZE]


def _list_unspaced(text: str, small: frozenset[str]) -> Iterator[ContentWord]:
    """Yield the terms that indicate a word in scripts without spaces.

    Korean words begin with their stem; in Japanese, inflectional endings are written in hiragana.
    """
    for run in find_runs(text):
        pairs = [first + second for first, second in pairwise(run)]
        if _HANGUL.match(run):
            yield from (ContentWord((pair,)) for pair in pairs[:1] if pair not in small)
        elif _ALPHABET.match(run):
            windows = (pairs[at : at + _ADJACENT] for at in range(len(pairs) - _ADJACENT + 1))
            yield from (ContentWord(tuple(window)) for window in windows)
        else:
            kept = (pair for pair in pairs if not _HIRAGANA.search(pair) and pair not in small)
            yield from (ContentWord((pair,)) for pair in kept)
