"""A workbook as its format states it: what of its sheets is visible, and how values are displayed.

The readers of the formats fill the sheets; hidden content is left out and counted here. Rows and
columns of a collapsed group are one click away, so they are not hidden.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar
from urllib.parse import quote

from knowledge.documents.notation import Span, join_spans, keep_lines
from knowledge.documents.office.number_format import format_number, format_text
from knowledge.documents.office.zipped_xml import (
    BACKGROUND,
    count_field_in_header,
    write_page_headers,
)
from knowledge.documents.page import Block, BlockKind, LeftOutCounts
from knowledge.documents.symbols import replace_symbols
from knowledge.documents.tables import MOST_COLUMNS, TOO_MANY_COLUMNS, SheetRow, write_sheet

_HIDDEN = "hidden in the workbook"
NO_RESULT = ("formula", "the file stores no result: open and save it in Excel or LibreOffice")
"""What is counted for a formula without a stored value."""
TRUTHS = {"0": "FALSE", "1": "TRUE"}
CHECKBOXES = {"0": "\u2610", "1": "\u2611"}
# The codes of printed headers (ECMA-376 part 1, 18.3.1.46): sections, appearance and fields.
_SECTION = re.compile(r"&[LCR]")
_APPEARANCE = re.compile(
    r'&(?:"[^"]{0,200}"|K(?:[0-9A-Fa-f]{6}|\d\d[+-]\d{3})|\d{1,3}|[BEIOHSUXY])'
)
_LINK_FORMULA = re.compile(
    r'(?:[a-z]{1,9}:)?=?[ ]?HYPERLINK\([ ]?"([^"]{1,2083})"[ ]?[,;)]', re.IGNORECASE
)
_AMPERSAND = "\ue000"
_FIELD = re.compile(r"&[PNDTGFAZ]")
_Cell = TypeVar("_Cell")
CellRange: TypeAlias = tuple[range, range]
"""The 1-based rows and the 0-based columns of a range of cells."""


@dataclass(frozen=True, slots=True)
class Run(Span):
    """Text with the colour of its typeface, as in the file; None if it is not known."""

    colour: object = None


Runs: TypeAlias = Iterable[Run | str]
"""The text of a cell; a run without a typeface of its own, which it takes from its cell, is a
string.
"""


@dataclass(frozen=True, slots=True)
class CellStyle:
    """The style of a cell: number format, whether the typeface is struck out, its colour and that
    of the cell, as in the file (None if it is not known), and the name of the typeface.
    """

    format: str = ""
    is_struck: bool = False
    colour: object = None
    background: object = None
    typeface: str = ""

    def hides(self, run: Run | str) -> bool:
        """Return whether text has the colour of the cell."""
        text, colour = (run, self.colour) if isinstance(run, str) else (run.text, run.colour)
        return bool(text.strip()) and colour is not None and colour == self.background


@dataclass(slots=True)
class Sheet:
    """The visible cells of a sheet; readers add its rows, counted from 1, in their order.

    `merged` are the ranges of merged cells, `header_rows` the rows that the file declares to be the
    header of a table. `links` are the addresses of cells by row and column.
    """

    name: str
    _left_out: LeftOutCounts
    _links_of_workbook: list[tuple[str, str]]
    links: dict[tuple[int, int], str] = field(default_factory=dict)
    merged: list[CellRange] = field(default_factory=list)
    header_rows: set[int] = field(default_factory=set)
    _rows: dict[int, SheetRow] = field(default_factory=dict)
    _columns: set[int] = field(default_factory=set)
    _hidden_columns: set[int] = field(default_factory=set)
    _hidden_rows: int = 0

    def hide_columns(self, columns: Iterable[int]) -> None:
        """Count columns as hidden, before the rows are added."""
        self._hidden_columns.update(columns)
        # Programs hide all columns beyond those in use.
        count = sum(column < MOST_COLUMNS for column in self._hidden_columns)
        self._left_out.add("hidden column", _HIDDEN, count)

    def hide_rows(self, count: int = 1) -> None:
        """Count the next rows as hidden."""
        self._left_out.add("hidden row", _HIDDEN, count)
        self._hidden_rows += count

    def add_row(
        self, number: int, cells: Iterable[tuple[int | None, _Cell]], read: Callable[[_Cell], str]
    ) -> None:
        """Add the cells of a row by their columns; one without a column follows the one before it.

        `read` returns the text of a cell.
        """
        row = SheetRow(number, {}, self._hidden_rows)
        column = -1
        for stated, cell in cells:
            column = column + 1 if stated is None else stated
            if column in self._hidden_columns:
                continue
            with self._left_out.contain("cell", f"{self.name}, row {number}"):
                if not (text := read(cell)):
                    continue
                if column in self._columns or len(self._columns) < MOST_COLUMNS:
                    self._columns.add(column)
                    row.cells[column] = f"{row.cells.get(column, '')} {text}".lstrip()
                else:
                    self._left_out.add("cell", TOO_MANY_COLUMNS)
        if row.cells:
            self._rows.setdefault(number, replace(row, cells={})).cells.update(row.cells)

    def write(self, before: Iterable[Block], after: Iterable[Block] = ()) -> Iterator[Block]:
        """Yield the sheet as a section, with other blocks around its rows; none if it is empty."""
        for (number, column), address in sorted(self.links.items()):
            row = self._rows.get(number)
            label = "" if row is None else " ".join(row.cells.get(column, "").split())
            if label and label != address and address.startswith(("http://", "https://")):
                self._links_of_workbook.append((label, address))
        for places in self.merged:
            self._fill_merged(*places)
        anchor = f"sheet={quote(self.name)}"
        below = (*write_sheet(self._close_gaps(), f"{anchor}&", self.header_rows), *after)
        if below:
            yield from (Block(BlockKind.HEADING, self.name, 2, anchor), *before, *below)

    def _fill_merged(self, rows: range, columns: range) -> None:
        """Copy the text of a merged cell to all its rows and columns; a caption, which spans a
        whole row and is not a value of each column, stays in the first cell.
        """
        first = self._rows.get(rows.start)
        text = first.cells.get(columns.start, "") if first is not None else ""
        places = rows if len(rows) < len(self._rows) else self._rows
        for place in places if text else ():
            if place in rows and (row := self._rows.get(place)) is not None:
                is_caption = place == rows.start and len(row.cells) == 1
                own = columns[:1] if is_caption else columns[: MOST_COLUMNS - columns.start]
                shown = [column for column in own if column not in self._hidden_columns]
                row.cells.update(dict.fromkeys(shown, text))
                row.merged.update(shown if len(own) > 1 else ())

    def _close_gaps(self) -> list[SheetRow]:
        """Return the rows without the gaps that hidden columns leave."""
        hidden = sorted(self._hidden_columns)
        return [
            replace(
                row,
                cells={at - bisect_left(hidden, at): text for at, text in row.cells.items()},
                merged={at - bisect_left(hidden, at) for at in row.merged},
            )
            for row in self._rows.values()
        ]


@dataclass(slots=True)
class Workbook:
    """Shows the sheets and the cells of a workbook; counts what is left out.

    `since_1904`: its days are counted from 1904 on. `links` are by label and URL.
    """

    since_1904: bool = False
    left_out: LeftOutCounts = field(default_factory=LeftOutCounts)
    links: list[tuple[str, str]] = field(default_factory=list)

    def open_sheet(self, name: str | None, *, is_hidden: bool) -> Sheet | None:
        """Return a sheet without cells, or None if it is hidden, which is counted."""
        name = " ".join((name or "Sheet").split())
        if is_hidden:
            self.left_out.add("hidden sheet", _HIDDEN, name=name)
            return None
        return Sheet(name, self.left_out, self.links)

    def show(self, runs: Runs, style: CellStyle, note: str = "", *, is_number: bool) -> str:
        """Return the visible text of a cell, with its note in brackets.

        The run of a number is as the file stores it.
        """
        runs = tuple(runs)
        visible = [run for run in runs if not style.hides(run)]
        hidden = "hidden passage" if visible else "value"
        self.left_out.add(hidden, BACKGROUND, len(visible) < len(runs))
        spans = [
            run
            if isinstance(run, Run)
            else Run(
                run if is_number else replace_symbols(run, style.typeface),
                is_struck=style.is_struck,
            )
            for run in visible
        ]
        stated = "".join(span.text for span in spans)
        shown = ""
        if stated.strip():
            if is_number:
                shown = format_number(stated, style.format, since_1904=self.since_1904)
                shown = join_spans([replace(spans[0], text=shown)])
            else:
                shown = format_text(keep_lines(join_spans(spans)), style.format)
            self.left_out.add("value", "hidden by the number format", not shown)
        return f"{shown} [Note: {keep_lines(note)}]".strip() if note else shown

    def write_printed_headers(self, texts: Iterable[str | None]) -> Iterator[Block]:
        """Yield the printed headers and footers of a sheet; those with fields are counted."""
        lines: list[str] = []
        for header in texts:
            for part in _SECTION.split((header or "").replace("&&", _AMPERSAND)):
                text = _APPEARANCE.sub("", part)
                if _FIELD.search(text) is not None:
                    count_field_in_header(_FIELD.sub("", text), self.left_out)
                else:
                    lines.append(" ".join(text.replace(_AMPERSAND, "&").split()))
        return write_page_headers(lines)


def find_address(formula: str | None) -> str:
    """Return the address that a formula for a link states literally, or an empty text."""
    match = _LINK_FORMULA.match(formula or "")
    return "" if match is None else match[1]
