"""Finds the cells that lines draw on a page, and the tables of a page that touch each other."""

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

from knowledge.documents.pdf.page_text import Segment, Stroke
from knowledge.documents.tables import MOST_COLUMNS

NEAR = 2.5
"""Maximum distance in points at which lines of a grid meet or count as one line."""
_MOST_MEETINGS = 400_000
"""Maximum number of pairs of lines that are compared; a page with more is a drawing or a map."""
_MOST_CELLS = 20_000
_Places = frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class DrawnCell:
    """A cell: its first row and column, how many of them it spans, and its position on the page."""

    row: int
    column: int
    rows: int
    columns: int
    left: float
    bottom: float
    right: float
    top: float


@dataclass(frozen=True, slots=True)
class DrawnGrid:
    """The cells of a table by rows; `lefts` has one end more than there are columns.

    `tops` has one end more than there are rows, the upper one first. `ended` are the columns and
    rows with a line on their right, and `closed` the rows and columns with a line below.
    """

    lefts: tuple[float, ...]
    tops: tuple[float, ...]
    cells: tuple[DrawnCell, ...]
    strokes: tuple[Stroke, ...]
    ended: _Places
    closed: _Places

    @property
    def area(self) -> float:
        """The area of the grid, in square points."""
        return (self.lefts[-1] - self.lefts[0]) * (self.tops[0] - self.tops[-1])

    def find_place(self, segment: Segment) -> tuple[int, int]:
        """Return the row and the column of the middle of a segment that is inside the grid.

        A text that begins at the left edge of a column and is wider belongs to that column.
        """
        x, y = _find_middle(segment)
        inner = self.lefts[1:-1]
        begin, column = bisect(inner, segment.left + NEAR), bisect(inner, x)
        is_wider = begin < column and segment.left - self.lefts[begin] < segment.size
        return sum(y < top for top in self.tops[1:-1]), begin if is_wider else column

    def group(self, segments: Iterable[Segment]) -> dict[DrawnCell, list[Segment]]:
        """Return the segments of each cell that has any; all of them are inside the grid."""
        owners = {
            (cell.row + row, cell.column + column): cell
            for cell in self.cells
            for row, column in product(range(cell.rows), range(cell.columns))
        }
        own: dict[DrawnCell, list[Segment]] = {}
        for segment in segments:
            own.setdefault(owners[self.find_place(segment)], []).append(segment)
        return own

    def part(self, segments: Iterable[Segment]) -> tuple[list[Segment], list[Segment]]:
        """Return the segments inside the grid and the others."""
        inside: list[Segment] = []
        outside: list[Segment] = []
        for segment in segments:
            x, y = _find_middle(segment)
            is_inside = self.lefts[0] <= x <= self.lefts[-1] and self.tops[-1] <= y <= self.tops[0]
            (inside if is_inside else outside).append(segment)
        return inside, outside


def find_grids(strokes: Sequence[Stroke]) -> list[DrawnGrid]:
    """Return the grids of lines that touch each other, the largest first.

    An outer side that is not drawn is where the lines end.
    """
    level, upright = (merge_strokes(strokes, is_vertical=one) for one in (False, True))
    if len(level) * len(upright) > _MOST_MEETINGS:
        return []
    meetings = (
        (at, other)
        for at, line in enumerate(level)
        for other, crossing in enumerate(upright, start=len(level))
        if line.start - NEAR <= crossing.at <= line.end + NEAR
        and crossing.start - NEAR <= line.at <= crossing.end + NEAR
    )
    touching: dict[int, list[Stroke]] = {}
    lines = [*level, *upright]
    for group, line in zip(find_groups(len(lines), meetings), lines, strict=True):
        touching.setdefault(group, []).append(line)
    grids = [grid for own in touching.values() if (grid := make_grid(own)) is not None]
    return sorted(grids, key=lambda grid: -grid.area)


def merge_strokes(strokes: Iterable[Stroke], *, is_vertical: bool) -> list[Stroke]:
    """Return lines; those that continue each other are one."""
    lines: list[Stroke] = []
    for places in _group_near(one for one in strokes if one.is_vertical is is_vertical):
        at = sum(place.at for place in places) / len(places)
        held: Stroke | None = None
        for place in sorted(places, key=lambda one: one.start):
            if held is not None and place.start <= held.end + NEAR:
                held = lines[-1] = replace(held, end=max(held.end, place.end))
            else:
                held = replace(place, at=at)
                lines.append(held)
    return lines


