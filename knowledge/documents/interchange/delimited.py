"""Reads tables as text: CSV and TSV, with commas, semicolons, tabs or bars between the cells.

A table whose rows are the articles of a help centre is read as these articles.
"""

import csv
import io
from collections.abc import Iterator

from knowledge.documents.decoding import decode
from knowledge.documents.errors import TooLargeError, WrongFormatError
from knowledge.documents.interchange.articles import ArticleColumns
from knowledge.documents.office.row_groups import SheetRow, write_sheet
from knowledge.documents.page import Page
from knowledge.documents.tables import MOST_COLUMNS

_DELIMITERS = ",;\t|"
_SAMPLE_LINES = 20
_LONGEST_CELL = 1_000_000
_MOST_ROWS = 1_000_000


def read(data: bytes, source: str) -> Page:
    """Return the page; its rows are in groups of ten, each below the header."""
    text, warnings = decode(data)
    csv.field_size_limit(_LONGEST_CELL)
    table: list[list[str]] = []
    try:
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=_find_delimiter(text))
        for number, cells in enumerate(lines, start=1):
            if number > _MOST_ROWS:
                raise TooLargeError(f"a table may have {_MOST_ROWS} rows")
            table.append(cells[:MOST_COLUMNS])
    except csv.Error as error:
        raise WrongFormatError(f"expected a table as text, found {error}") from error
    if table and (columns := ArticleColumns(table[0])).are_in(table[1:]):
        return Page(source, "", tuple(columns.write(table[1:])), warnings=warnings)
    return Page(source, "", tuple(write_sheet(list(_list_rows(table)))), warnings=warnings)


def _list_rows(table: list[list[str]]) -> Iterator[SheetRow]:
    for number, cells in enumerate(table, start=1):
        named = {at: " ".join(cell.split()) for at, cell in enumerate(cells)}
        if filled := {at: cell for at, cell in named.items() if cell}:
            yield SheetRow(number, filled)


def _find_delimiter(text: str) -> str:
    """Return the sign that cuts the first lines into equally many cells, and into the most."""
    lines = [line for line in text[:100_000].split("\n")[:_SAMPLE_LINES] if line.strip()]
    best, most = ",", (0, 0)
    for delimiter in _DELIMITERS:
        counts = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        usual = max(set(counts), key=counts.count, default=0)
        found = (counts.count(usual), usual)
        if usual > 1 and found > most:
            best, most = delimiter, found
    return best
