"""Unfolds a table in a cell: each of its rows becomes a row of the table around it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from knowledge.documents.tables import Cell

MOST_ROWS = 200
Rows = Sequence[Sequence[Cell]]


def unfold(cells: Sequence[Cell], inner: Sequence[Rows]) -> Iterator[list[Cell]]:
    """Yield a row once for each row of the largest table in its cells.

    `inner` has the rows of the table in each cell, none for a cell without one. The other tables,
    and all tables of a row with a cell that spans rows, stay as texts in their cells.
    """
    row = [
        replace(cell, text=_join(cell.text, "; ".join(_write_rows(rows)))) if rows else cell
        for cell, rows in zip(cells, inner, strict=True)
    ]
    largest = max(range(len(cells)), key=lambda at: len(inner[at]), default=0)
    texts = list(_write_rows(inner[largest])) if cells else []
    if len(texts) < 2 or any(cell.rows > 1 for cell in cells):
        yield row
        return
    for text in texts:
        own = replace(cells[largest], text=_join(cells[largest].text, text))
        yield [*row[:largest], own, *row[largest + 1 :]]


def _write_rows(rows: Rows) -> Iterator[str]:
    """Yield the rows of an inner table as texts, each value after the head of its column."""
    filled = [row for row in rows if any(cell.text for cell in row)]
    head: Sequence[Cell] = ()
    if len(filled) > 1 and all(cell.is_header for cell in filled[0]):
        head, filled = filled[0], filled[1:]
    for row in filled[:MOST_ROWS]:
        named = (
            f"{head[at].text}: {cell.text}" if at < len(head) and head[at].text else cell.text
            for at, cell in enumerate(row)
            if cell.text
        )
        yield ", ".join(named)


def _join(outside: str, inside: str) -> str:
    return f"{outside} {inside}".strip()
