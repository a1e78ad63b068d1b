"""Removes disguises from a text, so that patterns find the words that a reader would recognise.

A disguised text writes "ignore" with letters of other scripts, with digits for letters, or with
spaces, dots or invisible characters between the letters. Each `reading` removes one kind of
disguise and leaves ordinary text unchanged. Readings are used for matching and are never shown. All
functions take time in proportion to the text.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from pathlib import Path

_TABLES = tomllib.loads(Path(__file__).with_name("confusables.toml").read_text(encoding="utf-8"))
_LATIN = str.maketrans(
    {
        character: letter
        for letter, characters in _TABLES["letters"].items()
        for character in characters
    }
)
_FIRST, _SECOND = 0, -1
_WORDS = frozenset(_TABLES["words"]["spoken"].split())
_LONGEST_WORD = max(map(len, _WORDS))
_LEAST_RUN_TOGETHER = 14
_UNKNOWN_LETTER = 1.2
"""The cost of a letter outside of known words; a known word costs 1."""
_TAGS = range(0xE0020, 0xE007F)
_TAG_OFFSET = 0xE0000

# Characters without width or meaning: format characters, fillers, variation selectors.
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_MARKS = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
_SPACES = re.compile(r"\s{2,}|[^\S\n ]")
_SAME_SIGN = re.compile(r"([^\w\s])\1+")
_SAME_LETTER = re.compile(r"([^\W\d_])\1{2,}")
_WITHIN_WORD = re.compile(r"(?<=[^\W_])(?:(?!\s)[\W_]){1,3}(?=[^\W_])")
_SPELLED = re.compile(r"(?<!\S)\S(?:\s{1,9}\S(?!\S)){4,}")
_WIDE_SPACE = re.compile(r"\s{2,}")
_ONE_SPACE = re.compile(r"\s")
_EXCLAIMED = re.compile(r"!(?=[@$|+]{0,3}[^\W_])")
_LONG_WORD = re.compile(rf"[A-Za-z]{{{_LEAST_RUN_TOGETHER},}}")


def readings(text: str) -> Iterator[str]:
    """Yield `text` unchanged, then without each kind of disguise; no reading twice."""
    seen: set[str] = set()
    for reading in map(_collapse_runs, _undo_disguises(text)):
        if reading not in seen:
            seen.add(reading)
            yield reading


def _undo_disguises(text: str) -> Iterator[str]:
    shown = text if text.isascii() else _IGNORABLE.sub("", text)
    yield shown
    folded = _fold_to_latin(shown)
    for lettered in (folded, *(_without_leet(folded, way) for way in (_FIRST, _SECOND))):
        joined = _join_letters(lettered)
        yield from (lettered.replace("_", " "), joined, " ".join(joined.split()))
    if shown != text:
        yield _fold_to_latin(_IGNORABLE.sub(" ", text)).replace("_", " ")
        yield "".join(chr(ord(it) - _TAG_OFFSET) for it in text if ord(it) in _TAGS)


def _fold_to_latin(text: str) -> str:
    """Return `text` with Latin letters for all characters that look like them."""
    if not text.isascii():
        text = _MARKS.sub("", unicodedata.normalize("NFKD", text)).translate(_LATIN)
    return _SAME_LETTER.sub(r"\1", text)


def _join_letters(text: str) -> str:
    """Return `text` with letters joined to words that spaces or signs keep apart."""
    joined = _WITHIN_WORD.sub("", _SPELLED.sub(_join_spelled, text))
    return _LONG_WORD.sub(lambda found: _split_words(found[0]), joined.replace("_", " "))


def _join_spelled(found: re.Match[str]) -> str:
    """Return words that were spelled letter by letter; equal gaps make them one word."""
    between = _WIDE_SPACE.sub("\x00", found[0])
    return _ONE_SPACE.sub("", between).replace("\x00", " ")


def _split_words(letters: str) -> str:
    """Return `letters` split into listed words, with the fewest remaining letters.

    The letters between two listed words make a word, too.
    """
    lowered = letters.lower()
    costs = [0.0]
    begins = [0]
    for end in range(1, len(lowered) + 1):
        cost, begin = costs[end - 1] + _UNKNOWN_LETTER, -1
        for start in range(max(0, end - _LONGEST_WORD), end):
            if costs[start] + 1 < cost and lowered[start:end] in _WORDS:
                cost, begin = costs[start] + 1, start
        costs.append(cost)
        begins.append(begin)
    words: list[str] = []
    end = len(lowered)
    unknown = end
    while end:
        begin = begins[end]
        if begin < 0:
            end -= 1
            continue
        words += [lowered[end:unknown], lowered[begin:end]]
        end = unknown = begin
    words.append(lowered[:unknown])
    return " ".join(word for word in reversed(words) if word)


def _without_leet(text: str, way: int) -> str:
    """Return `text` with letters for digits and signs; an exclamation mark only before a letter."""
    return _EXCLAIMED.sub("i", text).translate(_LEET[way])


def _collapse_runs(text: str) -> str:
    """Return `text` with one space, line end or sign for each run of them."""
    spaced = _SPACES.sub(lambda found: "\n" if "\n" in found[0] else " ", text)
    return _SAME_SIGN.sub(r"\1", spaced)


_LEET = {
    way: str.maketrans({sign: letters[way] for sign, letters in _TABLES["leet"].items()})
    for way in (_FIRST, _SECOND)
}
