"""Reads Excel workbooks: each visible sheet is a section with its rows below the header.

Values are those last computed by Excel, formatted as displayed, with the cell notes. Hidden sheets,
rows and columns are left out and counted; rows hidden only by a filter are read.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from xml.etree.ElementTree import Element

from knowledge.documents.decoding import clean_text
from knowledge.documents.errors import WrongFormatError
from knowledge.documents.notation import Script, Span, join_spans
from knowledge.documents.office.drawings import read_drawing_text, read_graphics
from knowledge.documents.office.number_format import find_format, format_number, format_text
from knowledge.documents.office.zipped_xml import (
    BACKGROUND,
    ZippedXml,
    count_field_in_header,
    find_all,
    find_child,
    find_children,
    find_drawn,
    get_value,
    is_on,
    make_page,
    read_core_properties,
    to_number,
    write_page_headers,
)
from knowledge.documents.page import Block, BlockKind, LeftOutCounts, Page
from knowledge.documents.readers import read_inner_file
from knowledge.documents.tables import (
    CONDITIONAL,
    MOST_COLUMNS,
    TOO_MANY_COLUMNS,
    SheetRow,
    close_gaps,
    fill_merged,
    write_named_sheet,
)

_EXPECTED = "an Excel workbook"
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})\Z")
_TRUE = frozenset({"1", "true"})
_SCRIPTS = {"superscript": Script.RAISED, "subscript": Script.LOWERED}
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_HIDDEN = "hidden in the workbook"
_WHITE = "FFFFFF"
# The codes of printed headers (ECMA-376 part 1, 18.3.1.46): sections, appearance and fields.
_SECTION = re.compile(r"&[LCR]")
_APPEARANCE = re.compile(
    r'&(?:"[^"]{0,200}"|K(?:[0-9A-Fa-f]{6}|\d\d[+-]\d{3})|\d{1,3}|[BEIOHSUXY])'
)
_AMPERSAND = "\ue000"
_FIELD = re.compile(r"&[PNDTGFAZ]")
_DAY_ZERO, _DAY_ZERO_1904 = datetime(1899, 12, 30), datetime(1904, 1, 1)  # noqa: DTZ001 - as sheets


class _Values:
    """The shared strings and styles to which cells refer; counts what is left out."""

    def __init__(self, archive: ZippedXml, main: str, workbook: Element) -> None:
        self.left_out = LeftOutCounts()
        shared = archive.find_related(main, "sharedStrings")
        self._texts = [] if shared is None else [_read_runs(item) for item in archive.parse(shared)]
        styles = archive.find_related(main, "styles")
        root = None if styles is None else archive.parse(styles)
        self._styles = [] if root is None else _read_styles(root)
        self._struck_out = [
            is_on(style.find("font"), "strike")
            for style in find_children(find_child(root, "dxfs"), "dxf")
        ]
        properties = workbook.find("workbookPr")
        self._since_1904 = properties is not None and properties.get("date1904") in _TRUE
        calculation = workbook.find("calcPr")
        # Programs that do not calculate state so, and store zeros.
        self._recalculates = calculation is not None and calculation.get("fullCalcOnLoad") in _TRUE

    def count_conditions(self, root: Element, sheet: str) -> None:
        """Count the rules of a sheet that strike out cells: whether they apply is not known."""
        for condition in root.iter("conditionalFormatting"):
            for rule in condition.findall("cfRule"):
                style = to_number(rule.get("dxfId"), len(self._struck_out))
                if style < len(self._struck_out) and self._struck_out[style]:
                    self.left_out.add(*CONDITIONAL, name=f"{sheet}!{condition.get('sqref', '')}")

    def read(self, cell: Element, *, has_background: bool) -> str:
        """Return the visible text of a cell; `has_background` if it may have one beside its style's
        own.
        """
        at = to_number(cell.get("s"))
        style = self._styles[at] if at < len(self._styles) else _Style()
        kind = cell.get("t", "n")
        is_number = kind in ("n", "d")
        runs = self._read_stated(cell, kind)
        is_plain = bool(runs) and all(type(run) is str for run in runs)
        if style.is_invisible and is_plain and not has_background:
            self.left_out.add("value", BACKGROUND)
            return ""
        stated = _join_runs(runs, is_struck=style.is_struck and not is_number)
        if is_number:
            number = read_day(stated, self._since_1904) if kind == "d" and style.format else stated
            shown = format_number(number, style.format, since_1904=self._since_1904)
            shown = join_spans([Span(shown, is_struck=style.is_struck)])
        else:
            shown = format_text(stated, style.format)
        if stated and not shown.strip():
            self.left_out.add("value", "hidden by the number format")
        return shown

    def _read_stated(self, cell: Element, kind: str) -> "Sequence[Span | str]":
        """Return the stored value of a cell: a number unchanged, other values as text."""
        if kind == "inlineStr":
            return _read_runs(cell.find("is"))
        value = cell.find("v")
        stated = (value.text or "") if value is not None else ""
        is_unknown = not stated or (stated == "0" and self._recalculates)
        if is_unknown and kind != "str" and cell.find("f") is not None:
            self.left_out.add("formula", "the file stores no result: save it in Excel")
            return ()
        if not stated:
            return ()
        if kind == "s":
            if to_number(stated, len(self._texts)) < len(self._texts):
                return self._texts[int(stated)]
            self.left_out.add("text", "missing in the file")
            return ()
        if kind == "b":
            return ("TRUE" if stated == "1" else "FALSE",)
        if kind == "e" and cell.get("vm") is not None:
            self.left_out.add("linked data type or picture", "only Excel 365 shows it in a cell")
            return ()
        return (_unescape(stated),) if kind == "str" else (stated,)


@dataclass(frozen=True, slots=True)
class _Style:
    """The style of cells: number format, and whether the typeface is struck out, or has the colour
    of the cell.
    """

    format: str = ""
    is_struck: bool = False
    is_invisible: bool = False


def read(data: bytes, source: str) -> Page:
    """Return the page; its sheets are sections, even when there is only one."""
    archive = ZippedXml(data, _EXPECTED)
    main = archive.find_related("", "officeDocument") or "xl/workbook.xml"
    workbook = archive.parse(main)
    if workbook.tag != "workbook":
        raise WrongFormatError(f"expected {_EXPECTED}, found another kind of office file")
    values = _Values(archive, main, workbook)
    relations = archive.relationships(main)
    blocks: list[Block] = []
    links: list[tuple[str, str]] = []
    left_out = values.left_out
    for sheet in find_children(workbook.find("sheets"), "sheet"):
        name = " ".join((sheet.get("name") or "Sheet").split())
        relation = relations.get(sheet.get("id", ""))
        if relation is None or relation.kind not in ("worksheet", "chartsheet"):
            left_out.add("sheet", "macros, dialogs and missing sheets are not read", name=name)
            continue
        if sheet.get("state", "visible") != "visible":
            left_out.add("hidden sheet", _HIDDEN, name=name)
            continue
        notes = _read_notes(archive, relation.target)
        root = archive.parse(relation.target)
        ranges = list(_list_ranges(archive, relation.target, root))
        filtered = [rows for rows, _, is_active in ranges if is_active]
        tables = (entry.get("ref") for entry in _list_tables(archive, relation.target))
        rows = _read_sheet(root, values, notes, filtered, [*tables, *_list_conditions(root)])
        values.count_conditions(root, name)
        headers = {rows.start for rows, has_header, _ in ranges if has_header}
        before = tuple(_write_headers(root, left_out))
        drawings = _write_drawings(archive, relation.target, left_out)
        blocks += write_named_sheet(name, rows, headers, before, drawings)
        links += _list_links(root, rows, archive.web_links(relation.target))
    stated = read_core_properties(archive)
    return make_page(source, archive, stated, stated.title, blocks, links, left_out)


def write_printed_headers(texts: Iterable[str], left_out: LeftOutCounts) -> Iterator[Block]:
    """Return the printed headers and footers of a sheet; those with fields are counted."""
    lines: list[str] = []
    for header in texts:
        for part in _SECTION.split(header.replace("&&", _AMPERSAND)):
            text = _APPEARANCE.sub("", part)
            if _FIELD.search(text) is not None:
                count_field_in_header(_FIELD.sub("", text), left_out)
            else:
                lines.append(" ".join(text.replace(_AMPERSAND, "&").split()))
    return write_page_headers(lines)


def read_day(stated: str, since_1904: bool) -> str:
    """Return a date in ISO 8601 as its number of days; other text is returned unchanged."""
    try:
        moment = datetime.fromisoformat(stated).replace(tzinfo=None)
    except ValueError:
        return stated
    return repr((moment - (_DAY_ZERO_1904 if since_1904 else _DAY_ZERO)) / timedelta(days=1))


def _read_appearance(properties: Element | None) -> Span:
    """Return a span without text in the typeface of a run or a style."""
    script = _SCRIPTS.get(get_value(properties, "vertAlign") or "", Script.LINE)
    return Span("", script, is_on(properties, "strike"))


def _text(item: Element | None) -> str:
    """Return the text of an item without its phonetic annotations."""
    return _join_runs(_read_runs(item), is_struck=False)


def _read_runs(item: Element | None) -> "tuple[Span | str, ...]":
    """Return the runs of an item; one without a typeface of its own, which it takes from its cell,
    is a string.
    """
    runs: list[Span | str] = []
    for child in item if item is not None else ():
        name = child.tag
        if name == "t":
            runs.append(_unescape(child.text or ""))
        elif name == "r":
            text = "".join(_unescape(part.text or "") for part in child.findall("t"))
            typeface = child.find("rPr")
            appearance = None if typeface is None else _read_appearance(typeface)
            runs.append(text if appearance is None else replace(appearance, text=text))
    return tuple(runs)


def _join_runs(runs: "Iterable[Span | str]", is_struck: bool) -> str:
    """Return runs on one line; `is_struck` applies to those without a typeface of their own."""
    spans = (run if isinstance(run, Span) else Span(run, is_struck=is_struck) for run in runs)
    return " ".join(join_spans(spans).split())


def _unescape(text: str) -> str:
    """Return text with the characters that XML cannot contain (ECMA-376 part 1, 22.9.2.19)."""
    if "_x" not in text:
        return text
    return clean_text(_ESCAPED.sub(lambda match: chr(int(match[1], 16)), text))


def _read_styles(styles: Element) -> list[_Style]:
    custom = {
        int(declared.get("numFmtId", "0")): declared.get("formatCode", "")
        for declared in find_children(styles.find("numFmts"), "numFmt")
        if declared.get("numFmtId", "").isdecimal()
    }
    fonts = [
        (is_on(font, "strike"), _read_colour(font.find("color")))
        for font in find_children(styles.find("fonts"), "font")
    ]
    fills = [
        _read_fill(fill.find("patternFill")) for fill in find_children(styles.find("fills"), "fill")
    ]
    read: list[_Style] = []
    for declared in find_children(styles.find("cellXfs"), "xf"):
        at, filled = to_number(declared.get("fontId")), to_number(declared.get("fillId"))
        is_struck, colour = fonts[at] if at < len(fonts) else (False, None)
        is_invisible = colour is not None and filled < len(fills) and fills[filled] == colour
        format_code = find_format(to_number(declared.get("numFmtId")), custom)
        read.append(_Style(format_code, is_struck, is_invisible))
    return read


def _read_colour(colour: Element | None) -> str | None:
    """Return a colour as in the file, but white in hexadecimal digits; None if it is not stated."""
    if colour is None:
        return None
    tint = "" if colour.get("tint", "0") in ("0", "0.0") else colour.get("tint", "")
    if "rgb" in colour.attrib:
        return f"{colour.get('rgb', '')[-6:].upper()}{tint}"
    # In the palette, and as the background of the theme.
    if not tint and (colour.get("indexed") in ("1", "9", "65") or colour.get("theme") == "0"):
        return _WHITE
    return " ".join(f"{name}={value}" for name, value in sorted(colour.items()))


def _read_fill(pattern: Element | None) -> str | None:
    """Return the colour of a cell, or None if it is not known."""
    kind = "none" if pattern is None else pattern.get("patternType", "none")
    if kind == "none":
        return _WHITE
    return _read_colour(find_child(pattern, "fgColor")) if kind == "solid" else None


def _read_notes(archive: ZippedXml, sheet: str) -> dict[str, str]:
    """Return the cell notes by cell reference; a comment thread replaces its placeholder note."""
    parts = [
        relation
        for relation in archive.relationships(sheet).values()
        if relation.kind in ("comments", "threadedComment") and relation.target in archive
    ]
    notes: dict[str, str] = {}
    for relation in sorted(parts, key=lambda relation: relation.kind):
        threads: dict[str, list[str]] = {}
        for note in find_all(archive.parse(relation.target), relation.kind.removesuffix("s")):
            text = note.find("text")
            stated = "" if text is None else " ".join((text.text or "").split())
            threads.setdefault(note.get("ref", ""), []).append(_text(text) or stated)
        notes |= {place: " / ".join(filter(None, texts)) for place, texts in threads.items()}
    return notes


def _write_drawings(archive: ZippedXml, sheet: str, left_out: LeftOutCounts) -> Iterator[Block]:
    """Yield the drawings of a sheet, and the files embedded in it."""
    for relation in archive.relationships(sheet).values():
        if relation.target not in archive:
            continue
        if relation.kind in ("package", "oleObject"):
            data = archive.read(relation.target)
            yield from read_inner_file(data, relation.target, left_out)
        elif relation.kind == "drawing":
            drawing = archive.parse(relation.target)
            for shape in drawing.iter("txBody"):
                texts = (read_drawing_text(child) for child in shape.findall("p"))
                yield from (Block(BlockKind.TEXT, text) for text in texts if text)
            yield from read_graphics(drawing, archive, relation.target, left_out)
            pictures = tuple(find_drawn(drawing, archive, relation.target))
            if pictures:
                yield Block(BlockKind.TEXT, "", pictures=pictures)


def _write_headers(root: Element, left_out: LeftOutCounts) -> Iterator[Block]:
    """Yield the printed headers and footers of a sheet; count its controls."""
    controls = sum(1 for _ in root.iter("control"))
    left_out.add("form control", "controls on sheets are not read", controls)
    headers = root.find("headerFooter")
    texts = (header.text or "" for header in (() if headers is None else headers))
    return write_printed_headers(texts, left_out)


def _list_conditions(root: Element) -> Iterator[str]:
    """Yield the ranges that may have a background that no style of a cell states."""
    for element in root.findall("conditionalFormatting"):
        yield from element.get("sqref", "").split()
    if root.find("picture") is not None:
        yield "A1:XFD9999999"


def _read_sheet(
    root: Element,
    values: _Values,
    notes: Mapping[str, str],
    filtered: Sequence[range],
    backgrounds: Sequence[str | None],
) -> list[SheetRow]:
    coloured = [_read_range(reference) for reference in backgrounds]
    rows: list[SheetRow] = []
    hidden_columns = _hidden_columns(root)
    hidden = 0
    values.left_out.add("hidden column", _HIDDEN, len(hidden_columns))
    number = 0
    for row in find_children(root.find("sheetData"), "row"):
        number = to_number(row.get("r"), number + 1)
        if row.get("hidden") in _TRUE and not any(number in rows for rows in filtered):
            values.left_out.add("hidden row", _HIDDEN)
            hidden += 1
            continue
        cells = {
            column: text
            for column, text in _read_row(row, number, values, notes, coloured)
            if column not in hidden_columns and text
        }
        if cells:
            rows.append(SheetRow(number, cells, hidden))
    _fill_merged(root, rows)
    return close_gaps(rows, hidden_columns)


def _read_row(
    row: Element,
    number: int,
    values: _Values,
    notes: Mapping[str, str],
    coloured: Sequence[tuple[range, range]],
) -> Iterator[tuple[int, str]]:
    column = -1
    for cell in row.findall("c"):
        reference = cell.get("r", "")
        place = _place(reference)
        column = place[1] if place is not None else column + 1
        if column < MOST_COLUMNS:
            note = notes.get(reference, "")
            is_coloured = any(number in rows and column in columns for rows, columns in coloured)
            text = values.read(cell, has_background=is_coloured)
            yield column, f"{text} [{note}]".strip() if note else text
        else:
            values.left_out.add("cell", TOO_MANY_COLUMNS)


def _list_ranges(
    archive: ZippedXml, sheet: str, root: Element
) -> Iterator[tuple[range, bool, bool]]:
    """Yield the rows of each table and filter, whether the first one is a header, and whether
    others are hidden only by a condition.
    """
    for part in (root, *_list_tables(archive, sheet)):
        filters = part.find("autoFilter")
        stated = filters if part is root else part
        if stated is not None and (rows := _read_range(stated.get("ref"))[0]):
            is_active = find_child(filters, "filterColumn") is not None
            yield rows, part.get("headerRowCount") != "0", is_active


def _list_tables(archive: ZippedXml, sheet: str) -> Iterator[Element]:
    relations = archive.relationships(sheet).values()
    tables = (relation.target for relation in relations if relation.kind == "table")
    return (archive.parse(name) for name in tables if name in archive)


def _list_links(
    root: Element, rows: Sequence[SheetRow], addresses: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the text of each cell with a web link, and its URL."""
    by_number = {row.number: row.cells for row in rows}
    for link in find_children(root.find("hyperlinks"), "hyperlink"):
        numbers, columns = _read_range(link.get("ref"))
        label = by_number.get(numbers.start, {}).get(columns.start)
        address = addresses.get(link.get("id", ""))
        if label and address and label != address:
            yield label, address


