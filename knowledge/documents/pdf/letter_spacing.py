"""Finds letters that are spaced out for emphasis, and makes the space part of each letter."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median_low

from knowledge.documents.pdf.glyphs import GAP_OF_WORDS, Glyph

_LEAST_GAP, _WIDEST_GAP = 0.05, 1.5
"""Gaps between spaced-out letters and between their words, in font sizes."""
_CLOSEST, _WIDEST = 0.21, 0.45
"""Widest space, in font sizes, that is no space between words; and that between letters of a word.
"""
_UNEVEN, _SAME = 0.07, 0.005
"""By how much the space between letters may be wider than usual, in font sizes: kerning makes it
narrower, and the space beside a run may be an ordinary one. All spaces of a line may be the same.
"""
_SPACED = re.compile(r"[\w.,:;!?/%&()§€$£'\u2019\u2013-]+\Z")
_OPENING = "([\u201e\u201c\u2018\u00ab\u00bb\"'/"
_WORD = re.compile(r"(?<!\w)[^\W\d_]{4,}(?!\w)")
_NUMBER = re.compile(r"\w[.,]\w")
"""A word, or a sign that has no space before it, proves that letters and digits are spaced out."""


def close_up(glyphs: Sequence[Glyph]) -> None:
    """Let each spaced-out letter end where the next one begins, so that words are found by gaps.

    The space is the same between all letters of a run, and wider between its words. A wide space
    may be that between words of one letter; then a word of the run proves it.
    """
    for before, run, behind in _find_runs(glyphs):
        gaps = [_find_gap(*pair) for pair in pairwise(run)]
        drawn = [glyph.has_drawn_space for glyph in run[1:]]
        own = [gap for gap, is_drawn in zip(gaps, drawn, strict=True) if not is_drawn]
        inner = [gap for gap in own if gap <= min(own) + GAP_OF_WORDS]
        if len(inner) < 2:
            continue
        space = median_low(inner)
        ends = [
            is_drawn or gap > space + _UNEVEN for gap, is_drawn in zip(gaps, drawn, strict=True)
        ]
        # The first letter may be the last one of a word that is not spaced out.
        is_word = before is not None and before.text.isalnum()
        if _is_attached(before, run[0]) and (is_word or gaps[0] > GAP_OF_WORDS):
            ends[0] = True
            space = 1.0 if abs(gaps[0] - space) < _SAME else space
        if behind is not None and behind.text.isalnum() and _is_attached(run[-1], behind):
            ends[-1] = True
        if ends.count(False) > 1 and _is_spaced(run, ends, space):
            _close_run(run, ends, space)


def _close_run(run: Sequence[Glyph], ends: Sequence[bool], space: float) -> None:
    for before, glyph, ends_word in zip(run, run[1:], ends, strict=False):
        if not ends_word:
            glyph.has_space = False
            before.right = glyph.left
        elif not glyph.has_drawn_space:
            wider = before.right + space * before.typeface.size
            narrowest = glyph.left - GAP_OF_WORDS * glyph.typeface.size
            before.right = max(before.right, min(wider, narrowest))


def _find_runs(
    glyphs: Sequence[Glyph],
) -> Iterator[tuple[Glyph | None, list[Glyph], Glyph | None]]:
    """Yield glyphs of one size, all of which are apart, with those before and behind them."""
    before: Glyph | None = None
    run: list[Glyph] = []
    for glyph in glyphs:
        if run and not _follows(run[-1], glyph):
            yield before, run, glyph
            before, run = run[-1], []
        run.append(glyph)
    yield before, run, None


def _is_attached(before: Glyph | None, glyph: Glyph) -> bool:
    return (
        before is not None
        and before.base == glyph.base
        and abs(_find_gap(before, glyph)) < _LEAST_GAP
        and before.text not in _OPENING
    )


def _follows(before: Glyph, glyph: Glyph) -> bool:
    one, other = before.typeface, glyph.typeface
    return (
        (one.size, one.turn, before.base) == (other.size, other.turn, glyph.base)
        and _LEAST_GAP <= _find_gap(before, glyph) <= _WIDEST_GAP
        and _SPACED.match(before.text) is not None
        and _SPACED.match(glyph.text) is not None
        and (before.text.isalnum() or glyph.text.isalnum())
    )


def _find_gap(before: Glyph, glyph: Glyph) -> float:
    return (glyph.left - before.right) / before.typeface.size


def _is_spaced(run: Sequence[Glyph], ends: Sequence[bool], space: float) -> bool:
    if space <= _CLOSEST:
        return True
    text = "".join(
        f"{glyph.text} " if is_end else glyph.text
        for glyph, is_end in zip(run, (*ends, True), strict=True)
    )
    words = _WORD.findall(text)
    is_word = any(word in (word.upper(), word.lower(), word.capitalize()) for word in words)
    return space <= _WIDEST and (is_word or _NUMBER.search(text) is not None)
