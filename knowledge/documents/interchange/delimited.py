"""Reads CSV and TSV files, with commas, semicolons, tabs or vertical bars between the cells.

If the rows of a table are the articles of a help centre, the articles are read.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any

from knowledge.documents.decoding import decode
from knowledge.documents.errors import TooLargeError, WrongFormatError
from knowledge.documents.interchange.articles import ArticleColumns
from knowledge.documents.notation import keep_lines
from knowledge.documents.page import LeftOutCounts, Page
from knowledge.documents.tables import MOST_COLUMNS, TOO_MANY_COLUMNS, SheetRow, write_sheet

# The comma is last, because it also occurs in numbers.
_DELIMITERS = "\t;|,"
# The first line that states the delimiter to spreadsheet programs.
_STATED_DELIMITER = re.compile(r"\"?sep=(.)\"?[ \t]{0,9}\n", re.IGNORECASE)
# Programs write codes like this, which would otherwise be shown as numbers.
_FORMULA_OF_TEXT = re.compile(r"\A=\"([^\"]*)\"\Z")
_QUOTINGS: tuple[Mapping[str, Any], ...] = ({}, {"escapechar": "\\"}, {"skipinitialspace": True})
_SAMPLE_LINES = 20
_LONGEST_CELL = 1_000_000
_MOST_ROWS = 1_000_000


def read(data: bytes, source: str) -> Page:
    """Return the page; its rows are in groups of ten, each below the header."""
    text, warnings = decode(data)
    left_out = LeftOutCounts()
    stated = _STATED_DELIMITER.match(text)
    body = text[stated.end() :] if stated is not None else text
    delimiter = stated[1] if stated is not None else _find_delimiter(body)
    csv.field_size_limit(_LONGEST_CELL)
    try:
        options = {"delimiter": delimiter, **_find_quoting(body, delimiter)}
        table, unclosed = _read_rows(body, options)
        if unclosed:
            warnings = (*warnings, f"the quotation mark in row {len(table)} is not closed")
            table[-1:] = _read_rows(unclosed, {**options, "quoting": csv.QUOTE_NONE})[0]
    except csv.Error as error:
        raise WrongFormatError(f"the table cannot be read: {error}") from error
    too_many = sum(1 for row in table for cell in row[MOST_COLUMNS:] if cell.strip())
    left_out.add("cell", TOO_MANY_COLUMNS, too_many)
    if table and (columns := ArticleColumns(table[0])).are_in(table[1:]):
        blocks = tuple(columns.write(table[1:], left_out))
    else:
        first = 1 if stated is None else 2
        blocks = tuple(write_sheet(list(_list_rows(table, first))))
    return Page(source, "", blocks, warnings=warnings, left_out=left_out.list())


def _read_rows(text: str, options: Mapping[str, Any]) -> tuple[list[list[str]], str]:
    """Return the rows, and the text of the last one if a quotation mark in it is not closed, so
    that it contains all further rows.
    """
    table: list[list[str]] = []
    file = io.StringIO(text, newline="")
    lines = csv.reader(file, **options)
    start = end = 0
    for number, cells in enumerate(lines, start=1):
        if number > _MOST_ROWS:
            raise TooLargeError(f"a table can have at most {_MOST_ROWS} rows")
        table.append(cells)
        start, end = end, lines.line_num
    last = "\n".join(text.split("\n")[start:]) if end > start + 1 else ""
    return table, last if "quoting" not in options and _is_unclosed(last, options) else ""


def _is_unclosed(text: str, options: Mapping[str, Any]) -> bool:
    try:
        list(csv.reader(io.StringIO(text, newline=""), **options, strict=True))
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False


def _list_rows(table: list[list[str]], first: int) -> Iterator[SheetRow]:
    for number, cells in enumerate(table, start=first):
        named = {at: keep_lines(_FORMULA_OF_TEXT.sub(r"\1", cell)) for at, cell in enumerate(cells)}
        if filled := {at: cell for at, cell in named.items() if cell}:
            yield SheetRow(number, filled)


def _find_delimiter(text: str) -> str:
    """Return the delimiter that divides the first lines into the same number of cells, and into the
    most.
    """
    lines = [line for line in text[:100_000].split("\n")[:_SAMPLE_LINES] if line.strip()]
    best, most = ",", (0, 0)
    for delimiter in _DELIMITERS:
        counts = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        usual = max(set(counts), key=counts.count, default=0)
        score = (counts.count(usual), usual)
        if usual > 1 and score > most:
            best, most = delimiter, score
    return best


def _find_quoting(text: str, delimiter: str) -> Mapping[str, Any]:
    """Return how cells are quoted if a backslash escapes a sign, or a space precedes quotation
    marks: then more rows are as long as the first one, or fewer quotation marks are alone.
    """
    sample = [line for line in text.split("\n") if "\\" in line or f'{delimiter} "' in line]
    sample[:0] = text.split("\n", 1)[:1]

    def count_fitting(options: Mapping[str, Any]) -> tuple[int, int]:
        rows = list(csv.reader(sample, delimiter=delimiter, **options))
        alone = sum(cell.count('"') % 2 for row in rows for cell in row)
        return sum(len(row) == len(rows[0]) for row in rows), -alone

    return max(_QUOTINGS, key=count_fitting)
