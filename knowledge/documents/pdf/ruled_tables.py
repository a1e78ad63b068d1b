"""Reads tables whose cells are drawn: text within the lines of a cell belongs to the cell.

Other tables are found by the alignment of their cells, see `text_tables`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import inf

from knowledge.documents.pdf.drawn_grids import (
    NEAR,
    DrawnCell,
    DrawnGrid,
    find_groups,
    has_interlocked_rows,
    make_grid,
    part_grid,
)
from knowledge.documents.pdf.page_text import Segment, Stroke, cut_segment
from knowledge.documents.pdf.side_by_side import represent_card
from knowledge.documents.pdf.text_lines import (
    DrawnTable,
    Line,
    TextTable,
    continues_label,
    find_lines,
    group_by_line,
    hold_values_beside,
    is_wrapped,
    join_cell,
    lacks_group,
    merge_intervals,
    strike_row,
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
_LEAST_SHARE = 0.2
"""Minimum share of a text that is in a column to which it belongs as well."""
_ONE_ROW = 2
"""The number of edges of a single row."""
_FURTHEST_NAME, _LARGER_NAME = 2.0, 1.2
"""Distance of the name of a table from the table, in font sizes, and size of a heading."""
_SAME_LINE = 2.5
"""The same if values prove that there are rows: labels in another typeface may be higher."""
_CellLines = dict[DrawnCell, list[Line]]


def take_tables(segments: Sequence[Segment], grids: Sequence[DrawnGrid]) -> list[Segment]:
    """Return the segments of a page, with the drawn tables in place of those in tables."""
    left = list(segments)
    for drawn in grids if left else ():
        whole = read_grid(drawn, drawn.part(left)[0])
        parts = [] if whole is None else part_grid(drawn, whole.segments)
        for grid in parts:
            inside, outside = grid.part(left)
            if len(parts) > 1 and len(grid.tops) == _ONE_ROW < len(grid.lefts):
                left = _take_cells(grid, left)
            elif inside:
                table = whole if len(parts) == 1 else read_grid(grid, inside)
                left = [*outside, _represent(grid, inside, table or _frame(grid, inside))]
        if whole is None and len(drawn.tops) == _ONE_ROW and len(drawn.lefts) > _ONE_ROW:
            left = _take_cells(drawn, left)
    return _take_names(left)


def read_grid(drawn: DrawnGrid, segments: Sequence[Segment]) -> TextTable | None:
    """Return the table of a grid; None for a diagram or a single column."""
    grid, inside = _divide(drawn, segments)
    cells = {cell: list(find_lines(own)) for cell, own in grid.group(inside).items()}
    if len(drawn.lefts) <= 2 or not _is_table(grid, cells):
        return None
    table = _frame(grid, inside)
    table.columns, table.rows = list(pairwise(grid.lefts)), list(_list_rows(grid, cells))
    if has_interlocked_rows(grid):
        table.unclear = [line.text for line in _list_lines(drawn, segments)]
    elif lacks_group(_list_heads(cells)) or any(
        hold_values_beside(
            line.segments for cell, own in cells.items() if cell.column == at for line in own
        )
        for at in range(len(table.columns))
    ):
        table.unclear = [line.text for line in find_lines(inside)]
    return table


def _take_names(segments: Sequence[Segment]) -> list[Segment]:
    """Return segments; the names of tables next to each other, which are one line above them, are
    in their tables.
    """
    tables = sorted(
        (one for one in segments if isinstance(one, DrawnTable)),
        key=lambda one: (-one.base, one.left),
    )
    others = [one for one in segments if not isinstance(one, DrawnTable)]
    taken: set[int] = set()
    for line in group_by_line(others) if len(tables) > 1 else ():
        named = [one for one in tables if any(_is_name(name, one) for name in line)]
        own = [name for one in named for name in line if _is_name(name, one)]
        if len(named) == len(own) == len(line) > 1:
            for name, table in zip(own, (one.table for one in named), strict=True):
                table.rows[:0] = [[Cell(name.text, columns=len(table.columns))]]
                table.unclear = [name.text, *table.unclear] if table.unclear else ()
            taken.update(map(id, line))
    return [*(one for one in others if id(one) not in taken), *tables]


def _is_name(name: Segment, table: DrawnTable) -> bool:
    """Return whether a text is just above a table, within its width, and not much larger."""
    above = name.base - table.base - table.size
    is_within = table.left <= name.left + NEAR and name.right <= table.right + NEAR
    is_near = 0 <= above < _FURTHEST_NAME * name.size and name.size < _LARGER_NAME * table.size
    return bool(table.table.rows) and is_within and is_near


def _frame(grid: DrawnGrid, segments: list[Segment]) -> TextTable:
    """Return a table without rows, which is the lines inside a frame."""
    lowest = min(segment.base for segment in segments)
    return TextTable([(grid.lefts[0], grid.lefts[-1])], [], lowest, segments)


def _represent(grid: DrawnGrid, inside: Sequence[Segment], table: TextTable) -> DrawnTable:
    sizes: Counter[float] = Counter()
    for segment in inside:
        sizes[segment.size] += len(segment.text)
    size = sizes.most_common(1)[0][0]
    text = " ".join(segment.text for segment in inside)
    base = grid.tops[0] - size
    number = min(segment.number for segment in inside)
    return DrawnTable(text, grid.lefts[0], grid.lefts[-1], base, size, number=number, table=table)


def _take_cells(row: DrawnGrid, segments: Sequence[Segment]) -> list[Segment]:
    """Return segments with the cells of a single row in place of the texts in them.

    If a cell has mostly values, it may be a column of a table without lines between its rows.
    """
    inside, outside = row.part(segments)
    cells = row.group(inside)
    for own in cells.values():
        lines = list(find_lines(own))
        valued = sum(all(is_value(one.text) for one in line.segments) for line in lines)
        if len(lines) < _LEAST_BESIDE or 2 * valued >= len(lines):
            return list(segments)
    boxes = [((one.left, one.bottom, one.right, one.top), own) for one, own in cells.items()]
    return [*outside, *(represent_card(box, row.tops[0]) for box in boxes)]


def _list_heads(cells: _CellLines) -> list[list[list[Segment]]]:
    """Return the lines of the first row with several cells, each with the texts in every cell."""
    first = min((cell.row for cell in cells if cell.column), default=0)
    row = _list_row(cells, first)
    own = [row[cell] for cell in sorted(row, key=lambda cell: cell.column)]
    return [
        [
            [one for line in lines if abs(line.base - base) < _SAME_LINE for one in line.segments]
            for lines in own
        ]
        for base in _join_near(line.base for lines in own for line in lines)
    ]


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
    areas = dict(zip(places, find_groups(len(places), open_sides), strict=True))
    own: dict[int, list[Segment]] = {area: [] for area in areas.values()}
    for segment in segments:
        own[areas[grid.find_place(segment)]].append(segment)
    for held in own.values():
        yield from find_lines(held)


def _divide(grid: DrawnGrid, segments: Sequence[Segment]) -> tuple[DrawnGrid, list[Segment]]:
    """Return a grid and its segments, divided where the texts are, even without a drawn line.

    A drawn column is divided into columns of values next to each other. A merged cell is divided at
    columns if it has, on one line, texts that each fit into a column, and at rows if each of its
    lines is on the line of a row: lines may be drawn between values alone.
    """
    own = grid.group(segments)
    gutters = [
        _find_gutters([
            one for cell, held in own.items() if (cell.column, cell.columns) == (at, 1)
            for one in held
        ])
        for at in range(len(grid.lefts) - 1)
    ]  # fmt: skip
    strokes, pieces = list(grid.strokes), []
    first = max((one.base for one in segments if is_value(one.text)), default=-inf)
    for cell in grid.cells:
        columns = range(cell.column, cell.column + cell.columns)
        edges = [sum(gutter) / 2 for at in columns for gutter in gutters[at]]
        edges += grid.lefts[cell.column + 1 : cell.column + cell.columns]
        held = own.get(cell, [])
        if cell.columns == 1:
            held = [part for one in held for part in cut_segment(one, gutters[cell.column])]
        drawn = _fit_columns(cell, edges, held)
        strokes += (Stroke(True, edge, cell.bottom, cell.top) for edge in drawn)
        beside = Counter(round(one.base) for one in held)
        for one in held:
            # A text that is alone on its line, and above the values, may be a header of columns.
            is_header = beside[round(one.base)] == 1 and one.base > first
            least = 0.0 if is_header else _LEAST_SHARE
            pieces += _share(one, drawn, least)
    grid = make_grid(strokes) or grid
    own = grid.group(pieces)
    rows = [
        Stroke(False, top, cell.left, cell.right)
        for cell in grid.cells
        if cell.rows >= _LEAST_ROWS and _fit_rows(cell, own)
        for top in grid.tops[cell.row + 1 : cell.row + cell.rows]
    ]
    return make_grid([*strokes, *rows]) or grid, pieces


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


def _fit_columns(
    cell: DrawnCell, edges: Sequence[float], segments: Sequence[Segment]
) -> Sequence[float]:
    """Return the edges that divide a cell into columns, to which its texts belong.

    Texts on one line prove the columns in a cell that lines merge, except those that one of them is
    over. In a drawn column, they may have a common header above them.
    """
    bases = sorted(segment.base for segment in segments)
    is_beside = any(above - base < _BASELINE for base, above in pairwise(bases))
    wide = [segment for segment in segments if len(_share(segment, edges)) > 1]
    if cell.columns > 1:
        crossed = [edge for edge in edges if any(len(_share(one, [edge])) > 1 for one in wide)]
        return [edge for edge in edges if edge not in crossed] if is_beside else []
    has_values = any(is_value(part.text) for one in wide for part in one.parts)
    if len(segments) == 1 and not is_value(segments[0].text) and _is_in_middle(segments[0], cell):
        return []
    return edges if not wide or (is_beside and not has_values) else []


def _is_in_middle(segment: Segment, cell: DrawnCell) -> bool:
    return abs(segment.left + segment.right - cell.left - cell.right) < segment.size


def _share(segment: Segment, edges: Sequence[float], least: float = _LEAST_SHARE) -> list[Segment]:
    """Return a text, or its parts in the columns between edges, each of them with all of it."""
    least = max(NEAR, least * (segment.right - segment.left))
    crossed = [
        edge for edge in sorted(edges) if segment.left + least < edge < segment.right - least
    ]
    places = pairwise([segment.left, *crossed, segment.right])
    return [replace(segment, left=left, right=right) for left, right in places]


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


def _is_table(grid: DrawnGrid, cells: _CellLines) -> bool:
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


def _list_row(cells: _CellLines, row: int) -> _CellLines:
    return {cell: lines for cell, lines in cells.items() if cell.row == row}


def _list_rows(grid: DrawnGrid, cells: _CellLines) -> Iterator[list[Cell]]:
    """Yield the rows of a grid; a drawn row with several rows of text is divided into them."""
    rows = range(len(grid.tops) - 1)
    own = {row: [cell for cell in grid.cells if cell.row == row] for row in rows}
    bases = {row: _find_bases(_list_row(cells, row)) for row in rows}
    is_whole = not any(cell.columns > 1 for cell in own[0])
    is_head = is_whole and not bases[0] and _is_bold_head(grid, cells)
    for row in rows:
        whole = {
            cell for cell in own[row]
            if cell.rows > 1 or _spans_rows(cells.get(cell, ()), bases[row])
        }  # fmt: skip
        for at, (base, end) in enumerate(pairwise((*(bases[row] or [inf]), -inf))):
            shown = [cell for cell in own[row] if cell not in whole or not at]
            lines = strike_row([
                [
                    line for line in cells.get(cell, ())
                    if cell in whole or end + _SAME_LINE < line.base <= base + _SAME_LINE
                ]
                for cell in shown
            ])  # fmt: skip
            yield [
                Cell(
                    join_cell(held, cell.right),
                    cell.columns,
                    sum(len(bases[part]) or 1 for part in range(row, row + cell.rows))
                    if cell in whole
                    else 1,
                    is_header=is_head and row == 0,
                )
                for cell, held in zip(shown, lines, strict=True)
            ]


def _is_bold_head(grid: DrawnGrid, cells: _CellLines) -> bool:
    """Return whether the first row is bold and the others are not."""
    bold = {
        row: all(line.is_bold for lines in _list_row(cells, row).values() for line in lines)
        for row in range(len(grid.tops) - 1)
        if _list_row(cells, row)
    }
    return bold.get(0, False) and not all(bold.values())


def _find_bases(row: _CellLines) -> list[float]:
    """Return the baselines of rows without lines between them; none for a row of one line.

    Either values are aligned in a column, or the lines of the first cell are as far apart and as
    high as those of another cell. Only values prove rows without a first cell.
    """
    row = {cell: lines for cell, lines in row.items() if cell.rows == 1}
    longest = [line.base for line in max(row.values(), key=len, default=())]
    row = {cell: lines for cell, lines in row.items() if not _spans_rows(lines, longest)}
    if len(row) < 2:
        return []
    first, *others = (row[cell] for cell in sorted(row, key=lambda cell: cell.column))
    right = min(cell.right for cell in row)
    of_values = _find_bases_of_values(first, others, right)
    if of_values or min(cell.column for cell in row) > 0:
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
    if len(valued) * 2 < len(every) or labelled * 2 <= len(valued):
        return []
    starts: list[float] = []
    above: Line | None = None
    open_label: float | None = None
    is_valued = True
    for base in every:
        own = next((line for line in first if abs(line.base - base) < _SAME_LINE), None)
        has_value = any(abs(base - other) < _SAME_LINE for other in valued)
        continues = (
            own is not None
            and above is not None
            and continues_label(above.segments[-1], own.segments[0], right)
        )
        if own is not None and not continues:
            starts.append(base)
            is_valued, open_label = False, None
        elif own is not None and is_valued and not has_value and open_label is None:
            # The rest of a label beside its value, or the beginning of the next one.
            open_label = base
        if has_value and is_valued:
            starts.append(base if open_label is None else open_label)
            open_label = None
        above, is_valued = (own or above), is_valued or has_value
    return starts


def _spans_rows(lines: Sequence[Line], bases: Sequence[float]) -> bool:
    """Return whether a drawn cell has a text that is no value, in the middle of several rows."""
    if not lines or len(lines) >= len(bases) or any(is_value(line.text) for line in lines):
        return False
    middles = lines[0].base + lines[-1].base, bases[0] + bases[-1]
    return abs(middles[0] - middles[1]) < lines[0].size


def _join_near(bases: Iterable[float]) -> list[float]:
    """Return the places of lines from above to below; those on one baseline are one."""
    joined: list[float] = []
    for base in sorted(bases, reverse=True):
        if not joined or joined[-1] - base >= _SAME_LINE:
            joined.append(base)
    return joined