def _hidden_columns(root: Element) -> frozenset[int]:
    hidden: set[int] = set()
    for column in find_children(root.find("cols"), "col"):
        first, last = column.get("min", ""), column.get("max", "")
        if column.get("hidden") in _TRUE and first.isdecimal() and last.isdecimal():
            hidden.update(range(int(first) - 1, min(int(last), MOST_COLUMNS)))
    return frozenset(hidden)


def _fill_merged(root: Element, rows: list[SheetRow]) -> None:
    """Copy the text of a merged cell to every row and column that it spans."""
    by_number = {row.number: row for row in rows}
    for merged in find_children(root.find("mergeCells"), "mergeCell"):
        fill_merged(by_number, *_read_range(merged.get("ref")))


def _read_range(reference: str | None) -> tuple[range, range]:
    """Return the 1-based rows and 0-based columns of a range such as `A1:B7`."""
    first, _, last = (reference or "").partition(":")
    start, end = _place(first), _place(last or first)
    if start is None or end is None:
        return range(0), range(0)
    return range(start[0], end[0] + 1), range(start[1], end[1] + 1)


def _place(reference: str) -> tuple[int, int] | None:
    """Return the 1-based row and 0-based column of a reference such as `B7`."""
    match = _REFERENCE.match(reference)
    if match is None:
        return None
    column = 0
    for letter in match[1]:
        column = column * 26 + ord(letter) - ord("A") + 1
    return int(match[2]), column - 1
