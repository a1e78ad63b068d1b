"""Takes the tables of a page whose cells are drawn: text inside the lines of a cell is its text.

Other tables are found by cells that stand below each other, see `text_tables`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from knowledge.documents.pdf.drawn_grids import DrawnCell, DrawnGrid, find_grids
from knowledge.documents.pdf.drawn_strokes import Stroke
from knowledge.documents.pdf.page_text import Segment
from knowledge.documents.pdf.table_rows import TextTable
from knowledge.documents.pdf.text_lines import Line, find_lines, join_lines
from knowledge.documents.tables import Cell

_LEAST_FILLED = 0.25
"""The share of cells with text; a grid with less is that of a diagram."""
_LONGEST_CELL = 15
"""Lines of a cell; a grid most of whose text is in longer ones is the layout of a page."""
_PITCH_OF_ROWS = 1.5
_BASELINE = 1.5

CellLines = dict[DrawnCell, list[Line]]


def take_tables(
    page: int, segments: Sequence[Segment], strokes: Sequence[Stroke]
) -> tuple[Mapping[int, TextTable], list[Segment]]:
    """Return the drawn tables, and the segments of which each table is one.

    The tables are by `id` of the segment that stands for them.
    """
    tables: dict[int, TextTable] = {}
    left = list(segments)
    for grid in find_grids(strokes) if left else ():
        inside, outside = _part(left, grid)
        cells = _fill(grid, inside)
        if not _is_table(grid, cells):
            continue
        mark = _stand_for(grid, inside)
        columns = list(pairwise(grid.lefts))
        rows = list(_list_rows(grid, cells))
        lowest = min(segment.base for segment in inside)
        tables[id(mark)] = TextTable(page, columns, rows, lowest, inside)
        left = [*outside, mark]
    return tables, left


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


def _fill(grid: DrawnGrid, segments: Sequence[Segment]) -> CellLines:
    own: dict[DrawnCell, list[Segment]] = {}
    for segment in segments:
        cell = grid.find_cell(*_find_middle(segment))
        if cell is not None:
            own.setdefault(cell, []).append(segment)
    return {cell: list(find_lines(found)) for cell, found in own.items()}


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
    return Segment(
        " ".join(segment.text for segment in inside), grid.lefts[0], grid.lefts[-1],
        max(segment.base for segment in inside), sizes.most_common(1)[0][0],
    )  # fmt: skip


def _list_row(cells: CellLines, row: int) -> CellLines:
    return {cell: lines for cell, lines in cells.items() if cell.row == row}


def _list_rows(grid: DrawnGrid, cells: CellLines) -> Iterator[list[Cell]]:
    for row in range(len(grid.tops) - 1):
        own = [cell for cell in grid.cells if cell.row == row]
        bases = _find_bases(_list_row(cells, row))
        if not bases or any(cell.rows > 1 for cell in own):
            yield [Cell(join_lines(cells.get(cell, ())), cell.columns, cell.rows) for cell in own]
            continue
        for base, end in pairwise((*bases, float("-inf"))):
            yield [
                Cell(
                    join_lines([
                        line for line in cells.get(cell, ())
                        if end + _BASELINE < line.base <= base + _BASELINE
                    ]),
                    cell.columns,
                )
                for cell in own
            ]  # fmt: skip


def _find_bases(row: CellLines) -> list[float]:
    """Return where rows begin between which no line is drawn; none for a row of one line.

    The lines of the first cell stand far from each other, as high as those of another one.
    """
    if len(row) < 2:
        return []
    first, *others = (row[cell] for cell in sorted(row, key=lambda cell: cell.column))
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
