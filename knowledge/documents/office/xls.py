"""Reads workbooks of old Excel versions (.xls) with xlrd; values are written as displayed."""

from typing import Any
from urllib.parse import quote

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.notation import Span, join_spans
from knowledge.documents.office.number_format import format_number, format_text
from knowledge.documents.page import Block, BlockKind, LeftOutCounts, Page
from knowledge.documents.tables import MOST_COLUMNS, SheetRow, fill_merged, write_sheet

_HIDDEN = "hidden in the workbook"
_EXPECTED = "an old Excel workbook (.xls)"
_ZIP = b"PK"
_TEXT, _NUMBER, _DATE, _TRUTH = 1, 2, 3, 4


def read(data: bytes, source: str) -> Page:
    """Return the page; its visible sheets are sections."""
    import xlrd

    if data.startswith(_ZIP):
        raise WrongFormatError(f"expected {_EXPECTED}, found a new one: rename it to .xlsx")
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
        below = tuple(write_sheet(_read_rows(book, sheet), f"{anchor}&"))
        if below:
            blocks += (Block(BlockKind.HEADING, name, 2, anchor), *below)
        left_out.add("hidden row", _HIDDEN, len(_hidden(sheet.rowinfo_map)))
        left_out.add("hidden column", _HIDDEN, len(_hidden(sheet.colinfo_map)))
    return Page(source, "", tuple(blocks), left_out=left_out.list())


def _read_rows(book: Any, sheet: Any) -> list[SheetRow]:  # the library has no types
    hidden_rows, hidden_columns = _hidden(sheet.rowinfo_map), _hidden(sheet.colinfo_map)
    rows: dict[int, SheetRow] = {}
    for at in range(sheet.nrows):
        cells = {
            column: text
            for column, cell in enumerate(sheet.row(at)[:MOST_COLUMNS])
            if column not in hidden_columns
            and (text := _with_note(sheet, at, column, _write(book, cell)))
        }
        if cells and at not in hidden_rows:
            rows[at] = SheetRow(at + 1, cells)
    for first, end, left, right in sheet.merged_cells:
        fill_merged(rows, range(first, end), range(left, right))
    return list(rows.values())


def _with_note(sheet: Any, row: int, column: int, text: str) -> str:  # as above
    note = sheet.cell_note_map.get((row, column))
    return f"{text} [{' '.join(note.text.split())}]".strip() if note is not None else text


def _write(book: Any, cell: Any) -> str:  # as above
    written = _read_value(book, cell)
    style = book.xf_list[cell.xf_index]
    font = book.font_list[style.font_index] if style.font_index < len(book.font_list) else None
    is_struck = font is not None and bool(font.struck_out)
    return join_spans([Span(written, is_struck=is_struck)])


def _read_value(book: Any, cell: Any) -> str:  # as above
    style = book.format_map.get(book.xf_list[cell.xf_index].format_key)
    code = style.format_str if style is not None else ""
    if cell.ctype == _TEXT:
        return format_text(" ".join(str(cell.value).split()), code)
    if cell.ctype == _TRUTH:
        return "TRUE" if cell.value else "FALSE"
    if cell.ctype not in (_NUMBER, _DATE):
        return ""
    return format_number(repr(float(cell.value)), code, since_1904=book.datemode == 1)


def _hidden(places: dict[int, Any]) -> frozenset[int]:  # as above
    return frozenset(at for at, place in places.items() if place.hidden)
