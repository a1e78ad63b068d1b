"""Finds boxes next to each other on a page, which hold texts of their own and no rows."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from knowledge.documents.pdf.drawn_grids import NEAR, DrawnGrid, make_box
from knowledge.documents.pdf.page_text import DrawnRule, Segment
from knowledge.documents.pdf.text_lines import (
    DrawnTable,
    Line,
    TextTable,
    find_lines,
    is_wrapped,
)
from knowledge.documents.tables import Cell, is_value

_LOWEST_BOX = 24.0
_MOST_BOXES = 100
"""Minimum height of a box in points, and maximum number of them: more are a drawing."""
_LEAST_LINES = 2
_LEVEL = 1.5
"""Distance in points within which lines are at one height."""


def list_boxes(rules: Sequence[DrawnRule]) -> list[DrawnGrid]:
    """Return the boxes of a page, whose upper and lower edges are rules that follow each other."""
    pairs = [
        (upper, lower) for upper, lower in pairwise(rules)
        if (upper.left, upper.right) == (lower.left, lower.right) and upper.base > lower.base
    ]  # fmt: skip
    return [
        grid for upper, lower in (pairs if len(pairs) <= _MOST_BOXES else ())
        if (grid := make_box(upper.left, lower.base, upper.right, upper.base)) is not None
    ]  # fmt: skip


def cut_columns(grid: DrawnGrid) -> list[DrawnGrid]:
    """Return the cells of a grid of one row, which are boxes."""
    boxes = (make_box(one.left, one.bottom, one.right, one.top) for one in grid.cells)
    return [box for box in boxes if box is not None]


def take_boxes(segments: list[Segment], boxes: Sequence[DrawnGrid]) -> list[Segment]:
    """Return segments with boxes next to each other in place of the texts in them.

    Boxes whose lines are all at the same heights may be columns of a table: they are lines, box by
    box, of unclear structure.
    """
    for row in _list_rows(boxes):
        inside: list[list[Segment]] = []
        left = segments
        for box in row:
            own, left = box.part(left)
            inside.append(own)
        if not _are_boxes(row[0], inside, left):
            continue
        tables = [frame(box, own) for box, own in zip(row, inside, strict=True)]
        lines = [list(find_lines(own)) for own in inside]
        if _may_be_columns(row, lines):
            unclear = [line.text for own in lines for line in own]
            tables[0] = replace(tables[0], rows=[[Cell(unclear[0])]], unclear=unclear)
            inside, tables = [[one for own in inside for one in own]], tables[:1]
        for box, own, table in zip(row, inside, tables, strict=False):
            left.append(represent(box, own, table))
        segments = left
    return segments


def frame(grid: DrawnGrid, segments: list[Segment]) -> TextTable:
    """Return a table without rows, which is the lines inside a frame."""
    lowest = min(segment.base for segment in segments)
    return TextTable([(grid.lefts[0], grid.lefts[-1])], [], lowest, segments)


def represent(grid: DrawnGrid, inside: Sequence[Segment], table: TextTable) -> DrawnTable:
    """Return a table or box in the place of the segments inside it."""
    sizes: Counter[float] = Counter()
    for segment in inside:
        sizes[segment.size] += len(segment.text)
    size = sizes.most_common(1)[0][0]
    text = " ".join(segment.text for segment in inside)
    base = grid.tops[0] - size
    return DrawnTable(text, grid.lefts[0], grid.lefts[-1], base, size, table=table)


def _may_be_columns(boxes: Sequence[DrawnGrid], lines: Sequence[Sequence[Line]]) -> bool:
    """Return whether the lines of each box are texts at the heights of those of another box."""
    bases = [[line.base for line in own] for own in lines]
    shortest = min(bases, key=len)
    is_level = all(
        any(abs(base - other) < _LEVEL for other in own) for own in bases for base in shortest
    )
    wrapped = sum(
        is_wrapped(above.segments[-1], line.segments[0], box.lefts[-1])
        for box, own in zip(boxes, lines, strict=True)
        for above, line in pairwise(own)
    )
    is_prose = 2 * wrapped > sum(map(len, lines))
    return is_level and not is_prose and all(len(one.segments) == 1 for own in lines for one in own)


def _list_rows(boxes: Sequence[DrawnGrid]) -> Iterator[list[DrawnGrid]]:
    """Yield the boxes that are next to each other, from left to right; each box only once."""
    left = sorted(
        (box for box in boxes if box.tops[0] - box.tops[-1] > _LOWEST_BOX),
        key=lambda box: box.lefts[0],
    )
    while 1 < len(left) <= _MOST_BOXES:
        row = left[:1]
        for box in left:
            if box.lefts[0] >= row[-1].lefts[-1] - NEAR and _are_level(row[0], box):
                row.append(box)
        left = [box for box in left if box not in row]
        if len(row) > 1:
            yield row


def _are_level(box: DrawnGrid, other: DrawnGrid) -> bool:
    """Return whether the upper and lower edges of boxes are next to each other."""
    edges = zip(box.tops, other.tops, strict=False)
    return all(abs(one - two) < 2 * NEAR for one, two in edges)


def _are_boxes(
    first: DrawnGrid, inside: Sequence[Sequence[Segment]], outside: Sequence[Segment]
) -> bool:
    """Return whether nothing is beside boxes, and none has mostly values, as columns may have."""
    if any(first.tops[-1] < one.base < first.tops[0] for one in outside):
        return False
    for own in inside:
        lines = list(find_lines(own))
        valued = sum(all(is_value(one.text) for one in line.segments) for line in lines)
        if len(lines) < _LEAST_LINES or 2 * valued >= len(lines):
            return False
    return True
