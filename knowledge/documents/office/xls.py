"""Reads workbooks of old Excel versions (.xls) with xlrd; values are written as displayed.

HTML, XML, delimited text and new workbooks under the same extension are read as what they are.
"""

import re
from codecs import BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from functools import partial
from io import BytesIO
from itertools import groupby
from operator import itemgetter
from typing import Any

import olefile

from knowledge.documents.errors import SkippedError, WrongFormatError
from knowledge.documents.interchange import delimited
from knowledge.documents.markup import html
from knowledge.documents.notation import Script
from knowledge.documents.office import spreadsheet_xml, xlsx
from knowledge.documents.office.number_format import find_format
from knowledge.documents.office.workbook import TRUTHS, CellStyle, Run, Runs, Workbook
from knowledge.documents.office.xls_records import SheetParts, mend_records, read_parts
from knowledge.documents.office.zipped_xml import LOCKED
from knowledge.documents.page import Block, BlockKind, Page

_DAMAGED = (
    "expected an old Excel workbook (.xls), found a damaged one: if Excel or LibreOffice opens it, "
    "save it there as .xlsx"
)
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
_BIFF8 = 80
_OLD_PARTS = (
    "workbook of Excel 95 or before",
    "only its cells are read, without objects, charts and printed headers: save it as .xlsx",
)
_WHITE_TEXT = (
    "white text in a box",
    "it is shown, because colours of boxes in .xls are not read: it may be hidden in the workbook",
)
_SCRIPTS = {1: Script.RAISED, 2: Script.LOWERED}


class _WorkbookReader:
    """Reads the sheets of a workbook of the library, whose objects have no types."""

    def __init__(self, book: Any) -> None:
        self.workbook = Workbook(book.datemode == 1)
        self._book = book

    def read(self, declared: Any, parts: SheetParts) -> Iterator[Block]:
        """Yield the blocks of a sheet, unless it is hidden."""
        sheet = self.workbook.open_sheet(declared.name, is_hidden=bool(declared.visibility))
        if sheet is None:
            return
        hidden_rows, hidden_columns = (
            {at for at, place in places.items() if place.hidden and not place.outline_level}
            for places in (declared.rowinfo_map, declared.colinfo_map)
        )
        sheet.hide_columns(hidden_columns)
        notes = declared.cell_note_map
        read = partial(self._read_cell, declared, parts)
        places = set(notes).union(
            (row, column)
            for row in range(declared.nrows)
            for column, kind in enumerate(declared.row_types(row))
            if kind not in _EMPTY
        )
        rows = {row: list(group) for row, group in groupby(sorted(places), key=itemgetter(0))}
        for at in sorted(hidden_rows.union(rows)):
            if at in hidden_rows:
                sheet.hide_rows()
            else:
                sheet.add_row(at + 1, ((place[1], place) for place in rows[at]), read)
        sheet.merged = [
            (range(first + 1, end + 1), range(left, right))
            for first, end, left, right in declared.merged_cells
        ]
        for link in declared.hyperlink_list:
            sheet.links[link.frowx + 1, link.fcolx] = str(link.url_or_path or "")
        self.workbook.left_out.take(parts.left_out.list())
        headers = self.workbook.write_printed_headers(parts.headers)
        boxes = [self._read_runs(box.text, [(0, 0), *box.runs]) for box in parts.boxes]
        white = [run for runs in boxes for run in runs if run.colour == _WHITE and run.text.strip()]
        self.workbook.left_out.add(*_WHITE_TEXT, len(white))
        texts = [self.workbook.show(runs, CellStyle(), is_number=False) for runs in boxes]
        yield from sheet.write(headers, (Block(BlockKind.TEXT, text) for text in texts if text))

    def _read_cell(self, sheet: Any, parts: SheetParts, place: tuple[int, int]) -> str:
        """Return the visible text of a cell with its note."""
        from xlrd import error_text_from_code

        note = sheet.cell_note_map.get(place)
        if place[0] >= sheet.nrows or place[1] >= sheet.ncols:
            return self.workbook.show((), CellStyle(), note.text, is_number=False)
        cell = sheet.cell(*place)
        style, font = self._read_style(cell.xf_index, parts)
        runs: Runs = (str(cell.value),)
        fonts = sheet.rich_text_runlist_map.get(place)
        if cell.ctype == _TEXT and fonts:
            runs = self._read_runs(cell.value, [(0, font), *fonts])
        elif cell.ctype == _TRUTH:
            runs = (TRUTHS["1" if cell.value else "0"],)
        elif cell.ctype == _ERROR:
            runs = (error_text_from_code.get(cell.value, "#ERROR!"),)
        is_number = cell.ctype in (_NUMBER, _DATE)
        return self.workbook.show(
            runs, style, "" if note is None else note.text, is_number=is_number
        )

    def _read_style(self, number: int, parts: SheetParts) -> tuple[CellStyle, int]:
        """Return a style, and the number of its font."""
        style = self._book.xf_list[number]
        key, known = style.format_key, self._book.format_map.get(style.format_key)
        code = find_format(key, {}) if known is None or key in _LOCAL else known.format_str or ""
        font, fill = self._find_font(style.font_index), style.background
        colours = self._book.colour_map
        colour = None if font is None else colours.get(font.colour_index)
        backgrounds = {0: _WHITE, 1: colours.get(fill.pattern_colour_index)}
        background = None if parts.may_have_backgrounds else backgrounds.get(fill.fill_pattern)
        is_struck = font is not None and bool(font.struck_out)
        typeface = "" if font is None else str(font.name)
        return CellStyle(code, is_struck, colour, background, typeface), style.font_index

    def _find_font(self, number: int) -> Any:
        return self._book.font_list[number] if number < len(self._book.font_list) else None

    def _read_runs(self, text: str, fonts: Sequence[tuple[int, int]]) -> tuple[Run, ...]:
        """Return the parts of a text; `fonts` are the places from which on it has the font of a
        number.
        """
        encoded = text.encode("utf-16-le", "surrogatepass")
        ends = [start for start, _ in fonts[1:]]
        runs: list[Run] = []
        for (start, number), end in zip(fonts, [*ends, len(encoded)], strict=True):
            part = encoded[2 * start : 2 * end].decode("utf-16-le", "replace")
            font = self._find_font(number)
            colour = None if font is None else self._book.colour_map.get(font.colour_index)
            # The script of a whole cell is only its size.
            script = _SCRIPTS.get(font.escapement, Script.LINE) if font and ends else Script.LINE
            is_struck = font is not None and bool(font.struck_out)
            runs.append(Run(part, script, is_struck, colour=colour))
        return tuple(runs)


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
        raise WrongFormatError(_DAMAGED) from error
    reader = _WorkbookReader(book)
    left_out = reader.workbook.left_out
    is_old = book.biff_version < _BIFF8
    left_out.add(*_OLD_PARTS, is_old)
    parts = [] if is_old else read_parts(stream, left_out)
    parts += (SheetParts() for _ in sheets[len(parts) :])
    blocks = tuple(
        block for each in zip(sheets, parts, strict=False) for block in reader.read(*each)
    )
    links = tuple(reader.workbook.links)
    return Page(source, "", blocks, links=links, left_out=left_out.list())


def _find_stream(data: bytes) -> bytes:
    """Return the stream of the workbook; the library does not find it in every file."""
    # The library takes short data for the name of a file.
    if not olefile.isOleFile(BytesIO(data)):
        return data
    with olefile.OleFileIO(BytesIO(data)) as file:
        name = next((name for name in _STREAMS if file.exists(name)), None)
        return data if name is None else file.openstream(name).read()
