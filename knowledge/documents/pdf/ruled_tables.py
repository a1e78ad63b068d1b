"""Reads tables whose cells are drawn: text within the lines of a cell belongs to the cell.

Other tables are found by the alignment of their cells, see `text_tables`.
"""

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import inf

from knowledge.documents.pdf.page_text import Segment, Stroke, cut_segment
from knowledge.documents.pdf.text_lines import (
    Line,
    TextTable,
    continues_label,
    find_lines,
    hold_values_beside,
    is_wrapped,
    join_lines,
    merge_intervals,
)
from knowledge.documents.tables import Cell, is_value

_LEAST_FILLED = 0.25
"""Minimum share of cells with text; a grid with less belongs to a diagram."""
_LONGEST_CELL = 15
"""Maximum number of lines of a cell; a grid of mostly longer cells is a page layout."""
_LEAST_BESIDE = 2
"""Minimum number of lines with adjacent values by which a drawn column is divided."""
_LEAST_ROWS = 3
_MOST_ROWS = 0.8
"""The share of the rows beside a cell that have a line of it."""
_PITCH_OF_ROWS = 1.5
_BASELINE = 1.5
"""Distance in points within which baselines prove that texts are on one line."""
_SAME_LINE = 2.5
"""The same if values prove that there are rows: labels in another typeface may be higher."""


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
    is_open: bool = False
    """Whether this column of the grid may contain columns that are not separated by lines."""

    def holds(self, x: float, y: float) -> bool:
        """Return whether a point is in this cell."""
        return self.left <= x <= self.right and self.bottom <= y <= self.top


CellLines = dict[DrawnCell, list[Line]]
_NEAR = 2.5
"""Maximum distance in points at which lines of a grid meet or count as one line."""
_MOST_MEETINGS = 400_000
"""Maximum number of pairs of lines that are compared; a page with more is a drawing or a map."""
_MOST_CELLS = 20_000
_LEAST_EDGES = 3
"""Number of edges of two columns or rows."""


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
    ended: frozenset[tuple[int, int]]
    closed: frozenset[tuple[int, int]]

    @property
    def area(self) -> float:
        """The area of the grid, in square points."""
        return (self.lefts[-1] - self.lefts[0]) * (self.tops[0] - self.tops[-1])

    def find_cell(self, x: float, y: float) -> DrawnCell | None:
        """Return the cell that contains a point, or None."""
        return next((cell for cell in self.cells if cell.holds(x, y)), None)


def take_tables(
    page: int, segments: Sequence[Segment], strokes: Sequence[Stroke]
) -> tuple[Mapping[int, TextTable], list[Segment]]:
    """Return the drawn tables by the `id` of the segments that represent them, and these
    segments.
    """
    tables: dict[int, TextTable] = {}
    left = list(segments)
    for drawn in find_grids(strokes) if left else ():
        whole = _read_grid(page, drawn, _part(left, drawn)[0])
        grids = [] if whole is None else _part_grid(drawn, whole.segments)
        for grid in grids:
            inside, outside = _part(left, grid)
            if inside:
                table = whole if len(grids) == 1 else _read_grid(page, grid, inside)
                mark = _stand_for(grid, inside)
                tables[id(mark)] = table or _frame(page, grid, inside)
                left = [*outside, mark]
    return tables, left


def find_grids(strokes: Sequence[Stroke]) -> list[DrawnGrid]:
    """Return the grids of at least two rows and columns, the largest first.

    An outer side that is not drawn is where the lines end.
    """
    level, upright = _merge(strokes, is_vertical=False), _merge(strokes, is_vertical=True)
    if len(level) * len(upright) > _MOST_MEETINGS:
        return []
    meetings = (
        (at, other)
        for at, line in enumerate(level)
        for other, crossing in enumerate(upright, start=len(level))
        if _meet(line, crossing)
    )
    touching: dict[int, list[Stroke]] = {}
    lines = [*level, *upright]
    for group, line in zip(_find_groups(len(lines), meetings), lines, strict=True):
        touching.setdefault(group, []).append(line)
    grids = [_make_grid(own) for own in touching.values()]
    drawn_grids = [
        grid for grid in grids
        if grid is not None and len(grid.lefts) >= _LEAST_EDGES and len(grid.tops) >= _LEAST_EDGES
    ]  # fmt: skip
    return sorted(drawn_grids, key=lambda grid: -grid.area)


