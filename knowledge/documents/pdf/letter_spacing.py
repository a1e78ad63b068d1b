"""Finds letters that are spaced out for emphasis or are in boxes of their own, and makes the space
part of each letter.
"""

import re
from bisect import bisect, bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from statistics import median_low

from knowledge.documents.pdf.drawn_grids import NEAR, merge_strokes
from knowledge.documents.pdf.glyphs import GAP_OF_WORDS, Glyph
from knowledge.documents.pdf.page_text import Stroke

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
_LEAST_BOXED, _MOST_LINES = 3, 3_000
"""Minimum number of such boxes in a row, and maximum number of the vertical lines of a page."""
_WIDEST_BOX, _HIGHEST_BOX = 1.8, 2.4
"""Size of a box for one letter, in font sizes; a wider one may be a cell."""
_UNEVEN_BOXES = 0.75
"""The step to which the widths of such boxes are rounded, in points."""
_GAP_OF_BOXES = 0.3
"""The gap that an empty box is, in font sizes."""


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


def close_boxes(glyphs: Sequence[Glyph], strokes: Sequence[Stroke]) -> None:
    """Let each letter end where the next one begins if each is in a box of a form; an empty box is
    a space between words.
    """
    order = sorted(range(len(glyphs)), key=lambda at: glyphs[at].base)
    bases = [glyphs[at].base for at in order]
    for edges, bottom, top in _find_boxes(strokes):
        near = sorted(order[bisect_left(bases, bottom - 1) : bisect(bases, top)])
        boxes = [bisect(edges, (glyphs[at].left + glyphs[at].right) / 2) for at in near]
        places = [(at, box) for at, box in zip(near, boxes, strict=True) if 0 < box < len(edges)]
        own = [glyphs[at] for at, _ in places]
        size = min((glyph.typeface.size for glyph in own), default=0.0)
        is_small = edges[1] - edges[0] <= _WIDEST_BOX * size and top - bottom <= _HIGHEST_BOX * size
        pairs = list(pairwise(places))
        is_row = all(one[0] + 1 == other[0] and one[1] < other[1] for one, other in pairs)
        if is_small and is_row and not _are_choices("".join(glyph.text for glyph in own)):
            for (at, box), (_, following) in pairs:
                gap = _GAP_OF_BOXES * size * (following > box + 1)
                glyphs[at + 1].has_space = gap > 0
                glyphs[at].right = glyphs[at + 1].left - gap


def _are_choices(text: str) -> bool:
    """Return whether letters are no word: few, equal as crosses, or counting as choices do."""
    steps = {ord(other) - ord(one) for one, other in pairwise(text)}
    return len(text) < _LEAST_BOXED or steps in ({0}, {1})


def _find_boxes(strokes: Sequence[Stroke]) -> Iterator[tuple[list[float], float, float]]:
    """Yield the edges of boxes of one width beside each other, and their lower and upper ends.

    Boxes that go on beside higher ones are cells of a table.
    """
    merged = merge_strokes(strokes, is_vertical=True)
    upright = sorted(merged[:_MOST_LINES], key=attrgetter("start"))
    for _, group in groupby(upright, lambda one: round(one.start / NEAR)):
        lines = sorted(group, key=attrgetter("at"))
        widths = [other.at - one.at for one, other in pairwise(lines)]
        first = 0
        for _, own in groupby(widths, lambda width: round(width / _UNEVEN_BOXES)):
            run = lines[first : first + len(list(own)) + 1]
            low, high = run[0].at - widths[first] - 1, run[-1].at + widths[first] + 1
            bottom, top = run[0].start, max(one.end for one in run)
            beyond = [
                one for one in upright
                if low < one.at < high and one.start < top - 1 and bottom + 1 < one.end
            ]  # fmt: skip
            if len(beyond) == len(run) > _LEAST_BOXED:
                yield [one.at for one in run], bottom, top
            first += len(run) - 1


def _close_run(run: Sequence[Glyph], ends: Sequence[bool], space: float) -> None:
    for before, glyph, ends_word in zip(run, run[1:], ends, strict=False):
        if not ends_word:
            glyph.has_space = False
            before.right = glyph.left
        elif not glyph.has_drawn_space:
            wider = before.right + space * before.typeface.size
            narrowest = glyph.left - GAP_OF_WORDS * glyph.typeface.size
            before.right = max(before.right, min(wider, narrowest))


def _find_runs(glyphs: Sequence[Glyph]) -> Iterator[tuple[Glyph | None, list[Glyph], Glyph | None]]:
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
