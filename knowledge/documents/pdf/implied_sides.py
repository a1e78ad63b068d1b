"""Finds the sides of cells of which only the upper or lower lines, or the backgrounds, are drawn.

Programs draw these for each cell, so that the places where they meet are the sides of cells.
"""

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import groupby, pairwise
from math import inf

from knowledge.documents.pdf.drawn_grids import NEAR
from knowledge.documents.pdf.page_text import DrawnRule, Segment, Stroke, cut_segment

_FURTHEST_LINE = 2.5
"""Maximum distance between a rule and the row above or below it, in font sizes."""
_PITCH = 1.7
_SEVERAL = 2
_Row = tuple[float, float, Set[int]]
"""Lower and upper end of a row, and the sides between its cells."""
_Extent = tuple[int, int]


def imply_sides(
    segments: Sequence[Segment], rules: Iterable[DrawnRule], drawn: Iterable[Stroke]
) -> tuple[list[Stroke], list[Segment]]:
    """Return the lines around the cells of tables with rules that meet at the sides of cells, and
    the segments, cut at these sides.

    A row may be above the first rule or below the last one. A text that goes over a side is in a
    merged cell. Nothing is implied where sides are drawn.
    """
    upright = [one for one in drawn if one.is_vertical]
    rising = sorted(segments, key=lambda one: one.base)
    strokes: list[Stroke] = []
    pieces: dict[int, list[Segment]] = {}
    for (left, right), heights in _list_extents(rules).items():
        inside = [
            one for one in rising if left - NEAR <= one.left and one.right <= right + NEAR
        ] if len(heights) > 1 else []  # fmt: skip
        own = [one for one in upright if left - NEAR < one.at < right + NEAR]
        open_heights = [
            (at, set() if any(one.start - NEAR < at < one.end + NEAR for one in own) else sides)
            for at, sides in sorted(heights.items())
        ]
        for rows in _list_tables(inside, open_heights):
            for low, high, sides in rows:
                strokes += (Stroke(True, side, low, high) for side in sides)
                strokes += (Stroke(False, at, left, right) for at in (low, high))
                gutters = [(side, side) for side in sides]
                for one in inside:
                    if low < one.base < high and one.parts:
                        pieces[id(one)] = cut_segment(one, gutters)
    return strokes, [piece for one in segments for piece in pieces.get(id(one), [one])]


def _list_extents(rules: Iterable[DrawnRule]) -> dict[_Extent, dict[float, set[int]]]:
    """Return the heights of rules that continue each other, and where they meet, by their ends."""
    extents: dict[_Extent, dict[float, set[int]]] = {}
    ordered = sorted(rules, key=lambda one: (round(one.base), one.left))
    for _, level in groupby(ordered, lambda one: round(one.base)):
        runs: list[list[DrawnRule]] = []
        for rule in level:
            if not runs or rule.left > runs[-1][-1].right + NEAR:
                runs.append([])
            runs[-1].append(rule)
        for run in runs:
            ends = round(run[0].left), round(run[-1].right)
            meetings = {
                round((one.right + other.left) / 2) for one, other in pairwise(run)
                if abs(one.right - other.left) < NEAR
            }  # fmt: skip
            extents.setdefault(ends, {}).setdefault(run[0].base, set()).update(meetings)
    return extents


def _list_tables(
    rising: Sequence[Segment], heights: Sequence[tuple[float, set[int]]]
) -> Iterator[list[_Row]]:
    """Yield the rows of each table, which ends where its columns do, or a text is over all sides.

    A table is not clear if several rows without rules between them are above or below it.
    """
    bases = [one.base for one in rising]
    rows: list[_Row] = []
    for (low, below), (high, above) in pairwise([*heights, (inf, set[int]())]):
        held = rising[bisect(bases, low) : bisect(bases, high)]
        is_other = not (below <= above or above <= below)
        sides = _list_free(held, below | above)
        if sides and high < inf and not is_other:
            rows.append((low, high, sides))
        elif rows:
            under = list(_find_rows(rising[: bisect(bases, rows[0][0])][::-1], rows[0]))
            over = list(_find_rows(rising[bisect(bases, rows[-1][1]) :], rows[-1]))
            if len(under) < _SEVERAL and len(over) < _SEVERAL and len(rows + under + over) > 1:
                yield [*under, *rows, *over]
            rows = []


def _find_rows(texts: Sequence[Segment], beside: _Row) -> Iterator[_Row]:
    """Yield the rows with texts in several cells above or below another one.

    `texts` are in the order of their distance. Lines at a common height are several rows, unless
    all of them are bold, as those of a header.
    """
    low, high, sides = beside
    is_above = bool(texts) and texts[0].base > high
    place, inner = (high if is_above else low), sorted(sides)
    lines: list[list[Segment]] = []
    held: list[Segment] = []
    for _, group in groupby(texts, lambda one: round(one.base)):
        line = list(group)
        gap, size = abs(line[0].base - place), line[0].size
        is_apart = bool(lines) and gap > _PITCH * size
        if gap > _FURTHEST_LINE * size or (is_apart and not _has_cells(line, inner)):
            break
        lines.append(line)
        held += line
        place = line[0].base
    if not _has_cells(held, inner):
        return
    shared = sum(_has_cells(line, inner) for line in lines)
    end = place + held[-1].size if is_above else place - held[-1].size / 2
    for _ in range(1 if all(one.is_bold for one in held) else max(shared, 1)):
        yield (high, end, sides) if is_above else (end, low, sides)


def _has_cells(texts: Sequence[Segment], sides: Sequence[int]) -> bool:
    """Return whether texts are in several cells between sides, and none is over a side."""
    cells = {bisect(sides, one.left + NEAR) for one in texts}
    return len(cells) > 1 and len(_list_free(texts, {*sides})) == len(sides)


def _list_free(texts: Iterable[Segment], sides: Set[int]) -> Set[int]:
    """Return the sides that no text goes over."""
    return sides - {
        side
        for one in texts
        for part in one.parts or [one]
        for side in sides
        if part.left + NEAR < side < part.right - NEAR
    }