def find_groups(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the group of each number; the numbers of a pair are in one, directly or not."""
    parents = list(range(count))

    def find(one: int) -> int:
        while parents[one] != one:
            parents[one] = parents[parents[one]]
            one = parents[one]
        return one

    for one, other in pairs:
        parents[find(other)] = find(one)
    return [find(one) for one in range(count)]


def make_grid(lines: Iterable[Stroke]) -> DrawnGrid | None:
    """Return the grid of lines; None if they have one direction, or make too many cells."""
    level: list[Stroke] = []
    upright: list[Stroke] = []
    for line in lines:
        (upright if line.is_vertical else level).append(line)
    if not level or not upright:
        return None
    left = min(*(line.start for line in level), *(line.at for line in upright))
    right = max(*(line.end for line in level), *(line.at for line in upright))
    bottom = min(*(line.start for line in upright), *(line.at for line in level))
    top = max(*(line.end for line in upright), *(line.at for line in level))
    level = [*level, Stroke(False, top, left, right), Stroke(False, bottom, left, right)]
    upright = [*upright, Stroke(True, left, bottom, top), Stroke(True, right, bottom, top)]
    lefts = [group[0].at for group in _group_near(upright)]
    tops = [group[0].at for group in _group_near(level)][::-1]
    rows, columns = len(tops) - 1, len(lefts) - 1
    if not rows or not 0 < columns <= MOST_COLUMNS or rows * columns > _MOST_CELLS:
        return None
    ended, closed = _find_drawn(upright, lefts[1:], tops), _find_drawn(level, tops[1:], lefts)
    cells = tuple(_list_cells(lefts, tops, ended, closed))
    return DrawnGrid(tuple(lefts), tuple(tops), cells, (*level, *upright), ended, closed)


def has_interlocked_rows(grid: DrawnGrid) -> bool:
    """Return whether no column has all rows of a part of the grid, as in a form."""
    return bool(_list_interlocked(_list_starts(grid)))


def part_grid(grid: DrawnGrid, segments: Sequence[Segment]) -> list[DrawnGrid]:
    """Return the tables below or next to each other in a grid, otherwise the grid.

    A row whose cells are shifted against those above begins another table, or is a row of a form.
    Tables next to each other have rows that interlock. Titles above and notes below them have the
    width of the grid. A line beside all rows that interlock is the border of two tables.
    """
    if shifts := _list_shifts(grid):
        parts = _cut_grid(grid, [grid.tops[-1], *shifts, grid.tops[0]], is_vertical=False)
        return [one for part in parts for one in part_grid(part, part.part(segments)[0])]
    columns = _list_starts(grid)
    bands = _list_interlocked(columns)
    if not bands:
        return [grid]
    inner = [cell for cell in grid.cells if cell.columns < len(columns)]
    top, bottom = max(cell.top for cell in inner), min(cell.bottom for cell in inner)
    if top < grid.tops[0] or bottom > grid.tops[-1]:
        edges = sorted({grid.tops[-1], bottom, top, grid.tops[0]})
        parts = _cut_grid(grid, edges, is_vertical=False)
        return [one for part in parts for one in part_grid(part, part.part(segments)[0])]
    rows = [row for first, end in bands for row in range(first, min(end, len(grid.tops) - 1))]
    borders = [
        edge for edge in range(1, len(columns))
        if all((edge - 1, row) in grid.ended for row in rows)
        and not any(one.left + NEAR < grid.lefts[edge] < one.right - NEAR for one in segments)
    ]  # fmt: skip
    first = [0]
    for at, end in pairwise([*borders, len(columns)]):
        if _list_interlocked(columns[first[-1] : end]):
            first.append(at)
    return _cut_grid(grid, [grid.lefts[at] for at in (*first, -1)], is_vertical=True)


def _find_middle(segment: Segment) -> tuple[float, float]:
    return (segment.left + segment.right) / 2, segment.base + segment.size * 0.3


def _list_shifts(grid: DrawnGrid) -> list[float]:
    """Return from below to above where a row ends whose cells are shifted against those below: each
    of two cells reaches over an end of the other.
    """
    above: dict[int, list[tuple[int, int]]] = {}
    below: dict[int, list[tuple[int, int]]] = {}
    for cell in grid.cells:
        place = cell.column, cell.column + cell.columns
        above.setdefault(cell.row + cell.rows, []).append(place)
        below.setdefault(cell.row, []).append(place)
    columns = len(grid.lefts) - 1
    return [
        grid.tops[row] for row in sorted(set(above) & set(below), reverse=True)
        if sum(end - start for start, end in above[row]) == columns
        and any(
            left < start < right < end or start < left < end < right
            for left, right in above[row]
            for start, end in below[row]
        )
    ]  # fmt: skip


def _list_starts(grid: DrawnGrid) -> list[set[int]]:
    """Return for each column the rows in which a cell begins."""
    starts: list[set[int]] = [set() for _ in grid.lefts[1:]]
    for cell in grid.cells:
        for column in starts[cell.column : cell.column + cell.columns]:
            column.add(cell.row)
    return starts


def _list_interlocked(columns: Sequence[set[int]]) -> list[tuple[int, int]]:
    """Return where no column has all rows: the first row of each such band, and the next band.

    The lines between bands cross all columns. In a table, merged cells are beside the rows of
    another column; tables that touch, forms and diagrams have rows that interlock.
    """
    every = {row for column in columns for row in column}
    whole = sorted(set.intersection(*columns))
    bands = [(first, end, every.intersection(range(first + 1, end)))
             for first, end in pairwise([*whole, _MOST_CELLS])]  # fmt: skip
    return [
        (first, end) for first, end, inner in bands
        if not any(inner <= column for column in columns)
    ]  # fmt: skip


def _cut_grid(grid: DrawnGrid, edges: Sequence[float], *, is_vertical: bool) -> list[DrawnGrid]:
    """Return the parts of a grid between edges."""
    parts = []
    for low, high in pairwise(edges):
        lines = [
            line if line.is_vertical is is_vertical
            else replace(line, start=max(line.start, low), end=min(line.end, high))
            for line in grid.strokes
            if line.is_vertical is not is_vertical or low - NEAR <= line.at <= high + NEAR
        ]  # fmt: skip
        parts.append(make_grid([line for line in lines if line.end - line.start > NEAR]))
    return [part for part in parts if part is not None]


def _group_near(lines: Iterable[Stroke]) -> list[list[Stroke]]:
    """Return groups of parallel lines within the distance at which lines count as one."""
    groups: list[list[Stroke]] = []
    for line in sorted(lines, key=lambda one: one.at):
        if groups and line.at - groups[-1][0].at <= NEAR:
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _list_cells(
    lefts: Sequence[float], tops: Sequence[float], ended: _Places, closed: _Places
) -> Iterator[DrawnCell]:
    """Yield the cells by rows: each extends to the right and down until a line ends it."""
    rows, columns = len(tops) - 1, len(lefts) - 1
    taken: set[tuple[int, int]] = set()

    def goes_down(below: int, column: int, last: int) -> bool:
        own = range(column, last + 1)
        return (
            not any((below, at) in closed for at in own)
            and not any((at, below + 1) in ended for at in own[:-1])
            and not any((below + 1, at) in taken for at in own)
        )

    for row, column in product(range(rows), range(columns)):
        if (row, column) in taken:
            continue
        last, below = column, row
        while last + 1 < columns and (last, row) not in ended and (row, last + 1) not in taken:
            last += 1
        while below + 1 < rows and goes_down(below, column, last):
            below += 1
        taken.update(product(range(row, below + 1), range(column, last + 1)))
        yield DrawnCell(
            row, column, below - row + 1, last - column + 1,
            lefts[column], tops[below + 1], lefts[last + 1], tops[row],
        )  # fmt: skip


def _find_drawn(
    lines: Sequence[Stroke], places: Sequence[float], across: Sequence[float]
) -> _Places:
    """Return where a line is drawn: the indexes of its place and of each of the intervals between
    the edges `across` over whose middle it goes.
    """
    middles = [(one + other) / 2 for one, other in pairwise(across)]
    return frozenset(
        (place, middle)
        for place, at in enumerate(places)
        for line in lines
        if abs(line.at - at) <= NEAR
        for middle, where in enumerate(middles)
        if line.start <= where <= line.end
    )
