"""Reads files of LibreOffice and other programs in the OpenDocument format: text, sheets, slides.

Tracked deletions, comments, tables of contents, and hidden text, sheets, rows and slides are left
out. Cell values are written as displayed, because the file contains that form.
"""

import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from string import ascii_uppercase
from typing import TypeAlias
from xml.etree.ElementTree import Element

from knowledge.documents.decoding import clean_text
from knowledge.documents.errors import SkippedError, WrongFormatError
from knowledge.documents.notation import join_spans
from knowledge.documents.office.opendocument_styles import PLAIN, ColouredSpan
from knowledge.documents.office.opendocument_text import (
    DRAWN,
    HIDDEN,
    MOST_REPEATED,
    WHITE,
    BodyReader,
    list_rows,
)
from knowledge.documents.office.shapes import NOTES, Box, find_backgrounds, order_shapes
from knowledge.documents.office.workbook import NO_RESULT, Sheet, Workbook, find_address
from knowledge.documents.office.zipped_xml import (
    BACKGROUND,
    LOCKED,
    ZippedXml,
    count,
    count_field_in_header,
    find_all,
    find_children,
    make_page,
    read_properties,
    to_length,
    to_number,
    write_page_headers,
)
from knowledge.documents.page import Block, BlockKind, Page, first_heading
from knowledge.documents.tables import CONDITIONAL, MOST_COLUMNS

_EXPECTED = "an OpenDocument file"
_BODIES = frozenset({"spreadsheet", "presentation", "text", "drawing", "chart"})
_MOST_COPIES = 200_000
"""Maximum number of cells of repeated rows."""
_VALUES = frozenset({"value-type", "formula"})
_StyledCell: TypeAlias = tuple[Element, str | None]
"""A cell with the name of its style."""
_FIELDS_OF_PAGES = frozenset(
    {"sheet-name", "page-number", "page-count", "date", "time", "title", "file-name"}
)
_LINES = frozenset({"line", "polyline", "connector"})
_SHOWN_BY_SLIDES: dict[str | None, tuple[str, tuple[str | None, ...]]] = {
    None: ("background-objects-visible", ("true", None)),
    **{kind: (f"display-{kind}", ("true",)) for kind in ("footer", "date-time")},
}
"""What a slide shows of its master: by kind of shape, an attribute of the slide and its values."""
_NO_MASTER = Element("master-page")
_NOT_ON_SCREEN = ("none", "printer")
_FURNITURE = frozenset({"page-number", "date-time", "header", "footer"})


