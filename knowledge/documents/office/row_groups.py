"""Writes the rows of a sheet in groups, each below the header, with the numbers of its rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from knowledge.documents.page import Block, BlockKind
from knowledge.documents.tables import write_rows

ROWS_PER_GROUP = 10
"""Rows that share a place: a citation names the group that a fact is in."""

_MOST_SHOWN_COLUMNS = 200


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A row by its number, from 1, and its cells that are not empty by their columns, from 0."""

    number: int
    cells: dict[int, str]


def write_sheet(rows: Sequence[SheetRow], anchor: str = "") -> Iterator[Block]:
    """Yield the blocks of a sheet; an empty row ends a table, a row of one cell is text.

    The anchors are those of RFC 7111 (`row=2-11`) after the text `anchor`.
    """
    tables = groupby(enumerate(rows), key=lambda found: found[1].number - found[0])
    header: list[str] = []
    columns: list[int] = []
    for _, members in tables:
        table = [row for _, row in members]
        while table and len(table[0].cells) == 1 and not _continues(table[0], columns, header):
            (text,) = table[0].cells.values()
            yield Block(BlockKind.TEXT, text, anchor=f"{anchor}row={table[0].number}")
            table = table[1:]
        if not table:
            continue
        if not (header and _fits(table, columns)):
            columns = sorted({column for row in table for column in row.cells})
            columns = columns[:_MOST_SHOWN_COLUMNS]
            header, table = _take_header(table, columns)
        yield from _write_groups(header, table, columns, anchor)


def _continues(row: SheetRow, columns: Sequence[int], header: Sequence[str]) -> bool:
    return len(columns) == 1 and bool(header) and set(row.cells) <= set(columns)


def _fits(table: Sequence[SheetRow], columns: Sequence[int]) -> bool:
    """Return whether rows after an empty one belong to the table before: their first has values."""
    used = {column for row in table for column in row.cells}
    return used <= set(columns) and any(_is_number(text) for text in table[0].cells.values())


def _take_header(table: list[SheetRow], columns: Sequence[int]) -> tuple[list[str], list[SheetRow]]:
    first = table[0]
    texts = [first.cells.get(column, "") for column in columns]
    if any(_is_number(text) for text in texts):
        return [f"Column {index}" for index, _ in enumerate(columns, start=1)], table
    if len(table) > 2 and len(set(filter(None, texts))) < len([text for text in texts if text]):
        # Merged cells above a row of labels: both are the header.
        second = [table[1].cells.get(column, "") for column in columns]
        if not any(_is_number(text) for text in second):
            pairs = zip(texts, second, strict=True)
            return [" ".join(dict.fromkeys(filter(None, pair))) for pair in pairs], table[2:]
    return texts, table[1:]


def _write_groups(
    header: Sequence[str], rows: Sequence[SheetRow], columns: Sequence[int], anchor: str
) -> Iterator[Block]:
    if not rows:
        yield Block(BlockKind.TEXT, ", ".join(filter(None, header)))
    for start in range(0, len(rows), ROWS_PER_GROUP):
        group = rows[start : start + ROWS_PER_GROUP]
        table = write_rows(header, ([row.cells.get(at, "") for at in columns] for row in group))
        first, last = group[0].number, group[-1].number
        numbers = str(first) if first == last else f"{first}-{last}"
        yield Block(BlockKind.TABLE, table, anchor=f"{anchor}row={numbers}")


def _is_number(text: str) -> bool:
    bare = text.strip("%€$£ ").replace(",", "").replace(".", "").replace("-", "")
    return bare.isdecimal()
