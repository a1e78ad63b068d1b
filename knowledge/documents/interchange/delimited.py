"""Reads CSV and TSV files, with commas, semicolons, tabs or vertical bars between the cells.

If the rows of a table are the articles of a help centre, the articles are read.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from knowledge.documents.decoding import clean_text, decode
from knowledge.documents.errors import TooLargeError, WrongFormatError
from knowledge.documents.markup import html
from knowledge.documents.notation import keep_lines
from knowledge.documents.page import Block, BlockKind, LeftOutCounts, Page
from knowledge.documents.tables import MOST_COLUMNS, TOO_MANY_COLUMNS, SheetRow, write_sheet

# The comma is last, because it also occurs in numbers.
_DELIMITERS = "\t;|,"
# The first line that states the delimiter to spreadsheet programs.
_STATED_DELIMITER = re.compile(r"\"?sep=(.)\"?[ \t]{0,9}\n", re.IGNORECASE)
_SAMPLE_LINES = 20
_LONGEST_CELL = 1_000_000
_MOST_ROWS = 1_000_000
_TITLES = frozenset({"title", "name", "article title", "titel", "titre", "question", "subject"})
_BODIES = frozenset({"body", "content", "html", "article body", "answer", "text", "inhalt"})
_PLACES = ("category", "collection", "section", "folder")
_DRAFTS = frozenset({"draft", "is draft", "state", "status"})
_UNPUBLISHED = frozenset({"true", "1", "yes", "draft", "unpublished", "archived"})
_MARKUP = ("</", "<p>", "<br", "<ul>", "<li>")
_DEEPEST_LEVEL = 6


class ArticleColumns:
    """The names of the columns in a table of articles."""

    def __init__(self, header: Sequence[str]) -> None:
        names = [clean_text(cell).strip().casefold().replace("_", " ") for cell in header]
        self._names = names
        self._title = _find(names, _TITLES)
        self._body = _find(names, _BODIES)
        self._draft = _find(names, _DRAFTS)
        columns = (_find(names, frozenset({name})) for name in _PLACES)
        self._places = [at for at in columns if at is not None]

    def are_in(self, rows: Sequence[Sequence[str]]) -> bool:
        """Return whether the rows have titles, and bodies at least one of which is HTML."""
        if self._title is None or self._body is None:
            return False
        bodies = (_take(row, self._body) for row in rows)
        return any(any(mark in body for mark in _MARKUP) for body in bodies)

    def write(self, rows: Sequence[Sequence[str]], left_out: LeftOutCounts) -> Iterator[Block]:
        """Yield the articles below the headings of their categories and sections."""
        read = {self._title, self._body, self._draft, *self._places}
        for at, name in enumerate(self._names):
            if at not in read and any(_take(row, at) for row in rows):
                left_out.add("column", "neither the title, the text nor the section", name=name)
        last: list[str] = []
        for number, row in enumerate(rows, start=2):
            body = _take(row, self._body)
            is_draft = _take(row, self._draft).casefold() in _UNPUBLISHED
            if is_draft or not body:
                reason = "not published" if is_draft else "without text"
                left_out.add("article", reason, name=_take(row, self._title))
                continue
            places = [name for at in self._places if (name := _take(row, at))]
            for level, name in enumerate(places, start=1):
                if places[:level] != last[:level]:
                    yield Block(BlockKind.HEADING, name, level)
            last = places
            level = len(places) + 1
            title = _take(row, self._title) or f"Row {number}"
            yield Block(BlockKind.HEADING, title, level, f"row={number}")
            page = html.read(body.encode("utf-8", "replace"), "")
            left_out.take(page.left_out)
            for block in page.blocks:
                below = min(block.level + level, _DEEPEST_LEVEL) if block.level else 0
                yield replace(block, level=below)


def read(data: bytes, source: str) -> Page:
    """Return the page; its rows are in groups of ten, each below the header."""
    text, warnings = decode(data)
    left_out = LeftOutCounts()
    stated = _STATED_DELIMITER.match(text)
    body = text[stated.end() :] if stated is not None else text
    delimiter = stated[1] if stated is not None else _find_delimiter(body)
    csv.field_size_limit(_LONGEST_CELL)
    try:
        escape = _find_escape(body, delimiter)
        table, unclosed = _read_rows(body, delimiter, escape)
        if unclosed:
            warnings = (*warnings, f"the quotation mark in row {len(table)} is not closed")
            table[-1:] = _read_rows(unclosed, delimiter, escape, csv.QUOTE_NONE)[0]
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


def _read_rows(
    text: str, delimiter: str, escape: str | None, quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
) -> tuple[list[list[str]], str]:
    """Return the rows, and the text of the last one if a quotation mark in it is not closed, so
    that it contains all further rows.
    """
    table: list[list[str]] = []
    file = io.StringIO(text, newline="")
    lines = csv.reader(file, delimiter=delimiter, quoting=quoting, escapechar=escape)
    start = end = 0
    for number, cells in enumerate(lines, start=1):
        if number > _MOST_ROWS:
            raise TooLargeError(f"a table can have at most {_MOST_ROWS} rows")
        table.append(cells)
        start, end = end, lines.line_num
    last = "\n".join(text.split("\n")[start:]) if end > start + 1 else ""
    return table, last if quoting == csv.QUOTE_MINIMAL and _is_unclosed(last, delimiter) else ""


def _is_unclosed(text: str, delimiter: str) -> bool:
    try:
        list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False


def _list_rows(table: list[list[str]], first: int) -> Iterator[SheetRow]:
    for number, cells in enumerate(table, start=first):
        named = {at: keep_lines(cell) for at, cell in enumerate(cells)}
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


def _find_escape(text: str, delimiter: str) -> str | None:
    """Return the backslash if with it more rows are as long as the first one."""
    sample = [line for line in text.split("\n") if "\\" in line]
    if not any(f"\\{sign}" in line for line in sample for sign in (delimiter, '"')):
        return None
    sample[:0] = text.split("\n", 1)[:1]
    fitting: list[int] = []
    for escape in (None, "\\"):
        sizes = [len(row) for row in csv.reader(sample, delimiter=delimiter, escapechar=escape)]
        fitting.append(sizes.count(sizes[0]))
    return "\\" if fitting[1] > fitting[0] else None


def _find(names: Sequence[str], wanted: frozenset[str]) -> int | None:
    return next((at for at, name in enumerate(names) if name in wanted), None)


def _take(row: Sequence[str], at: int | None) -> str:
    return row[at].strip() if at is not None and at < len(row) else ""
