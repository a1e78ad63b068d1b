"""Reads workbooks in XML of Excel 2002 and 2003, which programs export with the extension .xls."""

import re
from collections.abc import Collection, Iterator, Mapping
from xml.etree.ElementTree import Element

from knowledge.documents.notation import Script, Span, join_spans
from knowledge.documents.office.number_format import find_format, format_number, format_text
from knowledge.documents.office.xlsx import read_day, write_printed_headers
from knowledge.documents.office.zipped_xml import (
    BACKGROUND,
    find_child,
    find_children,
    parse_without_namespaces,
    to_number,
)
from knowledge.documents.page import Block, LeftOutCounts, Page
from knowledge.documents.tables import (
    MOST_COLUMNS,
    TOO_MANY_COLUMNS,
    SheetRow,
    close_gaps,
    fill_merged,
    write_named_sheet,
)

START = re.compile(rb"[\xef\xbb\xbf\s]{0,99}<\?xml[^\x00]{0,2000}<(?:ss:)?Workbook\b")
"""The beginning of such a workbook."""
_EXPECTED = "an Excel workbook in XML"
_HIDDEN = "hidden in the workbook"
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
_HEADERS = frozenset({"Header", "Footer"})
_SCRIPTS = {"Sup": Script.RAISED, "Sub": Script.LOWERED}


class _SheetReader:
    """Reads the rows of a sheet, with the styles of the workbook by id."""

    def __init__(
        self,
        styles: Mapping[str | None, Element],
        left_out: LeftOutCounts,
        sheet: Element,
        *,
        since_1904: bool,
    ) -> None:
        self._styles = styles
        self._left_out = left_out
        self._sheet = sheet
        self._since_1904 = since_1904

    def read(self) -> list[SheetRow]:
        """Return the visible rows; rows and cells without an index follow each other."""
        table = self._sheet.find("Table")
        hidden_columns = {at for at, column in _place(table, "Column") if _is_hidden(column)}
        self._left_out.add("hidden column", _HIDDEN, len(hidden_columns))
        rows: dict[int, SheetRow] = {}
        merged: list[tuple[range, range]] = []
        hidden = 0
        for number, row in _place(table, "Row"):
            if _is_hidden(row):
                self._left_out.add("hidden row", _HIDDEN)
                hidden += 1
                continue
            cells = dict(self._read_row(row, hidden_columns))
            spans = list(_list_merged(row, number))
            merged += spans
            if cells or spans:
                rows[number] = SheetRow(number, cells, hidden)
        for places in merged:
            fill_merged(rows, *places)
        return close_gaps(rows.values(), {column - 1 for column in hidden_columns})

    def _read_row(self, row: Element, hidden: Collection[int]) -> Iterator[tuple[int, str]]:
        """Yield the 0-based column and the text of each visible cell that is not empty."""
        for column, cell in _place(row, "Cell"):
            if column > MOST_COLUMNS:
                self._left_out.add("cell", TOO_MANY_COLUMNS)
            elif column not in hidden and (text := self._read_cell(cell)):
                yield column - 1, text

    def _read_cell(self, cell: Element) -> str:
        """Return the visible text of a cell with its note."""
        data, note = cell.find("Data"), find_child(cell, "Comment", "Data")
        style = self._styles.get(cell.get("StyleID") or "Default")
        if data is None and cell.get("Formula"):
            self._left_out.add("formula", "the file stores no result: save it in Excel")
        shown = "" if data is None else self._write(data, style)
        added = "" if note is None else " ".join("".join(note.itertext()).split())
        return f"{shown} [{added}]".strip() if added else shown

    def _write(self, data: Element, style: Element | None) -> str:
        kind, stated = data.get("Type"), "".join(data.itertext())
        is_struck = self._find(style, "Font", "StrikeThrough") == "1"
        named = self._find(style, "NumberFormat", "Format") or ""
        code = _NAMED_FORMATS.get(named, "" if named.startswith("General") else named)
        if kind in ("Number", "DateTime"):
            if kind == "DateTime":
                code = code or find_format(14, {})
                stated = read_day(stated, self._since_1904)
            shown = format_number(stated, code, since_1904=self._since_1904)
            shown = join_spans([Span(shown, is_struck=is_struck)])
        elif kind == "Boolean":
            shown = "TRUE" if stated == "1" else "FALSE"
        else:
            spans = join_spans(_list_spans(data, Span("", is_struck=is_struck)))
            shown = format_text(" ".join(spans.split()), code)
        if stated.strip() and not shown.strip():
            self._left_out.add("value", "hidden by the number format")
        elif shown and not len(data) and self._is_invisible(style):
            self._left_out.add("value", BACKGROUND)
            return ""
        return shown

    def _is_invisible(self, style: Element | None) -> bool:
        """Return whether values have the colour of their cells, and no condition changes it."""
        has_fill = self._find(style, "Interior", "Pattern") == "Solid"
        fill = self._find(style, "Interior", "Color") if has_fill else "#FFFFFF"
        is_invisible = fill is not None and fill == self._find(style, "Font", "Color")
        return is_invisible and self._sheet.find("ConditionalFormatting") is None

    def _find(self, style: Element | None, *names: str) -> str | None:
        """Return the attribute of a part of a style, or of the style from which it inherits."""
        part, attribute = names
        for _ in range(10):
            element = find_child(style, part)
            value = None if element is None else element.get(attribute)
            if value is not None or style is None:
                return value
            style = self._styles.get(style.get("Parent"))
        return None


