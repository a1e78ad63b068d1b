"""Splits a long text at boundaries that a reader expects: paragraph, line, sentence, word.

A code block that must be split continues as code in the next piece, because marks are split with
the text. A character is never split, nor separated from the characters that combine with it.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from gateway.chat.formatting.marked_text import Mark, Marked

Measure = Callable[[Marked], int]
_BORDERS = (
    re.compile(r"\n\n+"),
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?…])\s|(?<=[。！？।؟])"),
    re.compile(r"\s"),
)
LEAST_SHARE = 0.3
"""A boundary before this share of the possible length would leave too short a piece."""
UNCUT = frozenset({"pre", "code", "link"})
"""Marks that are split only if no other boundary exists."""
ZERO_WIDTH_JOINER = "\u200d"
_FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
VIRAMA = 9
"""The combining class of the character that joins two letters of an Indic script."""


def utf16_units(text: str) -> int:
    """Return the length in UTF-16 units, in which Telegram counts."""
    return len(text) + sum(character > "\uffff" for character in text)


def split(whole: Marked, *, longest: int, measure: Measure) -> list[Marked]:
    """Return pieces of at most `longest` by `measure`, which grows with the text; at least one."""
    pieces, start = [], 0
    while start < len(whole.text):
        near = _near(whole, start, start + longest + 1)
        fits = _fitting(near, start, longest, measure)
        end = _border(near, start, fits)
        piece = near.slice(start, end)
        if piece.text:
            pieces.append(piece)
        start = end
    return pieces or [whole]


def _near(whole: Marked, start: int, end: int) -> Marked:
    """Return the whole text with only those marks that touch the range from `start` to `end`."""
    marks = (mark for mark in whole.marks if mark.start < end and mark.end > start)
    return Marked(whole.text, tuple(marks))


def _fitting(whole: Marked, start: int, longest: int, measure: Measure) -> int:
    """Return the furthest end of a piece that fits, found by halving; at least one character."""
    # One more than the longest: it may be the space that is left out behind a last word.
    low, high = start + 1, min(len(whole.text), start + longest + 1)
    while low < high:
        middle = (low + high + 1) // 2
        if measure(whole.slice(start, middle)) <= longest:
            low = middle
        else:
            high = middle - 1
    return low


def _border(whole: Marked, start: int, fits: int) -> int:
    if fits >= len(whole.text):
        return fits
    least = start + int((fits - start) * LEAST_SHARE)
    uncut = [mark for mark in whole.marks if mark.kind in UNCUT]
    across = [mark for mark in uncut if mark.start < fits < mark.end]
    code = [mark for mark in across if mark.kind == "pre"]
    if code and code[0].start > least:
        return code[0].start  # the block fits the next piece better than both
    for kept in (uncut, [mark for mark in uncut if mark not in across]):
        for border in _BORDERS[1:2] if code else _BORDERS:
            ends = [end for end in _ends(border, whole.text, least, fits, kept) if end > start]
            if ends:
                return ends[-1]
    return _whole_character(whole.text, start, fits)


def _ends(
    border: re.Pattern[str], text: str, least: int, fits: int, uncut: Sequence[Mark]
) -> Iterator[int]:
    outermost = _outermost(uncut)
    ends = [mark.end for mark in outermost]
    for found in border.finditer(text, least, fits):
        end = found.end()
        place = bisect_right(ends, end)
        if place == len(outermost) or outermost[place].start >= end:
            yield end


def _outermost(marks: Sequence[Mark]) -> list[Mark]:
    """Return the marks that are within no other; marks never cross."""
    found: list[Mark] = []
    for mark in marks:
        if not found or mark.start >= found[-1].end:
            found.append(mark)
    return found


def _whole_character(text: str, start: int, fits: int) -> int:
    end = fits
    while end > start + 1 and _belongs(text, end):
        end -= 1
    return end if end > start + 1 or not _belongs(text, end) else fits


def _belongs(text: str, place: int) -> bool:
    """Return whether the character at `place` combines with the one before it."""
    before, character = text[place - 1], text[place]
    if before == ZERO_WIDTH_JOINER or unicodedata.combining(before) == VIRAMA:
        return True
    if character in _FLAG_LETTERS:
        # Flags are pairs: an odd number of such letters before this one leaves it the second.
        return (place - len(text[:place].rstrip(_FLAG_LETTERS))) % 2 == 1
    return (
        unicodedata.category(character).startswith("M")
        or character == ZERO_WIDTH_JOINER
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # the colour of a skin
        or "\U000e0020" <= character <= "\U000e007f"  # the letters of a region's flag
    )