class _SheetReader(BodyReader):
    """Reads sheets one after the other."""

    _copies_left = _MOST_COPIES

    def read(self, body: Element) -> Iterator[Block]:
        """Yield the blocks of the visible sheets."""
        headers = list(_list_headers(body))
        workbook = Workbook(left_out=self.left_out, links=self.links)
        is_white = not any(
            part.get("background-color", WHITE) not in (WHITE, "transparent")
            for root in self._parts
            for part in root.iter("table-cell-properties")
        )
        for table in body.findall("table"):
            is_hidden = self._styles.hides("table", table.get("style-name"))
            sheet = workbook.open_sheet(table.get("name"), is_hidden=is_hidden)
            if sheet is None:
                continue
            self._base = ColouredSpan(background=self._find_colour(table, sheet.name))
            sheet.header_rows = {row for name, row in headers if name == table.get("name")}
            self._drawn += table.findall("shapes/*")
            self._read_rows(table, sheet)
            self._base = self._base if is_white else PLAIN
            after = tuple(self._show_drawings())
            yield from sheet.write(self._printed_headers(table), after)

    def _printed_headers(self, table: Element) -> Iterator[Block]:
        """Yield the printed headers of a sheet, once; those with fields are counted."""
        name = self._styles.find("table", table.get("style-name"), "master-page-name")
        master = self._masters.pop(name, None)
        for line in list(find_all(master, "p")):
            parts = list(line.iter())
            if any(part.tag in _FIELDS_OF_PAGES for part in parts):
                literals = (line.text or "", *(part.tail or "" for part in parts[1:]))
                count_field_in_header(" ".join(literals), self.left_out)
                line.clear()
        return self._page_headers(() if master is None else [master])

    def _read_rows(self, table: Element, sheet: Sheet) -> None:
        """Add the visible rows of a table to its sheet."""
        columns = _list_columns(table)
        hidden = _list_hidden(table)
        sheet.hide_columns(at for at, column in columns.items() if column in hidden)
        number = 1
        for row, _ in list_rows(table):
            times = count(row, "number-rows-repeated")
            if row in hidden:
                sheet.hide_rows(times)
            elif cells := list(_list_cells(row, columns)):
                # The cells of repeated rows and columns are read once.
                read = cache(self._read_cell)
                shown = min(times, MOST_REPEATED, 1 + self._copies_left // len(cells))
                self._copies_left -= (shown - 1) * len(cells)
                self.left_out.add("row", "further repetitions are not shown", times - shown)
                for at in range(number, number + shown):
                    sheet.add_row(at, cells, read)
                    _add_properties(sheet, at, cells)
            number += times

    def _read_cell(self, styled: _StyledCell) -> str:
        """Return the text of a cell, or its value if the file does not contain its text."""
        cell, style_name = styled
        style = self._styles.find_span("table-cell", style_name, self._base)
        if self._styles.has_conditions(style_name):
            style = replace(style, background="")
        text = self._cell(cell, style)
        if text or any("".join(line.itertext()).strip() for line in cell.iter("p")):
            return text
        kind = cell.get("value-type")
        if kind is None and cell.get("formula") is not None:
            self.left_out.add(*NO_RESULT)
        stated = cell.get(f"{kind}-value") or cell.get("value") or ""
        value = replace(style, text=" ".join(clean_text(stated).split()))
        if value.text and self._styles.hides_value(style_name):
            self.left_out.add("value", "hidden by the number format")
            return ""
        if value.is_invisible():
            self.left_out.add("value", BACKGROUND)
            return ""
        return value.text.upper() if kind == "boolean" else join_spans([value])

    def _find_colour(self, table: Element, name: str) -> str:
        """Return the colour behind the cells of a sheet, empty if conditions, which are counted,
        may change it.
        """
        conditions = list(find_children(table.find("conditional-formats"), "conditional-format"))
        for condition in conditions:
            for rule in condition.iter():
                if rule.get("apply-style-name") or rule.get("show-value") == "false":
                    place = condition.get("target-range-address", name)
                    self.left_out.add(*CONDITIONAL, name=place)
        return "" if conditions else WHITE


class _SlideReader(BodyReader):
    """Reads slides one after the other."""

    def read(self, body: Element) -> Iterator[Block]:
        """Yield the blocks of the visible slides, below the lines that they repeat."""
        declared = {(part.tag, part.get("name")): part.text or "" for part in body}
        self._signs["page-number"] = ""
        self._shared = set[tuple[str | None, str | None]]()
        self._filled_by_masters = dict[Element, list[Box | None]]()
        self._readers["g"] = self._group
        repeated: list[str] = []
        blocks: list[Block] = []
        for number, slide in enumerate(body.findall("page"), start=1):
            if self._styles.hides("drawing-page", slide.get("style-name")):
                self.left_out.add("hidden slide", HIDDEN, name=str(number))
                continue
            repeated += self._read_shared(slide, declared)
            blocks += self._slide(slide, number)
        yield from (*write_page_headers(repeated), *blocks)

    def _slide(self, slide: Element, number: int) -> Iterator[Block]:
        self._name = f"slide {number}"
        shown = [child for child in slide if child.tag != "notes"]
        bases = self._find_bases(slide, shown)
        titles: list[str] = []
        below: list[Block] = []
        for shape in order_shapes(shown, _find_box, self.left_out, self._name):
            self._base = bases.get(shape, PLAIN)
            if shape.get("class") == "title":
                titles += map(self._line, shape.iter("p"))
            else:
                below += self._block(shape)
        self._base = PLAIN
        inner = chain.from_iterable(slide.findall("notes"))
        own = (shape for shape in inner if shape.get("class") not in _FURNITURE)
        notes = [block for shape in own for block in self._block(shape)]
        below += [Block(BlockKind.TEXT, NOTES), *notes] if notes else ()
        title = " ".join(filter(None, titles))
        if title or below:
            yield Block(BlockKind.HEADING, title or f"Slide {number}", 2, f"slide={number}")
            yield from below

    def _group(self, group: Element) -> Iterator[Block]:
        for shape in order_shapes(group, _find_box, self.left_out, self._name):
            yield from self._block(shape)

    def _read_shared(
        self, slide: Element, declared: Mapping[tuple[str, str | None], str]
    ) -> Iterator[str]:
        """Yield the lines that a slide shows of its master, each once, and its footer."""
        self._base = PLAIN
        master = slide.get("master-page-name")
        for kind, (name, shown) in _SHOWN_BY_SLIDES.items():
            if self._styles.find("drawing-page", slide.get("style-name"), name) not in shown:
                continue
            yield declared.get((f"{kind}-decl", slide.get(f"use-{kind}-name")), "")
            is_new = (master, kind) not in self._shared
            self._shared.add((master, kind))
            for shape in self._masters.get(master, ()) if is_new else ():
                is_shown = shape.tag in DRAWN and shape.get("display") not in _NOT_ON_SCREEN
                if is_shown and shape.get("class") == kind:
                    yield from map(self._line, shape.iter("p"))

    def _find_bases(self, slide: Element, shapes: Sequence[Element]) -> dict[Element, ColouredSpan]:
        """Return the colour of the text of each shape, and the colour behind it."""
        master = self._masters.get(slide.get("master-page-name"), _NO_MASTER)
        page: str | None = WHITE
        for part in (slide, master):
            style = part.get("style-name")
            # A slide without a fill has that of its master.
            if self._styles.find("drawing-page", style, "fill") not in (None, "none"):
                page = self._styles.find_fill(style, "drawing-page")
                break
        if master not in self._filled_by_masters:
            own = (shape for shape in master if shape.get("class") is None)
            self._filled_by_masters[master] = [
                _find_box(shape) for shape in own if self._find_fill(shape) != ""
            ]
        places = ((self._find_fill(shape), _find_box(shape)) for shape in shapes)
        backgrounds = find_backgrounds(places, page, self._filled_by_masters[master])
        return {
            shape: ColouredSpan(
                colour=self._styles.find_colour("graphic", shape.get("style-name"), "color"),
                background=background or "",
            )
            for shape, background in zip(shapes, backgrounds, strict=True)
        }

    def _find_fill(self, shape: Element) -> str | None:
        """Return the fill of a shape: empty for none, None if it is not known."""
        if shape.tag not in DRAWN or shape.tag in _LINES:
            return ""
        if shape.tag == "g" or (shape.tag == "frame" and shape.find("text-box") is None):
            return None
        return self._styles.find_fill(shape.get("style-name"), "graphic", "presentation")


def read(data: bytes, source: str) -> Page:
    """Return the page; sheets and slides are sections."""
    is_flat = data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    archive = ZippedXml(_pack(data) if is_flat else data, _EXPECTED)
    manifest = "META-INF/manifest.xml"
    if manifest in archive and b"encryption-data" in archive.read(manifest):
        raise SkippedError(LOCKED)
    root = archive.parse("content.xml")
    kind, reader, blocks = _read_document(archive, root, "")
    meta = archive.parse("meta.xml") if "meta.xml" in archive else root
    stated = read_properties(meta.find("meta"))
    title = "" if kind == "spreadsheet" else first_heading(blocks)
    title = title or stated.title
    return make_page(source, archive, stated, title, blocks, reader.links, reader.left_out)


def _read_document(
    archive: ZippedXml, root: Element, folder: str
) -> tuple[str, BodyReader, tuple[Block, ...]]:
    """Return the kind of a document, such as `text`, its reader, and its blocks."""
    body = next((child for child in root.findall("body/*") if child.tag in _BODIES), None)
    if body is None:
        raise WrongFormatError(f"expected {_EXPECTED} with text, sheets or slides, found another")

    def read_object(root: Element, folder: str) -> Iterator[Block]:
        _, inner, blocks = _read_document(archive, root, folder)
        reader.left_out.take(inner.left_out.list())
        yield from blocks

    readers = {"spreadsheet": _SheetReader, "presentation": _SlideReader}
    reader = readers.get(body.tag, BodyReader)(archive, root, folder, read_object)
    deleted = sum(1 for _ in body.iter("deletion"))
    reader.left_out.add("deleted passage", "marked as deleted", deleted)
    return body.tag, reader, tuple(reader.read(body))


def _pack(data: bytes) -> bytes:
    """Return a flat file, which is one XML document, as an archive of that part."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("content.xml", data)
    return packed.getvalue()


def _list_headers(body: Element) -> Iterator[tuple[str, int]]:
    """Yield the sheet and the 1-based row of each header of a range, such as that of a filter."""
    for declared in body.iter("database-range"):
        first = declared.get("target-range-address", "").partition(":")[0]
        sheet, _, cell = first.rpartition(".")
        if declared.get("contains-header") != "false":
            name = sheet.removeprefix("$").removeprefix("'").removesuffix("'")
            yield name.replace("''", "'"), to_number(cell.lstrip("$" + ascii_uppercase))


def _list_columns(table: Element) -> dict[int, Element]:
    """Return the definitions of the columns of a table by their 0-based index."""
    columns: dict[int, Element] = {}
    at = 0
    for column in table.iter("table-column"):
        times = count(column, "number-columns-repeated")
        columns.update(dict.fromkeys(range(at, min(at + times, MOST_COLUMNS)), column))
        at += times
    return columns


def _list_hidden(table: Element) -> set[Element]:
    """Return the hidden rows and columns; one hidden only by a filter or in a group is valid."""
    parts = [part for part in table.iter() if part.get("visibility") == "collapse"]
    groups = (*table.findall("table-row-group"), *table.findall("table-column-group"))
    return set(parts).difference(part for group in groups for part in group.iter())


def _list_cells(row: Element, columns: Mapping[int, Element]) -> Iterator[tuple[int, _StyledCell]]:
    """Yield the columns of the cells of a row that are not empty, with their cells."""
    column = 0
    for cell in row:
        times = count(cell, "number-columns-repeated")
        if cell.tag == "table-cell" and (len(cell) or not _VALUES.isdisjoint(cell.keys())):
            style = (
                cell.get("style-name")
                or row.get("default-cell-style-name")
                or columns.get(column, row).get("default-cell-style-name")
            )
            for at in range(column, column + min(times, MOST_COLUMNS + 1)):
                yield at, (cell, style)
        column += times


def _add_properties(sheet: Sheet, number: int, cells: Iterable[tuple[int, _StyledCell]]) -> None:
    """Note the links and the merged ranges of the cells in a row."""
    for column, (cell, _) in cells:
        if (formula := cell.get("formula")) is not None:
            sheet.links[number, column] = find_address(formula)
        down, across = (count(cell, f"number-{name}-spanned") for name in ("rows", "columns"))
        if down > 1 or across > 1:
            sheet.merged.append((range(number, number + down), range(column, column + across)))


def _find_box(shape: Element) -> Box | None:
    """Return the box of a shape, or None if it does not state one."""
    lengths = [shape.get(name) for name in ("x", "y", "width", "height")]
    return None if None in lengths else Box(*map(to_length, lengths))
