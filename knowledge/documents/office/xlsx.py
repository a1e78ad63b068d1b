"""Reads Excel workbooks: each visible sheet is a section, its rows stand below their header.

Values are those that the workbook last computed, written as the sheet shows them. Hidden sheets,
rows and columns are left out with a note.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.office.zipped_xml import (
    ZippedXml,
    find_all,
    find_child,
    find_children,
    get_attribute,
    local_name,
    read_properties,
)
from knowledge.documents.page import Block, BlockKind, Page
from knowledge.documents.tables import MOST_COLUMNS, SheetRow, write_sheet

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


_EXPECTED = "an Excel workbook"
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})\Z")
_TRUE = frozenset({"1", "true"})


def read(data: bytes, source: str) -> Page:
    """Return the page; its sheets are sections, even when there is only one."""
    archive = ZippedXml(data, _EXPECTED)
    main = archive.find_related("", "officeDocument") or "xl/workbook.xml"
    workbook = archive.parse(main)
    if local_name(workbook.tag) != "workbook":
        raise WrongFormatError(f"expected {_EXPECTED}, found another kind of office file")
    values = _Values(archive, main, workbook)
    relations = archive.relationships(main)
    blocks: list[Block] = []
    warnings: list[str] = []
    for sheet in find_children(find_child(workbook, "sheets"), "sheet"):
        name = " ".join((sheet.get("name") or "Sheet").split())
        relation = relations.get(get_attribute(sheet, "id") or "")
        if relation is None or relation.kind != "worksheet":
            continue
        if sheet.get("state", "visible") != "visible":
            warnings.append(f"the hidden sheet {name!r} was left out")
            continue
        anchor = f"sheet={quote(name)}"
        rows = _read_sheet(archive.parse(relation.target), values)
        below = tuple(write_sheet(rows.rows, f"{anchor}&"))
        if rows.hidden:
            warnings.append(f"{rows.hidden} hidden rows or columns of {name!r} were left out")
        if below:
            blocks += (Block(BlockKind.HEADING, name, 2, anchor), *below)
    stated = read_properties(archive)
    return Page(
        source,
        stated.title,
        tuple(blocks),
        description=stated.description,
        keywords=stated.keywords,
        warnings=tuple(warnings),
    )


@dataclass(slots=True)
class _Sheet:
    """The rows of a sheet that are seen, and how many rows and columns are hidden."""

    rows: list[SheetRow] = field(default_factory=list)
    hidden: int = 0


class _Values:
    """What cells refer to: shared texts and formats."""

    def __init__(self, archive: ZippedXml, main: str, workbook: "Element") -> None:
        shared = archive.find_related(main, "sharedStrings")
        self._texts = [] if shared is None else [_text(item) for item in archive.parse(shared)]
        styles = archive.find_related(main, "styles")
        self._formats = [] if styles is None else _read_formats(archive.parse(styles))
        properties = find_child(workbook, "workbookPr")
        self._since_1904 = properties is not None and properties.get("date1904") in _TRUE

    def read(self, cell: "Element") -> str:
        """Return what a cell shows."""
        kind = cell.get("t", "n")
        if kind == "inlineStr":
            return _text(find_child(cell, "is"))
        value = find_child(cell, "v")
        stated = (value.text or "") if value is not None else ""
        if kind == "s":
            number = int(stated) if stated.isdecimal() else -1
            return self._texts[number] if 0 <= number < len(self._texts) else ""
        if kind == "b":
            return "TRUE" if stated == "1" else "FALSE"
        if kind != "n" or not stated:
            return stated
        style = cell.get("s", "0")
        at = int(style) if style.isdecimal() else 0
        code = self._formats[at] if at < len(self._formats) else ""
        return format_number(stated, code, since_1904=self._since_1904)


def _text(item: "Element | None") -> str:
    """Return the runs of a text without the readings of its characters."""
    if item is None:
        return ""
    parts = [part.text or "" for part in find_children(item, "t")]
    for run in find_children(item, "r"):
        parts += [part.text or "" for part in find_children(run, "t")]
    return " ".join("".join(parts).split())


def _read_formats(styles: "Element") -> list[str]:
    custom = {
        int(found.get("numFmtId", "0")): found.get("formatCode", "")
        for found in find_all(styles, "numFmt")
        if found.get("numFmtId", "").isdecimal()
    }
    formats = (
        found.get("numFmtId", "0") for found in find_children(find_child(styles, "cellXfs"), "xf")
    )
    return [find_format(int(found) if found.isdecimal() else 0, custom) for found in formats]


def _read_sheet(root: "Element", values: _Values) -> _Sheet:
    sheet = _Sheet()
    hidden_columns = _hidden_columns(root)
    sheet.hidden += len(hidden_columns)
    number = 0
    for row in find_children(find_child(root, "sheetData"), "row"):
        stated = row.get("r", "")
        number = int(stated) if stated.isdecimal() else number + 1
        if row.get("hidden") in _TRUE:
            sheet.hidden += 1
            continue
        cells = {
            column: text
            for column, text in _read_row(row, values)
            if column not in hidden_columns and text
        }
        if cells:
            sheet.rows.append(SheetRow(number, cells))
    _fill_merged(root, sheet.rows)
    return sheet


def _read_row(row: "Element", values: _Values) -> Iterator[tuple[int, str]]:
    column = -1
    for cell in find_children(row, "c"):
        place = _place(cell.get("r", ""))
        column = place[1] if place is not None else column + 1
        if column < MOST_COLUMNS:
            yield column, values.read(cell)


def _hidden_columns(root: "Element") -> frozenset[int]:
    hidden: set[int] = set()
    for column in find_children(find_child(root, "cols"), "col"):
        first, last = column.get("min", ""), column.get("max", "")
        if column.get("hidden") in _TRUE and first.isdecimal() and last.isdecimal():
            hidden.update(range(int(first) - 1, min(int(last), MOST_COLUMNS)))
    return frozenset(hidden)


def _fill_merged(root: "Element", rows: list[SheetRow]) -> None:
    """Give the text of a merged cell to every row and column that it spans."""
    by_number: Mapping[int, SheetRow] = {row.number: row for row in rows}
    for merged in find_children(find_child(root, "mergeCells"), "mergeCell"):
        first, _, last = (merged.get("ref") or "").partition(":")
        start, end = _place(first), _place(last)
        if start is None or end is None or start[0] not in by_number:
            continue
        text = by_number[start[0]].cells.get(start[1], "")
        below = (row for row in rows if start[0] <= row.number <= end[0]) if text else ()
        for row in below:
            # A cell that spans the whole row is a caption rather than a value of each column.
            is_caption = row.number == start[0] and len(row.cells) == 1
            columns = range(start[1], start[1] + 1 if is_caption else min(end[1], MOST_COLUMNS) + 1)
            row.cells.update(dict.fromkeys(columns, text))


def _place(reference: str) -> tuple[int, int] | None:
    """Return the row from 1 and the column from 0 of a reference such as `B7`."""
    found = _REFERENCE.match(reference)
    if found is None:
        return None
    column = 0
    for letter in found[1]:
        column = column * 26 + ord(letter) - ord("A") + 1
    return int(found[2]), column - 1


_BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00",
    14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm", 19: "h:mm:ss",
    20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0", 38: "#,##0", 39: "#,##0.00",
    40: "#,##0.00", 45: "mm:ss", 46: "h:mm:ss", 47: "mm:ss",
}  # fmt: skip
_LITERALS = re.compile(
    r'"([^"]{0,200})"|\\(.)|_.|\*.|\[\$([^\]\-]{0,40})(?:-[^\]]{0,40})?\]|\[[^\]]{0,80}\]',
    re.DOTALL,
)
_NUMBER = re.compile(r"[#0?][#0?,.]*")
_DATE_SIGNS = re.compile(r"[ymdhs]", re.IGNORECASE)
_DAY_SIGNS = re.compile(r"[yd]", re.IGNORECASE)
_CLOCK_SIGNS = re.compile(r"[hs]", re.IGNORECASE)
_LONGEST_FORMAT = 200
_LAST_DAY = 2_958_465
_HELD = "\x1a"


def find_format(number: int, custom: dict[int, str]) -> str:
    """Return the format of a style by its number; empty for a general one."""
    return custom.get(number, _BUILT_IN.get(number, ""))[:_LONGEST_FORMAT]


def format_number(value: str, code: str, *, since_1904: bool = False) -> str:
    """Return a number as its format shows it; other text stays as it is."""
    try:
        number = float(value)
    except ValueError:
        return value
    literals: list[str] = []

    def hold(found: re.Match[str]) -> str:
        shown = next((part for part in found.groups() if part is not None), "")
        literals.append(shown)
        return _HELD

    section = _LITERALS.sub(hold, code).split(";")[0]
    if not section or section.lower().startswith("general") or section == "@":
        return _write_general(number)
    if _DATE_SIGNS.search(section) and "#" not in section and "%" not in section:
        return _write_date(number, section, since_1904=since_1904)
    return _write_number(number, section, literals)


def _write_general(number: float) -> str:
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return format(number, ".15g")


def _write_number(number: float, section: str, literals: list[str]) -> str:
    found = _NUMBER.search(section)
    if found is None or "e+" in section.lower():
        return _write_general(number)
    digits = found[0].rstrip(",")
    if "%" in section:
        number *= 100
    decimals = digits.partition(".")[2]
    separator = "," if "," in digits else ""
    written = format(number, f"{separator}.{min(len(decimals), 20)}f")
    for _ in range(decimals.count("#")):
        written = written[:-1] if "." in written and written.endswith("0") else written
    written = written.rstrip(".") if "." in written and written.endswith(".") else written
    before, after = section[: found.start()], section[found.end() :]
    parts = iter(literals)
    prefix = "".join(next(parts, "") if sign == _HELD else sign for sign in before)
    suffix = "".join(next(parts, "") if sign == _HELD else sign for sign in after)
    return f"{prefix}{written}{suffix}".strip()


def _write_date(number: float, section: str, *, since_1904: bool) -> str:
    if not 0 <= number <= _LAST_DAY:
        return _write_general(number)
    # The first days of 1900 are counted with a 29 February that never was.
    first = datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 30)  # noqa: DTZ001 - no zone
    moment = first + timedelta(seconds=round(number * 86_400))
    has_day = _DAY_SIGNS.search(section) is not None or "mmm" in section.lower()
    has_clock = _CLOCK_SIGNS.search(section) is not None
    if has_day and has_clock:
        return moment.strftime("%Y-%m-%d %H:%M")
    return moment.strftime("%Y-%m-%d") if has_day else moment.strftime("%H:%M:%S")
