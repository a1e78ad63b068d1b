"""A workbook as its format states it: what of its sheets is visible, and how values are displayed.

The readers of Excel workbooks fill the sheets; hidden content is left out and counted here.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from knowledge.documents.notation import Span, join_spans, keep_lines
from knowledge.documents.office.number_format import format_number, format_text
from knowledge.documents.office.zipped_xml import (
    BACKGROUND,
    count_field_in_header,
    write_page_headers,
)
from knowledge.documents.page import Block, LeftOutCounts
from knowledge.documents.symbols import replace_symbols
from knowledge.documents.tables import (
    MOST_COLUMNS,
    TOO_MANY_COLUMNS,
    SheetRow,
    close_gaps,
    fill_merged,
    write_named_sheet,
)

_HIDDEN = "hidden in the workbook"
NO_RESULT = ("formula", "the file stores no result: save it in Excel")
"""What is counted for a formula without a stored value."""
TRUTHS = {"0": "FALSE", "1": "TRUE"}
# The codes of printed headers (ECMA-376 part 1, 18.3.1.46): sections, appearance and fields.
_SECTION = re.compile(r"&[LCR]")
_APPEARANCE = re.compile(
    r'&(?:"[^"]{0,200}"|K(?:[0-9A-Fa-f]{6}|\d\d[+-]\d{3})|\d{1,3}|[BEIOHSUXY])'
)
_AMPERSAND = "\ue000"
_FIELD = re.compile(r"&[PNDTGFAZ]")
_Cell = TypeVar("_Cell")
CellRange: TypeAlias = tuple[range, range]
"""The 1-based rows and the 0-based columns of a range of cells."""
Runs: TypeAlias = Iterable[Span | str]
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

    @property
    def is_invisible(self) -> bool:
        """Whether text has the colour of the cell."""
        return self.colour is not None and self.colour == self.background


@dataclass(slots=True)
class Sheet:
    """The visible cells of a sheet; readers add its rows, counted from 1, in their order.

    `merged` are the ranges of merged cells, `header_rows` the rows that the file declares to be the
    header of a table.
    """

    name: str
    _left_out: LeftOutCounts
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

    def hide_row(self) -> None:
        """Count the next row as hidden."""
        self._left_out.add("hidden row", _HIDDEN)
        self._hidden_rows += 1

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
                text = read(cell)
                is_room = column in self._columns or len(self._columns) < MOST_COLUMNS
                if text and is_room:
                    self._columns.add(column)
                    row.cells[column] = text
                self._left_out.add("cell", TOO_MANY_COLUMNS, bool(text) and not is_room)
        if row.cells:
            self._rows.setdefault(number, replace(row, cells={})).cells.update(row.cells)

    def find(self, place: CellRange) -> str:
        """Return the text of the first cell of a range; empty if it is not visible."""
        row = self._rows.get(place[0].start)
        return "" if row is None else row.cells.get(place[1].start, "")

    def write(self, before: Iterable[Block], after: Iterable[Block] = ()) -> Iterator[Block]:
        """Yield the sheet as a section, see `write_named_sheet`."""
        for places in self.merged:
            fill_merged(self._rows, *places)
        rows = close_gaps(self._rows.values(), self._hidden_columns)
        return write_named_sheet(self.name, rows, self.header_rows, before, after)


@dataclass(slots=True)
class Workbook:
    """Shows the sheets and the cells of a workbook; counts what is left out.

    `since_1904`: its days are counted from 1904 on.
    """

    since_1904: bool
    left_out: LeftOutCounts = field(default_factory=LeftOutCounts)

    def open_sheet(self, name: str | None, *, is_hidden: bool) -> Sheet | None:
        """Return a sheet without cells, or None if it is hidden, which is counted."""
        name = " ".join((name or "Sheet").split())
        if is_hidden:
            self.left_out.add("hidden sheet", _HIDDEN, name=name)
            return None
        return Sheet(name, self.left_out)

    def show(self, runs: Runs, style: CellStyle, note: str = "", *, is_number: bool) -> str:
        """Return the visible text of a cell, with its note in brackets.

        The run of a number is as the file stores it.
        """
        runs = tuple(runs)
        spans = [
            run
            if isinstance(run, Span)
            else Span(
                run if is_number else replace_symbols(run, style.typeface),
                is_struck=style.is_struck,
            )
            for run in runs
        ]
        stated = "".join(span.text for span in spans)
        shown = ""
        if style.is_invisible and stated.strip() and all(isinstance(run, str) for run in runs):
            self.left_out.add("value", BACKGROUND)
        elif stated.strip():
            if is_number:
                shown = format_number(stated, style.format, since_1904=self.since_1904)
                shown = join_spans([replace(spans[0], text=shown)])
            else:
                shown = format_text(keep_lines(join_spans(spans)), style.format)
            self.left_out.add("value", "hidden by the number format", not shown)
        return f"{shown} [{keep_lines(note)}]".strip() if note else shown

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