def read(data: bytes, source: str) -> Page:
    """Return the page; its visible sheets are sections."""
    root = parse_without_namespaces(data, _EXPECTED)
    styles = {style.get("ID"): style for style in root.iter("Style")}
    since_1904 = next(root.iter("Date1904"), None) is not None
    left_out = LeftOutCounts()
    blocks: list[Block] = []
    for sheet in root.findall("Worksheet"):
        name = " ".join((sheet.get("Name") or "Sheet").split())
        if find_child(sheet, "WorksheetOptions", "Visible") is not None:
            left_out.add("hidden sheet", _HIDDEN, name=name)
            continue
        reader = _SheetReader(styles, left_out, sheet, since_1904=since_1904)
        headers = [part.get("Data", "") for part in sheet.iter() if part.tag in _HEADERS]
        printed = write_printed_headers(headers, left_out)
        blocks += write_named_sheet(name, reader.read(), before=printed)
    return Page(source, "", tuple(blocks), left_out=left_out.list())


def _list_spans(element: Element, span: Span, depth: int = 0) -> Iterator[Span]:
    """Yield the text of an element; the elements in it state a typeface as in HTML."""
    name = element.tag
    is_struck = span.is_struck or name == "S"
    own = Span(element.text or "", _SCRIPTS.get(name, span.script), is_struck)
    yield own
    for child in element if depth < _DEEPEST else ():
        yield from _list_spans(child, own, depth + 1)
        yield Span(child.tail or "", own.script, is_struck)


def _list_merged(row: Element, number: int) -> Iterator[tuple[range, range]]:
    """Yield the 1-based rows and 0-based columns of each merged cell of a row."""
    for column, cell in _place(row, "Cell"):
        down, across = (_count(cell, name) for name in ("MergeDown", "MergeAcross"))
        if down or across:
            yield range(number, number + down + 1), range(column - 1, column + across)


def _place(parent: Element | None, name: str) -> Iterator[tuple[int, Element]]:
    """Yield the elements of a name at their 1-based places; one may span several places."""
    at = 0
    for element in find_children(parent, name):
        at = to_number(element.get("Index"), at + 1)
        span = _count(element, "Span")
        yield from ((place, element) for place in range(at, at + min(span, MOST_COLUMNS) + 1))
        at += span + (_count(element, "MergeAcross") if name == "Cell" else 0)


def _count(element: Element, name: str) -> int:
    return to_number(element.get(name))


def _is_hidden(element: Element) -> bool:
    return element.get("Hidden") == "1"
