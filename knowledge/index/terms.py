"""Splits text into the terms of the keyword search.

A word is reduced to its stem (Snowball, for the text's language) without accents. An identifier is
indexed as a whole and by its parts: `num_cpus` also as `num` and `cpus`, `RayCluster` also as `ray`
and `cluster`, `14.2` also as `14` and `2`, and `v2.1.0` also as `2.1.0`. Text in scripts without
spaces, and in Korean, is split into pairs of adjacent characters. Function words are omitted unless
the text contains no other words.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from py_rust_stemmers import SnowballStemmer

from knowledge.stop_words import STOP_WORDS

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u30ff\u3130-\u318f"
    "\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs and points are not letters to `re`, but belong to the word.
_SIGNS = "\u0300-\u036f\u0591-\u05c7\u064b-\u0655\u0670\u0900-\u0903\u093a-\u094f\u0951-\u0957"
_LETTER = rf"(?:[^\W_{_UNSPACED}]|[{_SIGNS}\u0962\u0963\u0981-\u0dff])"
_WORD = re.compile(rf"[{_UNSPACED}]+|{_LETTER}+(?:[_'\u2019]{_LETTER}+)*")
# The group makes a run more than a word.
_RUN = re.compile(
    rf"[{_UNSPACED}]+"
    rf"|{_LETTER}+(?:[_'\u2019]{_LETTER}+)*((?:[./:#_'\u2019-]|(?<=\d),(?=\d)){_LETTER}+)*"
)
_JOINT = re.compile(r"[./:#,-]")
_DIGIT = re.compile(r"\d")
_NAMED_VERSION = re.compile(r"v(?=\d)")
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


def terms(text: str, language: str) -> list[str]:
    """Return the terms of a text in order, repeated as often as they occur."""
    every = list(_list_terms(unicodedata.normalize("NFKC", text)))
    kept = [word for word in every if not _is_function_word(word, language)]
    return [_stem(word, language) for word in (kept or every)]


def leave_out_unknown(terms_asked: Sequence[str], is_known: Callable[[str], bool]) -> list[str]:
    """Return the terms of a question without those whose absence from all documents is not
    informative.

    An unknown identifier is represented by its parts, because an index that was built before
    identifiers were indexed as a whole contains only the parts. In a script without spaces, an
    unknown pair of characters that shares a character with a known neighbour joins two words.
    """
    known = [is_known(term) for term in terms_asked]

    def is_left_out(at: int) -> bool:
        term = terms_asked[at]
        if known[at] or (len(term) != 2 or not _IS_UNSPACED.match(term)):
            return not known[at] and _JOINT.search(term) is not None
        follows = at > 0 and known[at - 1] and terms_asked[at - 1][-1] == term[0]
        precedes = (
            at + 1 < len(terms_asked) and known[at + 1] and terms_asked[at + 1][0] == term[-1]
        )
        return follows or precedes

    return [term for at, term in enumerate(terms_asked) if not is_left_out(at)]


def surface_words(text: str) -> list[str]:
    """Return the words in a text that are separated by spaces, as they are spelled, in lower
    case.
    """
    words = _WORD.findall(unicodedata.normalize("NFKC", text))
    return [word[:_LONGEST].lower() for word in words if not _IS_UNSPACED.match(word)]


def find_runs(text: str) -> list[str]:
    """Return the sequences of characters from scripts without spaces, and from Korean."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text))
    return [word for word in words if _IS_UNSPACED.match(word)]


def without_accents(word: str) -> str:
    """Remove accents from Latin letters. Marks in other scripts are kept, because they distinguish
    letters.
    """
    if word.isascii() or not "a" <= unicodedata.normalize("NFD", word)[0] <= "z":
        return word
    apart = unicodedata.normalize("NFD", word)
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


def _list_terms(text: str) -> Iterator[str]:
    for run in _RUN.finditer(text):
        if run[1] is not None:
            yield from _list_identifiers(run[0].lower())
        for word in _WORD.findall(run[0]) if run[1] is not None else (run[0],):
            yield from _parts(word)


def _list_identifiers(run: str) -> Iterator[str]:
    """Yield each number, version, code, or date as a whole, and a version also without its `v`."""
    if len(run) <= _LONGEST and _JOINT.search(run) and _DIGIT.search(run):
        yield run
        if _NAMED_VERSION.match(run):
            yield run[1:]


def _parts(word: str) -> Iterator[str]:
    if _IS_UNSPACED.match(word):
        yield from _pairs(word)
        return
    word = word[:_LONGEST]
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
    if _JOINT.search(word):
        return word
    stem = _find_stemming(language)
    return without_accents(word if stem is None else stem(word))


@lru_cache(maxsize=len(_STEMMERS))
def _find_stemming(language: str) -> Callable[[str], str] | None:
    name = _STEMMERS.get(language)
    return None if name is None else SnowballStemmer(name).stem_word
