"""Finds letters that are spaced out for emphasis or are in boxes of their own, and makes the space
part of each letter.
"""

import re
from bisect import bisect, bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby, islice, pairwise
from operator import attrgetter
from statistics import median_low

from knowledge.documents.pdf.drawn_grids import NEAR, merge_strokes
from knowledge.documents.pdf.glyphs import BASELINE, GAP_OF_WORDS, Glyph
from knowledge.documents.pdf.page_objects import Box
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
_LEAST_BOXED, _MOST_BOXED = 3, 300
"""Minimum number of such boxes in a row, and maximum number of the rows of a page."""
_WIDEST_BOX, _HIGHEST_BOX = 1.8, 2.4
"""Size of a box for one letter, in font sizes; a wider one may be a cell."""
_UNEVEN_BOXES = 0.75
"""Maximum difference of the widths of such boxes, in points."""
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


def close_boxes(glyphs: Sequence[Glyph], strokes: Sequence[Stroke]) -> list[Box]:
    """Let each letter end where the next one begins if each is in a box of a form; an empty box is
    a space between words. Return the places of these boxes, whose lines part no cells.
    """
    order = sorted(range(len(glyphs)), key=lambda at: glyphs[at].base)
    bases = [glyphs[at].base for at in order]
    closed: list[Box] = []
    for edges, bottom, top in islice(_find_boxes(strokes), _MOST_BOXED):
        near = order[bisect_left(bases, bottom - 1) : bisect(bases, top)]
        places = [
            (at, bisect(edges, (glyphs[at].left + glyphs[at].right) / 2))
            for at in sorted(near) if 2 * edges[0] < glyphs[at].left + glyphs[at].right
            < 2 * edges[-1]
        ]  # fmt: skip
        own = [glyphs[at] for at, _ in places]
        if _are_boxed(own, places, edges[1] - edges[0], top - bottom):
            for (at, box), (_, following) in pairwise(places):
                gap = _GAP_OF_BOXES * glyphs[at].typeface.size * (following > box + 1)
                glyphs[at + 1].has_space = gap > 0
                glyphs[at].right = glyphs[at + 1].left - gap
            closed.append((edges[0], bottom, edges[-1], top))
    return closed


def _find_boxes(strokes: Sequence[Stroke]) -> Iterator[tuple[list[float], float, float]]:
    """Yield the edges of boxes of one width beside each other, and their lower and upper ends."""
    upright = sorted(merge_strokes(strokes, is_vertical=True), key=lambda one: (one.start, one.at))
    for _, group in groupby(upright, lambda one: round(one.start / NEAR)):
        run: list[Stroke] = []
        for line in [*sorted(group, key=attrgetter("at")), None]:
            width = run[1].at - run[0].at if len(run) > 1 else 0.0
            if line and (not width or abs(line.at - run[-1].at - width) < _UNEVEN_BOXES):
                run.append(line)
                continue
            if len(run) > _LEAST_BOXED:
                edges = [one.at for one in run]
                yield edges, min(one.start for one in run), max(one.end for one in run)
            run = [*run[-1:], line] if line else []


def _are_boxed(
    own: Sequence[Glyph], places: Sequence[tuple[int, int]], width: float, height: float
) -> bool:
    """Return whether glyphs are the letters of words or of a number, one in each box.

    Equal signs are crosses, and letters or digits that count are choices or headers.
    """
    if len(own) < _LEAST_BOXED or any(len(glyph.text) > 1 for glyph in own):
        return False
    size, steps = own[0].typeface.size, {ord(b.text) - ord(a.text) for a, b in pairwise(own)}
    return (
        width <= _WIDEST_BOX * size
        and height <= _HIGHEST_BOX * size
        and steps not in ({0}, {1})
        and sum(glyph.text.isalnum() for glyph in own) >= _LEAST_BOXED
        and all(
            other[0] == one[0] + 1 and one[1] < other[1] for one, other in pairwise(places)
        )
        and all(abs(glyph.base - own[0].base) < BASELINE * size for glyph in own)
    )  # fmt: skip


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
