"""Reads workbooks of old Excel versions (.xls) with xlrd; values are written as displayed.

HTML, XML, delimited text and new workbooks under the same extension are read as what they are.
"""

import re
from codecs import BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

import olefile

from knowledge.documents.errors import SkippedError, WrongFormatError
from knowledge.documents.interchange import delimited
from knowledge.documents.markup import html
from knowledge.documents.notation import Script, Span, join_spans
from knowledge.documents.office import spreadsheet_xml, xlsx
from knowledge.documents.office.number_format import find_format, format_number, format_text
from knowledge.documents.office.xls_records import SheetParts, mend_records, read_parts
from knowledge.documents.office.xlsx import write_printed_headers
from knowledge.documents.office.zipped_xml import BACKGROUND, LOCKED
from knowledge.documents.page import Block, BlockKind, LeftOutCounts, Page
from knowledge.documents.tables import (
    MOST_COLUMNS,
    SheetRow,
    close_gaps,
    fill_merged,
    write_named_sheet,
)

_HIDDEN = "hidden in the workbook"
_EXPECTED = "an old Excel workbook (.xls)"
# Excel also opens other formats that programs export under this extension.
_ZIP = b"PK\x03\x04"
_HTML = re.compile(
    rb"[\xef\xbb\xbf\s]{0,99}<(?:!doctype html|html|head|meta|table|div)\b", re.IGNORECASE
)
_EMPTY = (0, 6)
_TEXT, _NUMBER, _DATE, _TRUTH, _ERROR = 1, 2, 3, 4, 5
# The formats of dates and times that depend on the locale; the library writes those of the USA.
_LOCAL = frozenset({14, 22})
_ENCRYPTED = "Workbook is encrypted"
"""What the library raises."""
_STREAMS = ("Workbook", "Book")
_WHITE = (255, 255, 255)
_SCRIPTS = {1: Script.RAISED, 2: Script.LOWERED}


