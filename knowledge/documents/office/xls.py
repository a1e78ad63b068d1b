"""Reads workbooks of old Excel versions (.xls) with xlrd; values are written as displayed.

HTML, XML, delimited text and new workbooks under the same extension are read as what they are.
"""

import re
from codecs import BOM_UTF16_LE
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.interchange import delimited
from knowledge.documents.markup import html
from knowledge.documents.notation import Script, Span, join_spans
from knowledge.documents.office import spreadsheet_xml, xlsx
from knowledge.documents.office.number_format import find_format, format_number, format_text
from knowledge.documents.page import Block, BlockKind, LeftOutCounts, Page
from knowledge.documents.tables import MOST_COLUMNS, SheetRow, fill_merged, write_sheet

_HIDDEN = "hidden in the workbook"
_EXPECTED = "an old Excel workbook (.xls)"
# Excel also opens other formats that programs export under this extension.
_ZIP = b"PK\x03\x04"
_HTML = re.compile(
    rb"[\xef\xbb\xbf\s]{0,99}<(?:!doctype html|html|head|meta|table|div)\b", re.IGNORECASE
)
_TEXT, _NUMBER, _DATE, _TRUTH, _ERROR = 1, 2, 3, 4, 5
# The formats of dates and times that depend on the locale; the library writes those of the USA.
_LOCAL = frozenset({14, 22})
_SCRIPTS = {1: Script.RAISED, 2: Script.LOWERED}


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
        book = xlrd.open_workbook(file_contents=data, formatting_info=True, on_demand=True)
        sheets = [book.sheet_by_index(number) for number in range(book.nsheets)]
    except Exception as error:  # the library raises whatever damaged data lead to
        raise WrongFormatError(f"expected {_EXPECTED}, found a damaged or locked one") from error
    blocks: list[Block] = []
    left_out = LeftOutCounts()
    for sheet in sheets:
        name = " ".join(sheet.name.split())
        if sheet.visibility:
            left_out.add("hidden sheet", _HIDDEN, name=name)
            continue
        anchor = f"sheet={quote(name)}"
        below = tuple(write_sheet(_read_rows(book, sheet, left_out), f"{anchor}&"))
        if below:
            blocks += (Block(BlockKind.HEADING, name, 2, anchor), *below)
        left_out.add("hidden row", _HIDDEN, len(_hidden(sheet.rowinfo_map)))
        left_out.add("hidden column", _HIDDEN, len(_hidden(sheet.colinfo_map)))
    return Page(source, "", tuple(blocks), left_out=left_out.list())


def _read_rows(book: Any, sheet: Any, left_out: LeftOutCounts) -> list[SheetRow]:  # as above
    hidden_rows, hidden_columns = _hidden(sheet.rowinfo_map), _hidden(sheet.colinfo_map)
    rows: dict[int, SheetRow] = {}
    hidden = 0
    for at in range(sheet.nrows):
        hidden += at in hidden_rows
        cells = {
            column: text
            for column in range(min(sheet.row_len(at), MOST_COLUMNS))
            if column not in hidden_columns
            and at not in hidden_rows
            and (text := _read_cell(book, sheet, (at, column), left_out))
        }
        if cells:
            rows[at] = SheetRow(at + 1, cells, hidden)
    for first, end, left, right in sheet.merged_cells:
        fill_merged(rows, range(first, end), range(left, right))
    return list(rows.values())


def _read_cell(book: Any, sheet: Any, place: tuple[int, int], left_out: LeftOutCounts) -> str:
    """Return the visible text of a cell with its note."""
    from xlrd import error_text_from_code

    cell, note = sheet.cell(*place), sheet.cell_note_map.get(place)
    style = book.xf_list[cell.xf_index]
    key, known = style.format_key, book.format_map.get(style.format_key)
    code = find_format(key, {}) if known is None or key in _LOCAL else known.format_str
    stated, shown = str(cell.value), ""
    if cell.ctype == _TEXT:
        runs = [(0, style.font_index), *sheet.rich_text_runlist_map.get(place, ())]
        shown = format_text(_join_runs(book, stated, runs), code)
    elif cell.ctype in (_NUMBER, _DATE):
        shown = format_number(repr(float(cell.value)), code, since_1904=book.datemode == 1)
        shown = _join_runs(book, shown, [(0, style.font_index)])
    elif cell.ctype == _TRUTH:
        shown = "TRUE" if cell.value else "FALSE"
    elif cell.ctype == _ERROR:
        shown = error_text_from_code.get(cell.value, "#ERROR!")
    if stated.strip() and not shown:
        left_out.add("value", "its number format hides it")
    return f"{shown} [{' '.join(note.text.split())}]".strip() if note is not None else shown


def _join_runs(book: Any, text: str, runs: Sequence[tuple[int, int]]) -> str:
    """Return text on one line; `runs` are the places from which on it has the font of a number."""
    spans: list[Span] = []
    encoded = text.encode("utf-16-le", "surrogatepass")
    ends = [start for start, _ in runs[1:]]
    for (start, number), end in zip(runs, [*ends, len(encoded)], strict=True):
        part = encoded[2 * start : 2 * end].decode("utf-16-le", "replace")
        font = book.font_list[number] if number < len(book.font_list) else None
        is_struck = font is not None and bool(font.struck_out)
        # The script of a whole cell is only its size.
        script = _SCRIPTS.get(font.escapement, Script.LINE) if font and ends else Script.LINE
        spans.append(Span(part, script, is_struck))
    return " ".join(join_spans(spans).split())


def _hidden(places: dict[int, Any]) -> frozenset[int]:  # as above
    return frozenset(at for at, place in places.items() if place.hidden)
