"""Splits text into the terms of the keyword search.

A word becomes its stem (Snowball, by the text's language) without accents. An identifier yields
itself and its parts: `num_cpus` also `num` and `cpus`, `RayCluster` also `ray` and `cluster`.
Scripts without spaces, and Korean, yield pairs of adjacent characters. Function words are omitted
unless the text has no others.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Protocol

from py_rust_stemmers import SnowballStemmer

from knowledge.stop_words import STOP_WORDS

# A part of the content hash: another analysis requires another index.
VERSION = "1"

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u30ff\u3130-\u318f"
    "\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs and points are no letters to `re`, but belong to the word.
_SIGNS = "\u0300-\u036f\u0591-\u05c7\u064b-\u0655\u0670\u0900-\u0903\u093a-\u094f\u0951-\u0957"
_LETTER = rf"(?:[^\W_{_UNSPACED}]|[{_SIGNS}\u0962\u0963\u0981-\u0dff])"
_WORD = re.compile(rf"[{_UNSPACED}]+|{_LETTER}+(?:[_'\u2019]{_LETTER}+)*")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_PARTS = re.compile(r"[_'\u2019]|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LONGEST = 60

_STEMMERS = {
    "ar": "arabic",
    "da": "danish",
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}

_ENGLISH_WORDS = (
    "a about am an and any are as at be because been being but by can could did do does doing for "
    "from get give got had has have having he her here him his how i if in into is it its just let "
    "may me might must my no nor not of on or our out please shall she should so some such tell "
    "than thank thanks that the their them then there these they this those to too us very want "
    "was we were what when where which while who whom whose why will with would you your"
)
_ENGLISH = frozenset(_ENGLISH_WORDS.split())


class _Stemmer(Protocol):
    def stem_word(self, word: str) -> str: ...


def terms(text: str, language: str) -> list[str]:
    """Return the terms of a text in order, repeated as often as they stand there."""
    found = [part for word in _words(text) for part in _parts(word)]
    kept = [word for word in found if not _is_function_word(word, language)]
    return [_stem(word, language) for word in (kept or found)]


def leave_out_joints(found: Sequence[str], is_known: Callable[[str], bool]) -> list[str]:
    """Return terms without the pairs of characters that join two words of a script without spaces.

    A pair that no document contains, and that shares a character with a neighbour that one does,
    begins with the end of a word or ends with the beginning of the next one.
    """
    known = [is_known(term) for term in found]

    def is_joint(at: int) -> bool:
        term = found[at]
        if known[at] or len(term) != 2 or not _IS_UNSPACED.match(term):
            return False
        follows = at > 0 and known[at - 1] and found[at - 1][-1] == term[0]
        precedes = at + 1 < len(found) and known[at + 1] and found[at + 1][0] == term[-1]
        return follows or precedes

    return [term for at, term in enumerate(found) if not is_joint(at)]


def surface_words(text: str) -> list[str]:
    """Return the words with spaces between them as they are spelled, in lower case."""
    return [word.lower() for word in _words(text) if not _IS_UNSPACED.match(word)]


def _words(text: str) -> Iterator[str]:
    for found in _WORD.finditer(unicodedata.normalize("NFKC", text)):
        yield found[0][:_LONGEST] if not _IS_UNSPACED.match(found[0]) else found[0]


def _parts(word: str) -> Iterator[str]:
    if _IS_UNSPACED.match(word):
        yield from _pairs(word)
        return
    yield word.lower()
    parts = [part for part in _PARTS.split(word) if len(part) > 1]
    if len(parts) > 1 or (parts and parts[0] != word):
        yield from (part.lower() for part in parts)


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    yield from (run[start : start + 2] for start in range(len(run) - 1))


def _is_function_word(word: str, language: str) -> bool:
    return word in _ENGLISH or (language != "en" and word in STOP_WORDS)


@lru_cache(maxsize=1 << 16)
def _stem(word: str, language: str) -> str:
    stemmer = _stemmer(language)
    return _without_accents(stemmer.stem_word(word) if stemmer is not None else word)


@lru_cache(maxsize=len(_STEMMERS))
def _stemmer(language: str) -> _Stemmer | None:
    name = _STEMMERS.get(language)
    stemmer: _Stemmer | None = SnowballStemmer(name) if name is not None else None
    return stemmer


def _without_accents(word: str) -> str:
    """Drop the accents of Latin letters; elsewhere a mark makes another letter."""
    if word.isascii() or not "a" <= unicodedata.normalize("NFD", word)[0] <= "z":
        return word
    apart = unicodedata.normalize("NFD", word)
    return "".join(letter for letter in apart if not unicodedata.combining(letter))
