"""Holds the rows of a table of a PDF, and joins its parts on pages that follow each other."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from knowledge.documents.page import Block
from knowledge.documents.pdf.page_text import Segment
from knowledge.documents.tables import Cell, count_header_rows, expand_cells, write_table


@dataclass(slots=True)
class TextTable:
    """The rows of a table on one page, where its columns begin and end, and its lowest line.

    A drawn table has its segments.
    """

    page: int
    columns: list[tuple[float, float]]
    rows: list[list[Cell]]
    lowest: float = 0.0
    segments: list[Segment] = field(default_factory=list)


def continue_table(before: TextTable, table: TextTable) -> TextTable:
    """Return a table with the header of the one that it continues, when it does.

    A merged cell whose text is on the page before belongs to its rows on this page too.
    """
    if len(before.columns) != len(table.columns) or table.page != before.page + 1:
        return table
    is_near = all(
        min(one[1], other[1]) - max(one[0], other[0]) > -10
        for one, other in zip(before.columns, table.columns, strict=True)
    )
    if not table.rows or not is_near:
        return table
    header = _take_header(before)
    own = table.rows
    repeated = len(header) if _list_texts(own[: len(header)]) == _list_texts(header) else 0
    rows = [*header, *_fill_first(before, own[repeated:])]
    return replace(table, rows=rows)


def write_text_table(table: TextTable) -> Iterator[Block]:
    """Yield a table as blocks whose place is its page."""
    return write_table(table.rows, f"page={table.page}")


def _take_header(table: TextTable) -> list[list[Cell]]:
    first = 0
    while first + 1 < len(table.rows) and len(table.rows[first]) == 1 and len(table.columns) > 1:
        first += 1
    count = count_header_rows(table.rows[first:])
    header = table.rows[first : first + count]
    return [
        [replace(cell, rows=min(cell.rows, count - at)) for cell in row]
        for at, row in enumerate(header)
    ]


def _fill_first(before: TextTable, rows: list[list[Cell]]) -> list[list[Cell]]:
    """Return rows whose first cell, when it is empty, has the text of the cell that it goes on."""
    if not rows or not rows[0] or rows[0][0].text or len(rows[0]) < 2:
        return rows
    is_merged = rows[0][0].rows > 1 or (before.rows and not _has_own_first(before))
    if not is_merged:
        return rows
    above = expand_cells(before.rows)[-1][0]
    return [[replace(rows[0][0], text=above), *rows[0][1:]], *rows[1:]]


def _has_own_first(table: TextTable) -> bool:
    """Return whether the last row has a first cell that is not merged with one above it."""
    width = len(table.columns)
    return sum(cell.columns for cell in table.rows[-1]) >= width


def _list_texts(rows: list[list[Cell]]) -> list[list[str]]:
    return [[cell.text for cell in row] for row in rows]
