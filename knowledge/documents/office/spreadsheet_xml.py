"""Reads workbooks in XML of Excel 2002 and 2003, which programs export with the extension .xls."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from xml.etree.ElementTree import Element

from knowledge.documents.notation import Script
from knowledge.documents.office.number_format import find_format
from knowledge.documents.office.workbook import (
    NO_RESULT,
    TRUTHS,
    CellRange,
    CellStyle,
    Run,
    Runs,
    Workbook,
    find_address,
)
from knowledge.documents.office.zipped_xml import (
    find_child,
    find_children,
    parse_without_namespaces,
    to_number,
)
from knowledge.documents.page import Block, Page
from knowledge.documents.tables import CONDITIONAL, MOST_COLUMNS

START = re.compile(rb"[\xef\xbb\xbf\s]{0,99}<\?xml[^\x00]{0,2000}<(?:ss:)?Workbook\b")
"""The beginning of such a workbook."""
_EXPECTED = "an Excel workbook in XML"
_NAMED_FORMATS = {
    "Fixed": "0.00",
    "Standard": "#,##0.00",
    "Percent": "0.00%",
    "Scientific": "0.00E+00",
    "Short Date": "yyyy-mm-dd",
    "General Date": "yyyy-mm-dd hh:mm",
    "Short Time": "hh:mm",
    "Long Time": "hh:mm:ss",
}
"""Formats that depend on the locale of Excel; dates are written as in the other workbooks."""
_DEEPEST = 20
_DEEPEST_STYLE = 10
_NUMBERS = frozenset({"Number", "DateTime"})
_HEADERS = frozenset({"Header", "Footer"})
_SCRIPTS = {"Sup": Script.RAISED, "Sub": Script.LOWERED}


class _WorkbookReader:
    """Reads the sheets of a document, with its styles by id."""

    def __init__(self, root: Element) -> None:
        self.workbook = Workbook(next(root.iter("Date1904"), None) is not None)
        self._styles = {style.get("ID"): style for style in root.iter("Style")}

    def read(self, declared: Element) -> Iterator[Block]:
        """Yield the blocks of a sheet; rows and cells without an index follow each other."""
        is_hidden = find_child(declared, "WorksheetOptions", "Visible") is not None
        sheet = self.workbook.open_sheet(declared.get("Name"), is_hidden=is_hidden)
        if sheet is None:
            return
        has_conditions = declared.find("ConditionalFormatting") is not None
        self.workbook.left_out.add(*CONDITIONAL, has_conditions)
        read = partial(self._read_cell, has_conditions=has_conditions)
        table = declared.find("Table")
        sheet.hide_columns(at - 1 for at, column in _place(table, "Column") if _is_hidden(column))
        for number, row in _place(table, "Row"):
            if _is_hidden(row):
                sheet.hide_rows()
            else:
                cells = [(at - 1, cell) for at, cell in _place(row, "Cell")]
                sheet.add_row(number, cells, read)
                for at, cell in cells:
                    address = cell.get("HRef") or find_address(cell.get("Formula"))
                    sheet.links[number, at] = address
                sheet.merged += _list_merged(row, number)
        headers = (part.get("Data") for part in declared.iter() if part.tag in _HEADERS)
        yield from sheet.write(self.workbook.write_printed_headers(headers))

    def _read_cell(self, cell: Element, *, has_conditions: bool) -> str:
        """Return the visible text of a cell with its note."""
        data, note = cell.find("Data"), find_child(cell, "Comment", "Data")
        style_id = cell.get("StyleID") or "Default"
        kind = "" if data is None else data.get("Type", "")
        named = self._find(style_id, "NumberFormat", "Format") or ""
        code = _NAMED_FORMATS.get(named, "" if named.startswith("General") else named)
        code = code or (find_format(14, {}) if kind == "DateTime" else "")
        is_struck = self._find(style_id, "Font", "StrikeThrough") == "1"
        has_fill = self._find(style_id, "Interior", "Pattern") == "Solid"
        fill = self._find(style_id, "Interior", "Color") if has_fill else "#FFFFFF"
        colour = self._find(style_id, "Font", "Color")
        typeface = self._find(style_id, "Font", "FontName") or ""
        style = CellStyle(code, is_struck, colour, None if has_conditions else fill, typeface)
        runs: Runs = ()
        if data is None:
            self.workbook.left_out.add(*NO_RESULT, cell.get("Formula") is not None)
        elif len(data):
            runs = _list_runs(data, Run("", is_struck=is_struck, colour=colour))
        else:
            stated = data.text or ""
            runs = (TRUTHS.get(stated, stated) if kind == "Boolean" else stated,)
        added = "" if note is None else "".join(note.itertext())
        return self.workbook.show(runs, style, added, is_number=kind in _NUMBERS)

    def _find(self, style_id: str | None, part: str, attribute: str) -> str | None:
        """Return the attribute of a part of a style, or of the style from which it inherits."""
        for _ in range(_DEEPEST_STYLE):
            style = self._styles.get(style_id)
            element = find_child(style, part)
            value = None if element is None else element.get(attribute)
            if value is not None or style is None:
                return value
            style_id = style.get("Parent")
        return None


def read(data: bytes, source: str) -> Page:
    """Return the page; its visible sheets are sections."""
    root = parse_without_namespaces(data, _EXPECTED)
    reader = _WorkbookReader(root)
    blocks = tuple(block for sheet in root.findall("Worksheet") for block in reader.read(sheet))
    workbook = reader.workbook
    return Page(source, "", blocks, links=tuple(workbook.links), left_out=workbook.left_out.list())


def _list_runs(element: Element, run: Run, depth: int = 0) -> Iterator[Run]:
    """Yield the text of an element; the elements in it state a typeface as in HTML."""
    name = element.tag
    script, colour = _SCRIPTS.get(name, run.script), element.get("Color", run.colour)
    own = Run(element.text or "", script, run.is_struck or name == "S", colour=colour)
    yield own
    for child in element if depth < _DEEPEST else ():
        yield from _list_runs(child, own, depth + 1)
        yield replace(own, text=child.tail or "")


def _list_merged(row: Element, number: int) -> Iterator[CellRange]:
    """Yield the ranges of the merged cells in a row."""
    for column, cell in _place(row, "Cell"):
        down, across = (to_number(cell.get(name)) for name in ("MergeDown", "MergeAcross"))
        if down or across:
            yield range(number, number + down + 1), range(column - 1, column + across)


def _place(parent: Element | None, name: str) -> Iterator[tuple[int, Element]]:
    """Yield the elements of a name at their 1-based places; one may span several places."""
    at = 0
    for element in find_children(parent, name):
        at = to_number(element.get("Index"), at + 1)
        span = to_number(element.get("Span"))
        yield from ((place, element) for place in range(at, at + min(span, MOST_COLUMNS) + 1))
        at += span + (to_number(element.get("MergeAcross")) if name == "Cell" else 0)


def _is_hidden(element: Element) -> bool:
    return element.get("Hidden") == "1"
