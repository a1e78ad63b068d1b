"""Reads Excel workbooks: each visible sheet is a section with its rows below the header.

Values are those last computed by Excel, formatted as displayed, with the cell notes. Hidden sheets,
rows and columns are left out and counted; rows hidden only by a filter are read.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from xml.etree.ElementTree import Element

from knowledge.documents.decoding import clean_text
from knowledge.documents.errors import WrongFormatError
from knowledge.documents.notation import Script, keep_lines
from knowledge.documents.office.drawings import read_drawing_text, read_graphics
from knowledge.documents.office.number_format import find_format
from knowledge.documents.office.shapes import remove_invisible_text_on_sheet
from knowledge.documents.office.workbook import (
    CHECKBOXES,
    NO_RESULT,
    TRUTHS,
    CellRange,
    CellStyle,
    Run,
    Sheet,
    Workbook,
    find_address,
)
from knowledge.documents.office.zipped_xml import (
    Relationship,
    ZippedXml,
    find_all,
    find_child,
    find_children,
    find_drawn,
    get_value,
    is_on,
    make_page,
    read_core_properties,
    to_number,
)
from knowledge.documents.page import Block, BlockKind, Page
from knowledge.documents.readers import read_inner_file
from knowledge.documents.symbols import replace_symbols
from knowledge.documents.tables import CONDITIONAL

_EXPECTED = "an Excel workbook"
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})(?::([A-Z]{1,3})(\d{1,7}))?\Z")
_NUMBERS = frozenset({"n", "d"})
_TRUE, _FALSE = frozenset({"1", "true"}), frozenset({"0", "false"})
_SCRIPTS = {"superscript": Script.RAISED, "subscript": Script.LOWERED}
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_WHITE = "FFFFFF"
_EVERYWHERE = range(10_000_000)
_LAST_COLUMN = 16_384


class _WorkbookReader:
    """Reads the sheets of an archive, whose cells refer to shared strings and styles.

    `root` is that of the part `main`, which lists the sheets.
    """

    def __init__(self, archive: ZippedXml, main: str, root: Element) -> None:
        self.workbook = Workbook(_is_true(root.find("workbookPr"), "date1904"))
        self._archive = archive
        self._left_out = self.workbook.left_out
        # Programs that do not calculate state so, and store zeros.
        self._recalculates = _is_true(root.find("calcPr"), "fullCalcOnLoad")
        shared = archive.find_related(main, "sharedStrings")
        self._texts = [] if shared is None else [_read_runs(item) for item in archive.parse(shared)]
        name = archive.find_related(main, "styles")
        styles = None if name is None else archive.parse(name)
        self._styles = list(_read_styles(styles))
        formats = find_children(find_child(styles, "cellXfs"), "xf")
        self._checkboxes = {
            at for at, style in enumerate(formats) if style.find(".//xfComplement") is not None
        }
        self._is_white = all(style.background == _WHITE for style in self._styles)
        theme = archive.find_related(main, "theme")
        self._theme = None if theme is None else archive.parse(theme)

    def read_sheet(self, sheet: Sheet, part: str) -> Iterator[Block]:
        """Yield the blocks of a sheet, and note its links."""
        root = self._archive.parse(part)
        relations = self._archive.relationships(part).values()
        related = [relation for relation in relations if relation.target in self._archive]
        tables = [self._archive.parse(each.target) for each in related if each.kind == "table"]
        filtered = list(_list_filtered(root, tables, sheet.header_rows))
        backgrounds = [*_list_ranges(tables), *_list_conditions(root)]
        notes = self._read_notes(related)
        read = partial(self._read_cell, sheet=sheet, backgrounds=backgrounds, notes=notes)
        sheet.hide_columns(_list_hidden_columns(root))
        for number, row, cells in _list_rows(root, notes):
            if _is_hidden(row) and not any(number in rows for rows in filtered):
                sheet.hide_rows()
            else:
                sheet.add_row(number, cells, read)
        sheet.merged = list(_list_ranges(find_all(root, "mergeCell")))
        self._count_unread(root, sheet.name)
        addresses = self._archive.web_links(part)
        for link in find_all(root, "hyperlink"):
            rows, columns = _read_range(link.get("ref", ""))
            sheet.links[rows.start, columns.start] = addresses.get(link.get("id", ""), "")
        headers = (header.text for headers in root.iter("headerFooter") for header in headers)
        printed = self.workbook.write_printed_headers(headers)
        page = _WHITE if self._is_white and not backgrounds else None
        return sheet.write(printed, self._write_drawings(related, page))

    def _read_cell(
        self,
        cell: Element,
        sheet: Sheet,
        backgrounds: Sequence[CellRange],
        notes: Mapping[str, str],
    ) -> str:
        """Return the visible text of a cell with its note, and note the link of its formula."""
        at, kind = to_number(cell.get("s")), cell.get("t", "n")
        reference = cell.get("r", "")
        rows, columns = _read_range(reference)
        style = self._styles[at] if at < len(self._styles) else CellStyle()
        runs = self._read_stated(cell, kind, CHECKBOXES if at in self._checkboxes else TRUTHS)
        if any(map(style.hides, runs)) and any(
            rows.start in own[0] and columns.start in own[1] for own in backgrounds
        ):
            style = replace(style, background=None)
        if address := find_address(cell.findtext("f")):
            sheet.links[rows.start, columns.start] = address
        return self.workbook.show(runs, style, notes.get(reference, ""), is_number=kind in _NUMBERS)

    def _count_unread(self, root: Element, sheet: str) -> None:
        """Count the controls of a sheet, and the rules that change how values are shown."""
        controls = sum(1 for _ in root.iter("control"))
        self._left_out.add("form control", "controls on sheets are not read", controls)
        for condition in root.iter("conditionalFormatting"):
            for rule in condition.findall("cfRule"):
                is_sign = any(part.get("showValue") in _FALSE for part in rule)
                if is_sign or rule.get("dxfId") is not None:
                    self._left_out.add(*CONDITIONAL, name=f"{sheet}!{condition.get('sqref', '')}")

    def _read_stated(
        self, cell: Element, kind: str, truths: Mapping[str, str]
    ) -> tuple[Run | str, ...]:
        """Return the stored value of a cell: a number unchanged, other values as text."""
        if kind == "inlineStr":
            return _read_runs(cell.find("is"))
        value = cell.find("v")
        stated = (value.text or "") if value is not None else ""
        is_unknown = not stated or (stated == "0" and self._recalculates)
        if is_unknown and kind != "str" and cell.find("f") is not None:
            self._left_out.add(*NO_RESULT)
            return ()
        if kind == "s" and stated:
            if to_number(stated, len(self._texts)) < len(self._texts):
                return self._texts[int(stated)]
            self._left_out.add("text", "missing in the file")
            return ()
        if kind == "e" and cell.get("vm") is not None:
            self._left_out.add("linked data type or picture", "only Excel 365 shows it in a cell")
            return ()
        if kind == "b":
            stated = truths.get(stated, stated)
        return (_unescape(stated),) if kind == "str" else (stated,)

    def _read_notes(self, related: Sequence[Relationship]) -> dict[str, str]:
        """Return the cell notes by their cells; a comment thread replaces its placeholder note."""
        notes: dict[str, str] = {}
        parts = [each for each in related if each.kind in ("comments", "threadedComment")]
        for part in sorted(parts, key=lambda part: part.kind):
            threads: dict[str, list[str]] = {}
            for note in self._archive.parse(part.target).iter(part.kind.removesuffix("s")):
                for text in note.findall("text"):
                    runs = _read_runs(text) or (text.text or "",)
                    shown = self.workbook.show(runs, CellStyle(), is_number=False)
                    threads.setdefault(note.get("ref", ""), []).append(shown)
            notes |= {place: " / ".join(filter(None, texts)) for place, texts in threads.items()}
        return notes

    def _write_drawings(self, related: Iterable[Relationship], page: str | None) -> Iterator[Block]:
        """Yield the drawings and embedded files of a sheet, whose cells have the colour `page`."""
        for part in related:
            if part.kind in ("package", "oleObject"):
                data = self._archive.read(part.target)
                yield from read_inner_file(data, part.target, self._left_out)
            elif part.kind == "drawing":
                drawing = self._archive.parse(part.target)
                remove_invisible_text_on_sheet(drawing, page, self._theme, self._left_out)
                for shape in drawing.iter("txBody"):
                    texts = (keep_lines(read_drawing_text(p)) for p in shape.findall("p"))
                    yield from (Block(BlockKind.TEXT, text) for text in texts if text)
                yield from read_graphics(drawing, self._archive, part.target, self._left_out)
                pictures = tuple(find_drawn(drawing, self._archive, part.target))
                if pictures:
                    yield Block(BlockKind.TEXT, "", pictures=pictures)


def read(data: bytes, source: str) -> Page:
    """Return the page; its sheets are sections, even when there is only one."""
    archive = ZippedXml(data, _EXPECTED)
    main = archive.find_related("", "officeDocument") or "xl/workbook.xml"
    root = archive.parse(main)
    if root.tag != "workbook":
        raise WrongFormatError(f"expected {_EXPECTED}, found another kind of office file")
    reader = _WorkbookReader(archive, main, root)
    left_out = reader.workbook.left_out
    relations = archive.relationships(main)
    blocks: list[Block] = []
    for declared in find_children(root.find("sheets"), "sheet"):
        name, is_hidden = declared.get("name", ""), declared.get("state", "visible") != "visible"
        relation = relations.get(declared.get("id", ""))
        if relation is None or relation.kind not in ("worksheet", "chartsheet"):
            left_out.add("sheet", "macros, dialogs and missing sheets are not read", name=name)
        elif (sheet := reader.workbook.open_sheet(name, is_hidden=is_hidden)) is not None:
            blocks += reader.read_sheet(sheet, relation.target)
    stated = read_core_properties(archive)
    return make_page(source, archive, stated, stated.title, blocks, reader.workbook.links, left_out)


def _is_true(element: Element | None, name: str) -> bool:
    return element is not None and element.get(name) in _TRUE


def _is_hidden(part: Element) -> bool:
    """Return whether a row or a column is hidden other than by its group."""
    return part.get("hidden") in _TRUE and not to_number(part.get("outlineLevel"))


def _read_runs(item: Element | None) -> tuple[Run | str, ...]:
    """Return the runs of an item; one without a typeface of its own, which it takes from its cell,
    is a string.
    """
    runs: list[Run | str] = []
    for child in item if item is not None else ():
        name = child.tag
        if name == "t":
            runs.append(_unescape(child.text or ""))
        elif name == "r":
            text = "".join(_unescape(part.text or "") for part in child.findall("t"))
            typeface = child.find("rPr")
            text = replace_symbols(text, get_value(typeface, "rFont") or "")
            script = _SCRIPTS.get(get_value(typeface, "vertAlign") or "", Script.LINE)
            colour = _read_colour(find_child(typeface, "color"))
            is_plain = typeface is None
            is_struck = is_on(typeface, "strike")
            runs.append(text if is_plain else Run(text, script, is_struck, colour=colour))
    return tuple(runs)


def _unescape(text: str) -> str:
    """Return text with the characters that XML cannot contain (ECMA-376 part 1, 22.9.2.19)."""
    if "_x" not in text:
        return text
    return clean_text(_ESCAPED.sub(lambda match: chr(int(match[1], 16)), text))


def _read_styles(styles: Element | None) -> Iterator[CellStyle]:
    custom = {
        to_number(declared.get("numFmtId")): declared.get("formatCode", "")
        for declared in find_children(find_child(styles, "numFmts"), "numFmt")
    }
    fonts = [
        (is_on(font, "strike"), _read_colour(font.find("color")), get_value(font, "name") or "")
        for font in find_children(find_child(styles, "fonts"), "font")
    ]
    fills = [
        _read_fill(fill.find("patternFill"))
        for fill in find_children(find_child(styles, "fills"), "fill")
    ]
    for declared in find_children(find_child(styles, "cellXfs"), "xf"):
        at, filled = to_number(declared.get("fontId")), to_number(declared.get("fillId"))
        is_struck, colour, typeface = fonts[at] if at < len(fonts) else (False, None, "")
        background = fills[filled] if filled < len(fills) else None
        code = find_format(to_number(declared.get("numFmtId")), custom)
        yield CellStyle(code, is_struck, colour, background, typeface)


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


def _list_filtered(
    root: Element, tables: Iterable[Element], header_rows: set[int]
) -> Iterator[range]:
    """Yield the rows of which some are hidden only by a condition; add the headers of tables and
    filters to `header_rows`.
    """
    for part in (root, *tables):
        filters = part.find("autoFilter")
        stated = filters if part is root else part
        rows, _ = _read_range("" if stated is None else stated.get("ref", ""))
        if rows and part.get("headerRowCount") != "0":
            header_rows.add(rows.start)
        if find_child(filters, "filterColumn") is not None:
            yield rows


def _list_conditions(root: Element) -> Iterator[CellRange]:
    """Yield the ranges that may have a background that no style of a cell states."""
    for element in root.findall("conditionalFormatting"):
        yield from map(_read_range, element.get("sqref", "").split())
    if root.find("picture") is not None:
        yield _EVERYWHERE, _EVERYWHERE


def _list_rows(
    root: Element, notes: Mapping[str, str]
) -> Iterator[tuple[int, Element, list[tuple[int | None, Element]]]]:
    """Yield the rows by number, with their cells by the columns that these state.

    A file need not contain the empty cells that have notes.
    """
    listed: dict[int, tuple[Element, list[Element]]] = {}
    number = 0
    for row in find_all(root, "row"):
        number = to_number(row.get("r"), number + 1)
        listed.setdefault(number, (row, []))[1].extend(row.findall("c"))
    empty = notes.keys() - {cell.get("r") for _, cells in listed.values() for cell in cells}
    for reference in sorted(empty):
        rows, _ = _read_range(reference)
        if rows:
            listed.setdefault(rows.start, (Element("row"), []))[1].append(Element("c", r=reference))
    for number, (row, cells) in sorted(listed.items()):
        ranges = (_read_range(cell.get("r", ""))[1] for cell in cells)
        columns = (stated.start if stated else None for stated in ranges)
        yield number, row, list(zip(columns, cells, strict=True))


def _list_hidden_columns(root: Element) -> Iterator[int]:
    for column in find_children(root.find("cols"), "col"):
        if _is_hidden(column):
            first, last = to_number(column.get("min"), 1), to_number(column.get("max"))
            yield from range(first - 1, min(last, _LAST_COLUMN))


def _list_ranges(elements: Iterable[Element]) -> Iterator[CellRange]:
    return (_read_range(element.get("ref", "")) for element in elements)


def _read_range(reference: str) -> CellRange:
    """Return the rows and columns of a range such as `A1:B7` or of a cell; empty for other text."""
    match = _REFERENCE.match(reference)
    if match is None:
        return range(0), range(0)
    left, top, right, bottom = match.groups()
    rows = range(int(top), int(bottom or top) + 1)
    return rows, range(_read_column(left), _read_column(right or left) + 1)


def _read_column(letters: str) -> int:
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - ord("A") + 1
    return column - 1
