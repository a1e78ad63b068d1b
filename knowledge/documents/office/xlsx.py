"""Reads Excel workbooks: each visible sheet is a section with its rows below the header.

Values are those last computed by Excel, formatted as displayed, with the cell notes. Hidden sheets,
rows and columns are left out and counted; rows hidden only by a filter are read.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.notation import Script, Span, join_spans
from knowledge.documents.office.drawings import read_drawing_text, read_graphics
from knowledge.documents.office.number_format import find_format, format_number, format_text
from knowledge.documents.office.zipped_xml import (
    ZippedXml,
    count_macros,
    find_all,
    find_child,
    find_children,
    find_drawn,
    get_attribute,
    get_value,
    is_on,
    local_name,
    read_core_properties,
    to_number,
)
from knowledge.documents.page import Block, BlockKind, LeftOutCounts, Page
from knowledge.documents.readers import read_inner_file
from knowledge.documents.tables import (
    MOST_COLUMNS,
    TOO_MANY_COLUMNS,
    SheetRow,
    fill_merged,
    write_sheet,
)

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_EXPECTED = "an Excel workbook"
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})\Z")
_TRUE = frozenset({"1", "true"})
_SCRIPTS = {"superscript": Script.RAISED, "subscript": Script.LOWERED}
_PLAIN = Span("")
_HIDDEN = "hidden in the workbook"


class _Values:
    """The shared strings and styles to which cells refer; counts what is left out."""

    def __init__(self, archive: ZippedXml, main: str, workbook: "Element") -> None:
        self.left_out = LeftOutCounts()
        shared = archive.find_related(main, "sharedStrings")
        self._texts = [] if shared is None else [_text(item) for item in archive.parse(shared)]
        styles = archive.find_related(main, "styles")
        self._styles = [] if styles is None else _read_styles(archive.parse(styles))
        properties = find_child(workbook, "workbookPr")
        self._since_1904 = properties is not None and properties.get("date1904") in _TRUE

    def read(self, cell: "Element") -> str:
        """Return the visible text of a cell."""
        at = to_number(cell.get("s"))
        cell_style = self._styles[at] if at < len(self._styles) else _Style()
        stated = self._read_stated(cell)
        if cell.get("t", "n") == "n":
            shown = format_number(stated, cell_style.format, since_1904=self._since_1904)
        else:
            shown = format_text(stated, cell_style.format)
        if stated and not shown.strip():
            self.left_out.add("value", "its number format hides it")
        return join_spans([replace(cell_style.appearance, text=shown)])

    def _read_stated(self, cell: "Element") -> str:
        """Return the stored value of a cell: a number unchanged, other values as text."""
        kind = cell.get("t", "n")
        if kind == "inlineStr":
            return _text(find_child(cell, "is"))
        value = find_child(cell, "v")
        stated = (value.text or "") if value is not None else ""
        if not stated and find_child(cell, "f") is not None and kind != "str":
            self.left_out.add("formula", "the file stores no result of it: save it in Excel")
        if kind == "s":
            number = to_number(stated, -1)
            return self._texts[number] if 0 <= number < len(self._texts) else ""
        if kind == "b":
            return "TRUE" if stated == "1" else "FALSE"
        return stated


@dataclass(frozen=True, slots=True)
class _Style:
    """The style of cells: number format and typeface."""

    format: str = ""
    appearance: Span = _PLAIN


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
    left_out = values.left_out
    for sheet in find_children(find_child(workbook, "sheets"), "sheet"):
        name = " ".join((sheet.get("name") or "Sheet").split())
        relation = relations.get(get_attribute(sheet, "id") or "")
        if relation is None or relation.kind not in ("worksheet", "chartsheet"):
            continue
        if sheet.get("state", "visible") != "visible":
            left_out.add("hidden sheet", _HIDDEN, name=name)
            continue
        anchor = f"sheet={quote(name)}"
        notes = _read_notes(archive, relation.target)
        rows = _read_sheet(archive.parse(relation.target), values, notes)
        below = (
            *write_sheet(rows, f"{anchor}&"),
            *_write_drawings(archive, relation.target, left_out),
        )
        if below:
            blocks += (Block(BlockKind.HEADING, name, 2, anchor), *below)
    stated = read_core_properties(archive)
    count_macros(archive, left_out)
    return Page(
        source,
        stated.title,
        tuple(blocks),
        description=stated.description,
        keywords=stated.keywords,
        left_out=left_out.list(),
    )


def _read_appearance(properties: "Element | None") -> Span:
    """Return a span without text in the typeface of a run or a style."""
    script = _SCRIPTS.get(get_value(properties, "vertAlign") or "", Script.LINE)
    return Span("", script, is_on(properties, "strike"))


def _text(item: "Element | None") -> str:
    """Return the text of an item without its phonetic annotations."""
    spans: list[Span] = []
    for child in item if item is not None else ():
        name = local_name(child.tag)
        if name == "t":
            spans.append(Span(child.text or ""))
        elif name == "r":
            appearance = _read_appearance(find_child(child, "rPr"))
            spans += (
                replace(appearance, text=text.text or "") for text in find_children(child, "t")
            )
    return " ".join(join_spans(spans).split())


def _read_styles(styles: "Element") -> list[_Style]:
    custom = {
        int(declared.get("numFmtId", "0")): declared.get("formatCode", "")
        for declared in find_all(styles, "numFmt")
        if declared.get("numFmtId", "").isdecimal()
    }
    fonts = [_read_appearance(font) for font in find_children(find_child(styles, "fonts"), "font")]
    return [
        _Style(
            find_format(to_number(declared.get("numFmtId")), custom),
            fonts[at] if (at := to_number(declared.get("fontId"))) < len(fonts) else _PLAIN,
        )
        for declared in find_children(find_child(styles, "cellXfs"), "xf")
    ]


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
        root = archive.parse(relation.target)
        for note in find_all(root, "comment"):
            threads.setdefault(note.get("ref", ""), []).append(_text(find_child(note, "text")))
        for note in find_all(root, "threadedComment"):
            text = find_child(note, "text")
            shown = " ".join(((text.text or "") if text is not None else "").split())
            threads.setdefault(note.get("ref", ""), []).append(shown)
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
            for shape in find_all(drawing, "txBody"):
                texts = (read_drawing_text(child) for child in find_children(shape, "p"))
                yield from (Block(BlockKind.TEXT, text) for text in texts if text)
            yield from read_graphics(drawing, archive, relation.target)
            pictures = tuple(find_drawn(drawing, archive, relation.target))
            if pictures:
                yield Block(BlockKind.TEXT, "", pictures=pictures)


def _read_sheet(root: "Element", values: _Values, notes: Mapping[str, str]) -> list[SheetRow]:
    rows: list[SheetRow] = []
    hidden_columns = _hidden_columns(root)
    hidden = 0
    values.left_out.add("hidden column", _HIDDEN, len(hidden_columns))
    filtered = _find_filtered(root)
    number = 0
    for row in find_children(find_child(root, "sheetData"), "row"):
        number = to_number(row.get("r"), number + 1)
        if row.get("hidden") in _TRUE and number not in filtered:
            values.left_out.add("hidden row", _HIDDEN)
            hidden += 1
            continue
        cells = {
            column: text
            for column, text in _read_row(row, values, notes)
            if column not in hidden_columns and text
        }
        if cells:
            rows.append(SheetRow(number, cells, hidden))
    _fill_merged(root, rows)
    return rows


def _read_row(
    row: "Element", values: _Values, notes: Mapping[str, str]
) -> Iterator[tuple[int, str]]:
    column = -1
    for cell in find_children(row, "c"):
        reference = cell.get("r", "")
        place = _place(reference)
        column = place[1] if place is not None else column + 1
        if column < MOST_COLUMNS:
            note = notes.get(reference, "")
            text = values.read(cell)
            yield column, f"{text} [{note}]".strip() if note else text
        else:
            values.left_out.add("cell", TOO_MANY_COLUMNS)


def _find_filtered(root: "Element") -> range:
    """Return the rows of an active filter; rows hidden by it are still read."""
    element = find_child(root, "autoFilter")
    if element is None or find_child(element, "filterColumn") is None:
        return range(0)
    first, _, last = (element.get("ref") or "").partition(":")
    start, end = _place(first), _place(last)
    return range(0) if start is None or end is None else range(start[0], end[0] + 1)


def _hidden_columns(root: "Element") -> frozenset[int]:
    hidden: set[int] = set()
    for column in find_children(find_child(root, "cols"), "col"):
        first, last = column.get("min", ""), column.get("max", "")
        if column.get("hidden") in _TRUE and first.isdecimal() and last.isdecimal():
            hidden.update(range(int(first) - 1, min(int(last), MOST_COLUMNS)))
    return frozenset(hidden)


def _fill_merged(root: "Element", rows: list[SheetRow]) -> None:
    """Copy the text of a merged cell to every row and column that it spans."""
    by_number = {row.number: row for row in rows}
    for merged in find_children(find_child(root, "mergeCells"), "mergeCell"):
        first, _, last = (merged.get("ref") or "").partition(":")
        start, end = _place(first), _place(last)
        if start is not None and end is not None:
            fill_merged(by_number, range(start[0], end[0] + 1), range(start[1], end[1] + 1))


def _place(reference: str) -> tuple[int, int] | None:
    """Return the 1-based row and 0-based column of a reference such as `B7`."""
    match = _REFERENCE.match(reference)
    if match is None:
        return None
    column = 0
    for letter in match[1]:
        column = column * 26 + ord(letter) - ord("A") + 1
    return int(match[2]), column - 1