def _part_grid(grid: DrawnGrid, segments: Sequence[Segment]) -> list[DrawnGrid]:
    """Return the tables next to each other in a grid whose rows interlock, otherwise the grid.

    Titles above and notes below them have the width of the grid. A line beside all rows that
    interlock is the border of two tables.
    """
    columns = _list_starts(grid)
    bands = _list_interlocked(columns)
    if not bands:
        return [grid]
    inner = [cell for cell in grid.cells if cell.columns < len(columns)]
    top, bottom = max(cell.top for cell in inner), min(cell.bottom for cell in inner)
    if top < grid.tops[0] or bottom > grid.tops[-1]:
        edges = sorted({grid.tops[-1], bottom, top, grid.tops[0]})
        parts = _cut_grid(grid, edges, is_vertical=False)
        return [one for part in parts for one in _part_grid(part, _part(segments, part)[0])]
    rows = [row for first, end in bands for row in range(first, min(end, len(grid.tops) - 1))]
    used = sorted({_find_place(grid, segment)[1] for segment in segments})
    borders = [
        edge for before, at in pairwise(used)
        if not columns[before] <= columns[at] and not columns[at] <= columns[before]
        for edge in range(before + 1, at + 1)
        if all((edge - 1, row) in grid.ended for row in rows)
        and not any(one.left + _NEAR < grid.lefts[edge] < one.right - _NEAR for one in segments)
    ]  # fmt: skip
    first = [0]
    for at, end in pairwise([*borders, len(columns)]):
        if _list_interlocked(columns[first[-1] : end]):
            first.append(at)
    return _cut_grid(grid, [grid.lefts[at] for at in (*first, -1)], is_vertical=True)


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
            if line.is_vertical is not is_vertical or low - _NEAR <= line.at <= high + _NEAR
        ]  # fmt: skip
        parts.append(_make_grid([line for line in lines if line.end - line.start > _NEAR]))
    return [part for part in parts if part is not None]


def _read_grid(page: int, grid: DrawnGrid, segments: Sequence[Segment]) -> TextTable | None:
    """Return the table of a grid; None for a diagram or a single column."""
    divided, inside = _divide_columns(grid, segments)
    divided = _divide_cells(divided, inside)
    cells = {cell: list(find_lines(own)) for cell, own in _group(divided, inside).items()}
    if len(grid.lefts) < _LEAST_EDGES or not _is_table(divided, cells):
        return None
    table = _frame(page, divided, inside)
    table.columns, table.rows = list(pairwise(divided.lefts)), list(_list_rows(divided, cells))
    if _list_interlocked(_list_starts(grid)):
        table.unclear = [line.text for line in _list_lines(grid, segments)]
    elif any(
        hold_values_beside(
            line.segments for cell, own in cells.items() if cell.column == at for line in own
        )
        for at in range(len(table.columns))
    ):
        table.unclear = [line.text for line in find_lines(inside)]
    return table


def _frame(page: int, grid: DrawnGrid, segments: list[Segment]) -> TextTable:
    """Return a table without rows, which is the lines inside a frame."""
    lowest = min(segment.base for segment in segments)
    return TextTable(page, [(grid.lefts[0], grid.lefts[-1])], [], lowest, segments)


def _list_lines(grid: DrawnGrid, segments: Sequence[Segment]) -> Iterator[Line]:
    """Yield the lines of a form, area by area within the drawn lines, whatever their shape."""
    rows, columns = len(grid.tops) - 1, len(grid.lefts) - 1
    places = list(product(range(rows), range(columns)))
    open_sides = (
        (at, at + step)
        for at, (row, column) in enumerate(places)
        for step, is_open in (
            (1, column + 1 < columns and (column, row) not in grid.ended),
            (columns, row + 1 < rows and (row, column) not in grid.closed),
        )
        if is_open
    )
    areas = dict(zip(places, _find_groups(len(places), open_sides), strict=True))
    own: dict[int, list[Segment]] = {area: [] for area in areas.values()}
    for segment in segments:
        own[areas[_find_place(grid, segment)]].append(segment)
    for held in own.values():
        yield from find_lines(held)


def _find_place(grid: DrawnGrid, segment: Segment) -> tuple[int, int]:
    """Return the row and the column of the middle of a segment."""
    x, y = _find_middle(segment)
    return sum(y < top for top in grid.tops[1:-1]), bisect(grid.lefts[1:-1], x)


def _find_middle(segment: Segment) -> tuple[float, float]:
    return (segment.left + segment.right) / 2, segment.base + segment.size * 0.3


