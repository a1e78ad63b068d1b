"""Cuts texts of any script into words the offline rules can compare."""

import re
import unicodedata

from llm.offline.phrases import FUNCTION_WORDS, POINTING

# Python counts combining marks (Arabic vowels, Devanagari vowel signs) as no part of a word.
_MARKS = "\u0300-\u036f\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0962\u0963"
_WORD = re.compile(rf"(?:[^\W_]|[{_MARKS}])+")
_SIGNS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_RUN = re.compile(rf"[{_SIGNS}]+|[^{_SIGNS}]+")
_UNSPACED = re.compile(rf"[{_SIGNS}]+")
_HIRAGANA = re.compile("[\u3040-\u309f]+")
_STEM_LETTERS = 6
_READ_CHARACTERS = 4000


def normalise(text: str) -> str:
    """Return `text` in lower case, without punctuation, one space between words.

    Only the beginning of a text is read: a question has said what it is about by then.
    """
    read = unicodedata.normalize("NFKC", text[:_READ_CHARACTERS]).casefold()
    return " ".join(_WORD.findall(read))


def words(text: str) -> list[str]:
    """Return the words of `text` in lower case; unspaced scripts give pairs of signs."""
    found: list[str] = []
    for word in normalise(text).split():
        for run in _RUN.findall(word):
            found += _pairs(run) if _UNSPACED.fullmatch(run) else [run]
    return found


def content_words(text: str) -> list[str]:
    """Return the words with a subject: no function words, no words that only refer back."""
    return [word for word in words(text) if _carries(word)]


def stems(text: str) -> frozenset[str]:
    """Return the content words cut to their first letters, to compare across endings."""
    return frozenset(word[:_STEM_LETTERS].removesuffix("s") for word in content_words(text))


def _carries(word: str) -> bool:
    if word in FUNCTION_WORDS or word in POINTING or _HIRAGANA.fullmatch(word):
        return False
    return len(word) > 1 or _UNSPACED.fullmatch(word) is not None


def _pairs(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    return [run[place : place + 2] for place in range(len(run) - 1)]
