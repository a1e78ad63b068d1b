"""Splits a long text on borders that a reader expects: paragraph, line, sentence, word.

A code block that has to be cut goes on as code in the next piece, because marks are cut with the
text. Never is a character cut in two, nor what belongs to it left behind.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator

from gateway.pushing.marking import Marked

Measure = Callable[[Marked], int]
_BORDERS = (
    re.compile(r"\n\n+"),
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?…])\s|(?<=[。！？।؟])"),
    re.compile(r"\s"),
)
LEAST_SHARE = 0.3
"""A border before this share of what fits would leave a piece that is too short to read."""
_JOINERS = {"\u200d", "\ufe0f", "\ufe0e"}


def utf16_units(text: str) -> int:
    """Return the length that Telegram counts."""
    return len(text) + sum(character > "\uffff" for character in text)


def split(whole: Marked, *, longest: int, measure: Measure) -> list[Marked]:
    """Return pieces of at most `longest` by `measure`, which grows with the text; at least one."""
    pieces, start = [], 0
    while start < len(whole.text):
        fits = _fitting(whole, start, longest, measure)
        end = _border(whole, start, fits)
        piece = whole.cut(start, end)
        if piece.text:
            pieces.append(piece)
        start = end
    return pieces or [whole]


def _fitting(whole: Marked, start: int, longest: int, measure: Measure) -> int:
    """Return the furthest end of a piece that fits, found by halving; at least one character."""
    low, high = start + 1, min(len(whole.text), start + longest)
    while low < high:
        middle = (low + high + 1) // 2
        if measure(whole.cut(start, middle)) <= longest:
            low = middle
        else:
            high = middle - 1
    return low


def _border(whole: Marked, start: int, fits: int) -> int:
    if fits >= len(whole.text):
        return fits
    least = start + int((fits - start) * LEAST_SHARE)
    code = [mark for mark in whole.marks if mark.kind == "pre" and mark.start < fits < mark.end]
    if code and code[0].start > least:
        return code[0].start  # the block fits the next piece better than both
    for border in _BORDERS[1:2] if code else _BORDERS:
        ends = [end for end in _ends(border, whole, least, fits) if end > start]
        if ends:
            return ends[-1]
    return _whole_character(whole.text, start, fits)


def _ends(border: re.Pattern[str], whole: Marked, least: int, fits: int) -> Iterator[int]:
    blocks = [mark for mark in whole.marks if mark.kind in {"pre", "code", "link"}]
    inside = [mark for mark in blocks if not mark.start < fits < mark.end]
    for found in border.finditer(whole.text, least, fits):
        end = found.end()
        if not any(mark.start < end < mark.end for mark in inside):
            yield end


def _whole_character(text: str, start: int, fits: int) -> int:
    end = fits
    while end > start + 1 and (
        unicodedata.combining(text[end]) or text[end] in _JOINERS or text[end - 1] == "\u200d"
    ):
        end -= 1
    return end if end > start + 1 else fits