class _WorkbookReader:
    """Reads the sheets of a workbook of the library, whose objects have no types."""

    def __init__(self, book: Any) -> None:
        self.left_out = LeftOutCounts()
        self._book = book
        self._may_have_backgrounds = False

    def read(self, sheet: Any, parts: SheetParts) -> Iterator[Block]:
        """Yield the blocks of a sheet, unless it is hidden."""
        name = " ".join(sheet.name.split())
        if sheet.visibility:
            self.left_out.add("hidden sheet", _HIDDEN, name=name)
            return
        self._may_have_backgrounds = parts.may_have_backgrounds
        self.left_out.take(parts.left_out.list())
        headers = write_printed_headers(parts.headers, self.left_out)
        texts = (self._join_runs(box.text, [(0, 0), *box.runs]) for box in parts.boxes)
        boxes = (Block(BlockKind.TEXT, text) for text in texts if text)
        yield from write_named_sheet(name, self._rows(sheet), (), headers, boxes)

    def _rows(self, sheet: Any) -> list[SheetRow]:
        hidden_rows, hidden_columns = (
            {at for at, place in places.items() if place.hidden}
            for places in (sheet.rowinfo_map, sheet.colinfo_map)
        )
        self.left_out.add("hidden row", _HIDDEN, len(hidden_rows))
        self.left_out.add("hidden column", _HIDDEN, len(hidden_columns))
        rows: dict[int, SheetRow] = {}
        hidden = 0
        for at in range(sheet.nrows):
            if at in hidden_rows:
                hidden += 1
                continue
            cells: dict[int, str] = {}
            for column, kind in enumerate(sheet.row_types(at)[:MOST_COLUMNS]):
                is_filled = kind not in _EMPTY or (at, column) in sheet.cell_note_map
                if is_filled and column not in hidden_columns:
                    with self.left_out.contain("cell", f"{sheet.name}, row {at + 1}"):
                        cells[column] = self._cell(sheet, (at, column))
            cells = {column: text for column, text in cells.items() if text}
            if cells:
                rows[at] = SheetRow(at + 1, cells, hidden)
        for first, end, left, right in sheet.merged_cells:
            fill_merged(rows, range(first, end), range(left, right))
        return close_gaps(rows.values(), hidden_columns)

    def _cell(self, sheet: Any, place: tuple[int, int]) -> str:
        """Return the visible text of a cell with its note."""
        from xlrd import error_text_from_code

        cell, note = sheet.cell(*place), sheet.cell_note_map.get(place)
        style = self._book.xf_list[cell.xf_index]
        key, known = style.format_key, self._book.format_map.get(style.format_key)
        code = find_format(key, {}) if known is None or key in _LOCAL else known.format_str or ""
        stated, shown = str(cell.value), ""
        runs = [(0, style.font_index)]
        if cell.ctype == _TEXT:
            runs += sheet.rich_text_runlist_map.get(place, ())
            shown = format_text(self._join_runs(stated, runs), code)
        elif cell.ctype in (_NUMBER, _DATE):
            is_1904 = self._book.datemode == 1
            shown = format_number(repr(float(cell.value)), code, since_1904=is_1904)
            shown = self._join_runs(shown, runs)
        elif cell.ctype == _TRUTH:
            shown = "TRUE" if cell.value else "FALSE"
        elif cell.ctype == _ERROR:
            shown = error_text_from_code.get(cell.value, "#ERROR!")
        if stated.strip() and not shown:
            self.left_out.add("value", "hidden by the number format")
        elif shown and len(runs) == 1 and self._is_invisible(style):
            self.left_out.add("value", BACKGROUND)
            shown = ""
        return f"{shown} [{' '.join(note.text.split())}]".strip() if note is not None else shown

    def _is_invisible(self, style: Any) -> bool:
        """Return whether the values of cells in a style have the colour of the cells."""
        font, fill = self._find_font(style.font_index), style.background
        colour = None if font is None else self._book.colour_map.get(font.colour_index)
        backgrounds = {0: _WHITE, 1: self._book.colour_map.get(fill.pattern_colour_index)}
        background = backgrounds.get(fill.fill_pattern)
        return colour is not None and colour == background and not self._may_have_backgrounds

    def _find_font(self, number: int) -> Any:
        return self._book.font_list[number] if number < len(self._book.font_list) else None

    def _join_runs(self, text: str, runs: Sequence[tuple[int, int]]) -> str:
        """Return text on one line; `runs` are the places from which on it has the font of a
        number.
        """
        spans: list[Span] = []
        encoded = text.encode("utf-16-le", "surrogatepass")
        ends = [start for start, _ in runs[1:]]
        for (start, number), end in zip(runs, [*ends, len(encoded)], strict=True):
            part = encoded[2 * start : 2 * end].decode("utf-16-le", "replace")
            font = self._find_font(number)
            # The script of a whole cell is only its size.
            script = _SCRIPTS.get(font.escapement, Script.LINE) if font and ends else Script.LINE
            spans.append(Span(part, script, font is not None and bool(font.struck_out)))
        return " ".join(join_spans(spans).split())


def read(data: bytes, source: str) -> Page:
    """Return the page; its visible sheets are sections."""
    if data.startswith(_ZIP):
        return xlsx.read(data, source)
    if spreadsheet_xml.START.match(data) is not None:
        return spreadsheet_xml.read(data, source)
    if _HTML.match(data) is not None:
        return html.read(data, source)
    line = data[:4096].partition(b"\n")[0]
    if data.startswith(BOM_UTF16_LE) or (b"\t" in line and b"\x00" not in line):
        return delimited.read(data, source)
    return _read_workbook(data, source)


def _read_workbook(data: bytes, source: str) -> Page:
    import xlrd

    try:
        stream = mend_records(_find_stream(data))
        book = xlrd.open_workbook(file_contents=stream, formatting_info=True, on_demand=True)
        sheets = [book.sheet_by_index(number) for number in range(book.nsheets)]
    except Exception as error:  # the library raises whatever damaged data lead to
        if str(error) == _ENCRYPTED:
            raise SkippedError(LOCKED) from error
        raise WrongFormatError(f"expected {_EXPECTED}, found a damaged one") from error
    reader = _WorkbookReader(book)
    parts = read_parts(stream, book, reader.left_out)
    parts += (SheetParts() for _ in sheets[len(parts) :])
    blocks = tuple(
        block for each in zip(sheets, parts, strict=False) for block in reader.read(*each)
    )
    return Page(source, "", blocks, left_out=reader.left_out.list())


def _find_stream(data: bytes) -> bytes:
    """Return the stream of the workbook; the library does not find it in every file."""
    # The library takes short data for the name of a file.
    if not olefile.isOleFile(BytesIO(data)):
        return data
    with olefile.OleFileIO(BytesIO(data)) as file:
        name = next((name for name in _STREAMS if file.exists(name)), None)
        return data if name is None else file.openstream(name).read()