def _part(segments: Sequence[Segment], grid: DrawnGrid) -> tuple[list[Segment], list[Segment]]:
    """Return the segments inside a grid and the others."""
    inside: list[Segment] = []
    outside: list[Segment] = []
    for segment in segments:
        x, y = _find_middle(segment)
        is_inside = grid.lefts[0] <= x <= grid.lefts[-1] and grid.tops[-1] <= y <= grid.tops[0]
        (inside if is_inside else outside).append(segment)
    return inside, outside


def _divide_columns(
    grid: DrawnGrid, segments: Sequence[Segment]
) -> tuple[DrawnGrid, list[Segment]]:
    """Return a grid in which a drawn column with several columns of values is divided into them.

    The segments are split at these columns as well.
    """
    by_column: dict[int, list[Segment]] = {}
    for segment in segments:
        cell = grid.find_cell(*_find_middle(segment))
        by_column.setdefault(cell.column if cell and cell.columns == 1 else -1, []).append(segment)
    cells, lefts = list(grid.cells), list(grid.lefts)
    taken = by_column.pop(-1, [])
    for column in sorted(by_column, reverse=True):
        gutters = _find_gutters(by_column[column])
        lefts[column + 1 : column + 1] = [sum(gutter) / 2 for gutter in gutters]
        cells = [_widen_cell(cell, column, len(gutters)) for cell in cells]
        taken += [piece for segment in by_column[column] for piece in cut_segment(segment, gutters)]
    return replace(grid, lefts=tuple(lefts), cells=tuple(cells)), taken


def _find_gutters(segments: Sequence[Segment]) -> list[tuple[float, float]]:
    """Return the gaps between values that are next to each other on several lines."""
    lines = [line.segments for line in find_lines(segments)]
    beside = [
        line for line in lines
        if len(line) > 1 and all(is_value(segment.text) for segment in line)
    ]  # fmt: skip
    if len(beside) < _LEAST_BESIDE or 2 * len(beside) < len(lines):
        return []
    places = merge_intervals((segment.left, segment.right) for line in beside for segment in line)
    return [(one[1], other[0]) for one, other in pairwise(places)]


def _widen_cell(cell: DrawnCell, column: int, count: int) -> DrawnCell:
    if not count or cell.column + cell.columns <= column:
        return cell
    if cell.column > column:
        return replace(cell, column=cell.column + count)
    is_open = cell.is_open or cell.columns == 1
    return replace(cell, columns=cell.columns + count, is_open=is_open)


def _divide_cells(grid: DrawnGrid, segments: Sequence[Segment]) -> DrawnGrid:
    """Return a grid whose merged cells are divided where their text is, even without a drawn line.

    A cell is divided at columns if it has, on one line, texts that each fit into a column, and at
    rows if each of its lines is on the line of a row: lines may be drawn between values alone.
    """
    for is_row in (False, True):
        own = _group(grid, segments)
        cells: list[DrawnCell] = []
        for cell in grid.cells:
            if is_row and cell.rows >= _LEAST_ROWS and _fit_rows(cell, own):
                cells += (
                    replace(cell, row=at, rows=1, top=grid.tops[at], bottom=grid.tops[at + 1])
                    for at in range(cell.row, cell.row + cell.rows)
                )
            elif not is_row and cell.columns > 1 and _fit_columns(grid, cell, own.get(cell, ())):
                cells += (
                    replace(
                        cell, column=at, columns=1, left=grid.lefts[at], right=grid.lefts[at + 1]
                    )
                    for at in range(cell.column, cell.column + cell.columns)
                )
            else:
                cells.append(cell)
        grid = replace(grid, cells=tuple(cells))
    return grid


def _fit_columns(grid: DrawnGrid, cell: DrawnCell, segments: Sequence[Segment]) -> bool:
    """Return whether the texts of a cell that spans columns each belong to one of them.

    A text over several columns may be above those of the columns, as their common header.
    """
    inner = grid.lefts[cell.column + 1 : cell.column + cell.columns]
    wide = [
        segment for segment in segments
        if any(segment.left + _NEAR < edge < segment.right - _NEAR for edge in inner)
    ]  # fmt: skip
    bases = sorted(segment.base for segment in segments)
    is_beside = any(above - base < _BASELINE for base, above in pairwise(bases))
    if not cell.is_open:
        return is_beside and not wide
    return not wide or (
        is_beside and not any(is_value(part.text) for segment in wide for part in segment.parts)
    )


def _fit_rows(cell: DrawnCell, own: Mapping[DrawnCell, Sequence[Segment]]) -> bool:
    lines = list(find_lines(own.get(cell, ())))
    bases: dict[int, list[float]] = {}
    for other, held in own.items():
        if other.rows == 1:
            bases.setdefault(other.row, []).extend(segment.base for segment in held)
    beside = sum(
        any(abs(line.base - base) < _BASELINE for line in lines for base in bases.get(row, ()))
        for row in range(cell.row, cell.row + cell.rows)
    )
    wrapped = sum(
        is_wrapped(above.segments[-1], line.segments[0], cell.right)
        for above, line in pairwise(lines)
    )
    return beside >= _MOST_ROWS * cell.rows and wrapped * 2 < len(lines)


def _group(grid: DrawnGrid, segments: Iterable[Segment]) -> dict[DrawnCell, list[Segment]]:
    """Return the segments of each cell that has any; open cells share those that span them."""
    own: dict[DrawnCell, list[Segment]] = {}
    for segment in segments:
        x, y = _find_middle(segment)
        for cell in grid.cells:
            is_over = cell.is_open and segment.left + _NEAR < cell.right
            is_over = is_over and cell.left < segment.right - _NEAR and cell.holds(cell.left, y)
            if is_over or cell.holds(x, y):
                own.setdefault(cell, []).append(segment)
                if not cell.is_open:
                    break
    return own


def _is_table(grid: DrawnGrid, cells: CellLines) -> bool:
    if len({cell.row for cell in cells}) < 2 or len(cells) < _LEAST_FILLED * len(grid.cells):
        return False
    letters = sum(len(line.text) for lines in cells.values() for line in lines)
    in_long = sum(
        len(line.text)
        for cell, lines in cells.items()
        if len(lines) > _LONGEST_CELL and not _find_bases(_list_row(cells, cell.row))
        for line in lines
    )
    return in_long * 2 <= letters


def _stand_for(grid: DrawnGrid, inside: Sequence[Segment]) -> Segment:
    sizes: Counter[float] = Counter()
    for segment in inside:
        sizes[segment.size] += len(segment.text)
    size = sizes.most_common(1)[0][0]
    text = " ".join(segment.text for segment in inside)
    return Segment(text, grid.lefts[0], grid.lefts[-1], grid.tops[0] - size, size)


def _list_row(cells: CellLines, row: int) -> CellLines:
    return {cell: lines for cell, lines in cells.items() if cell.row == row}


def _list_rows(grid: DrawnGrid, cells: CellLines) -> Iterator[list[Cell]]:
    """Yield the rows of a grid; a drawn row with several rows of text is divided into them."""
    rows = range(len(grid.tops) - 1)
    own = {row: [cell for cell in grid.cells if cell.row == row] for row in rows}
    bases = {
        row: _find_bases(_list_row(cells, row), is_beside=any(cell.rows > 1 for cell in own[row]))
        for row in rows
    }
    is_whole = not any(cell.columns > 1 for cell in own[0])
    is_head = is_whole and not bases[0] and _is_bold_head(grid, cells)
    for row in rows:
        for at, (base, end) in enumerate(pairwise((*(bases[row] or [inf]), -inf))):
            yield [
                Cell(
                    join_lines([
                        line.text for line in cells.get(cell, ())
                        if cell.rows > 1 or end + _SAME_LINE < line.base <= base + _SAME_LINE
                    ]),
                    cell.columns,
                    sum(len(bases[part]) or 1 for part in range(row, row + cell.rows))
                    if cell.rows > 1 else 1,
                    is_header=is_head and row == 0,
                )
                for cell in own[row] if cell.rows == 1 or not at
            ]  # fmt: skip


def _is_bold_head(grid: DrawnGrid, cells: CellLines) -> bool:
    """Return whether the first row is bold and the others are not."""
    bold = {
        row: all(line.is_bold for lines in _list_row(cells, row).values() for line in lines)
        for row in range(len(grid.tops) - 1)
        if _list_row(cells, row)
    }
    return bold.get(0, False) and not all(bold.values())


def _find_bases(row: CellLines, *, is_beside: bool = False) -> list[float]:
    """Return the baselines of rows without lines between them; none for a row of one line.

    Either values are aligned in a column, or the lines of the first cell are as far apart and as
    high as those of another cell. Only values prove rows beside a cell of several drawn rows, and
    without a first cell.
    """
    row = {cell: lines for cell, lines in row.items() if cell.rows == 1}
    if len(row) < 2:
        return []
    first, *others = (row[cell] for cell in sorted(row, key=lambda cell: cell.column))
    right = min(cell.right for cell in row)
    of_values = _find_bases_of_values(first, others, right)
    if of_values or is_beside or min(cell.column for cell in row) > 0:
        return of_values
    bases = [line.base for line in first]
    if len(bases) < 2:
        return []
    pitch = _PITCH_OF_ROWS * max(line.size for line in first)
    if any(above - base < pitch for above, base in pairwise(bases)):
        return []
    for lines in others:
        level = [any(abs(line.base - base) < _BASELINE for line in lines) for base in bases]
        if all(level):
            return bases
    return []


def _find_bases_of_values(
    first: Sequence[Line], others: Sequence[Sequence[Line]], right: float
) -> list[float]:
    """Return the baselines of rows if a column has only values, at least two below each other.

    The value of a label that is wrapped before `right` may be on any of its lines.
    """
    columns = [
        lines for lines in others
        if all(is_value(segment.text) for line in lines for segment in line.segments)
    ]  # fmt: skip
    if max(map(len, columns), default=0) < 2:
        return []
    valued = _join_near(line.base for lines in columns for line in lines)
    every = _join_near(line.base for lines in (first, *others) for line in lines)
    labelled = sum(any(abs(line.base - base) < _SAME_LINE for line in first) for base in valued)
    if len(valued) * 2 < len(every) or labelled * 2 < len(valued):
        return []
    starts: list[float] = []
    above: Line | None = None
    is_label = False
    for base in every:
        own = next((line for line in first if abs(line.base - base) < _SAME_LINE), None)
        has_value = any(abs(base - other) < _SAME_LINE for other in valued)
        continues = (
            own is not None
            and above is not None
            and continues_label(above.segments[-1], own.segments[0], right)
        )
        if (has_value and not (is_label and continues)) or (own is not None and not continues):
            starts.append(base)
        above, is_label = (own or above), not has_value
    return starts


def _join_near(bases: Iterable[float]) -> list[float]:
    """Return the places of lines from above to below; those on one baseline are one."""
    joined: list[float] = []
    for base in sorted(bases, reverse=True):
        if not joined or joined[-1] - base >= _SAME_LINE:
            joined.append(base)
    return joined


def _merge(strokes: Sequence[Stroke], *, is_vertical: bool) -> list[Stroke]:
    """Return lines; those that continue each other are one."""
    lines: list[Stroke] = []
    for places in _group_near([one for one in strokes if one.is_vertical is is_vertical]):
        at = sum(place.at for place in places) / len(places)
        held: Stroke | None = None
        for place in sorted(places, key=lambda one: one.start):
            if held is not None and place.start <= held.end + _NEAR:
                held = lines[-1] = replace(held, end=max(held.end, place.end))
            else:
                held = replace(place, at=at)
                lines.append(held)
    return lines


def _group_near(lines: Iterable[Stroke]) -> list[list[Stroke]]:
    """Return groups of parallel lines within the distance at which lines count as one."""
    groups: list[list[Stroke]] = []
    for line in sorted(lines, key=lambda one: one.at):
        if groups and line.at - groups[-1][0].at <= _NEAR:
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _meet(level: Stroke, upright: Stroke) -> bool:
    return (
        level.start - _NEAR <= upright.at <= level.end + _NEAR
        and upright.start - _NEAR <= level.at <= upright.end + _NEAR
    )


def _find_groups(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
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


def _make_grid(lines: Sequence[Stroke]) -> DrawnGrid | None:
    level = [line for line in lines if not line.is_vertical]
    upright = [line for line in lines if line.is_vertical]
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
    if not rows or not columns or rows * columns > _MOST_CELLS:
        return None
    ended = _find_drawn(upright, lefts[1:], [(a + b) / 2 for a, b in pairwise(tops)])
    closed = _find_drawn(level, tops[1:], [(a + b) / 2 for a, b in pairwise(lefts)])
    cells = tuple(_list_cells(lefts, tops, ended, closed))
    return DrawnGrid(tuple(lefts), tuple(tops), cells, (*level, *upright), ended, closed)


def _list_cells(
    lefts: Sequence[float],
    tops: Sequence[float],
    ended: frozenset[tuple[int, int]],
    closed: frozenset[tuple[int, int]],
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
    lines: Sequence[Stroke], places: Sequence[float], middles: Sequence[float]
) -> frozenset[tuple[int, int]]:
    """Return where a line is drawn: the indexes of a place and of the middle of a cell there."""
    return frozenset(
        (place, middle)
        for place, at in enumerate(places)
        for line in lines
        if abs(line.at - at) <= _NEAR
        for middle, where in enumerate(middles)
        if line.start <= where <= line.end
    )
