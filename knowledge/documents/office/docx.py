"""Reads Word documents: headings, numbered clauses, lists, tables, code and footnotes.

Proposed insertions are text and proposed deletions are not; hidden runs, fields' instructions and
tables of contents are left out. The parts are read without a library for Word files, because those
that are kept leave out insertions and the numbers that Word counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from knowledge.documents.anchors import Anchors
from knowledge.documents.office.docx_styles import ParagraphStyle, Styles
from knowledge.documents.office.docx_text import Paragraph, read_paragraph, walk_body
from knowledge.documents.office.numbering import Numbering
from knowledge.documents.office.properties import read_properties
from knowledge.documents.office.zipped_xml import (
    ZippedXml,
    find_all,
    find_child,
    find_children,
    get_attribute,
    get_value,
    local_name,
)
from knowledge.documents.page import DEEPEST_INDENT, Block, BlockKind, Page, first_heading
from knowledge.documents.tables import Cell, write_table

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_EXPECTED = "a Word document"
_LONGEST_BOLD_HEADING = 80
_WRAPPERS = frozenset({"sdt", "sdtContent", "ins", "moveTo", "customXml"})
_ENDS_OF_SENTENCES = (".", ",", ";", ":", "!", "?")


def read(data: bytes, source: str) -> Page:
    """Return the page; its title is its first heading, else what its properties state."""
    archive = ZippedXml(data, _EXPECTED)
    main = archive.find_related("", "officeDocument") or "word/document.xml"
    body = find_child(archive.parse(main), "body")
    writer = _DocxWriter(
        Styles(_parse_related(archive, main, "styles")),
        Numbering(_parse_related(archive, main, "numbering")),
        _read_notes(archive, main),
    )
    blocks = tuple(writer.write(body))
    stated = read_properties(archive)
    return Page(
        source,
        first_heading(blocks) or stated.title,
        blocks,
        description=stated.description,
        keywords=stated.keywords,
        warnings=writer.warnings(),
    )


def _parse_related(archive: ZippedXml, main: str, kind: str) -> "Element | None":
    name = archive.find_related(main, kind)
    return None if name is None else archive.parse(name)


def _read_notes(archive: ZippedXml, main: str) -> dict[str, str]:
    """Return the footnotes and endnotes by their kind and id."""
    notes: dict[str, str] = {}
    for kind in ("footnote", "endnote"):
        for note in find_children(_parse_related(archive, main, f"{kind}s"), kind):
            if get_attribute(note, "type") in (None, "normal"):
                texts = (read_paragraph(found).text for found in find_all(note, "p"))
                notes[f"{kind} {get_attribute(note, 'id')}"] = " ".join(filter(None, texts))
    return notes


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a paragraph stands: its style, and its label in a list."""

    style: ParagraphStyle
    label: str | None
    list_level: int


class _DocxWriter:
    """Writes the blocks of a body; knows the headings above and the lines of code so far."""

    def __init__(self, styles: Styles, numbering: Numbering, notes: dict[str, str]) -> None:
        self._styles = styles
        self._numbering = numbering
        self._notes = notes
        self._anchors = Anchors()
        self._code: list[str] = []
        self._level = 0
        self._deleted = 0
        self._hidden = 0

    def write(self, body: "Element | None") -> Iterator[Block]:
        for element in walk_body(body):
            if local_name(element.tag) == "tbl":
                yield from self._end_code()
                yield from write_table(list(self._rows(element)))
            else:
                yield from self._paragraph(element)
        yield from self._end_code()

    def warnings(self) -> tuple[str, ...]:
        """Return notes on text that was left out."""
        counts = (
            (self._deleted, "passages that are marked as deleted were left out"),
            (self._hidden, "passages that are formatted as hidden were left out"),
        )
        return tuple(f"{number} {what}" for number, what in counts if number)

    def _paragraph(self, element: "Element") -> Iterator[Block]:
        paragraph = self._read(element)
        place = self._place(element, paragraph)
        if place.style.is_contents:
            return
        if place.style.is_code or (paragraph.is_code and not place.style.level):
            self._code.append(paragraph.raw)
            return
        yield from self._end_code()
        if paragraph.text:
            yield self._block(paragraph, place)
        for note in paragraph.notes:
            if text := self._notes.get(note):
                yield Block(BlockKind.TEXT, text)

    def _read(self, element: "Element") -> Paragraph:
        paragraph = read_paragraph(element)
        self._deleted += paragraph.deleted
        self._hidden += paragraph.hidden
        return paragraph

    def _place(self, element: "Element", paragraph: Paragraph) -> _Place:
        properties = find_child(element, "pPr")
        style = self._styles.find(get_value(properties, "pStyle") or "")
        outline = get_value(properties, "outlineLvl")
        if outline is not None and outline.isdecimal() and int(outline) < 9:
            style = ParagraphStyle(min(int(outline) + 1, 6), style.list_id, style.list_level)
        list_id = get_value(properties, "numPr", "numId") or style.list_id
        stated = get_value(properties, "numPr", "ilvl")
        level = int(stated) if stated and stated.isdecimal() else style.list_level
        label = self._numbering.count(list_id, level) if paragraph.text and list_id else None
        return _Place(style, label, level)

    def _block(self, paragraph: Paragraph, place: _Place) -> Block:
        text = paragraph.text
        level = place.style.level
        if not level and _looks_like_heading(paragraph, place):
            level = min(self._level + 1, 6)
        elif level:
            self._level = level
        if level:
            numbered = place.label and place.label != "-"
            text = f"{place.label} {text}" if numbered else text
            return Block(BlockKind.HEADING, text, level, self._anchors.take(text))
        if place.label is not None:
            indent = "  " * min(place.list_level, DEEPEST_INDENT)
            return Block(BlockKind.ITEM, f"{indent}{place.label} {text}")
        return Block(BlockKind.TEXT, text)

    def _end_code(self) -> Iterator[Block]:
        lines, self._code = self._code, []
        text = "\n".join(lines).strip("\n")
        if text.strip():
            fence = "````" if "```" in text else "```"
            yield Block(BlockKind.CODE, f"{fence}\n{text}\n{fence}")

    def _rows(self, table: "Element") -> Iterator[Sequence[Cell]]:
        """Yield the rows of a table; a cell that goes on from the row above repeats its text."""
        above: dict[int, str] = {}
        for row in _table_rows(table):
            properties = find_child(row, "trPr")
            if find_child(properties, "del") is not None:
                self._deleted += 1
                continue
            is_header = find_child(properties, "tblHeader") is not None
            cells: list[Cell] = []
            column = 0
            for element in _row_cells(row):
                span = get_value(element, "tcPr", "gridSpan") or "1"
                columns = int(span) if span.isdecimal() and len(span) < 4 else 1
                merge = find_child(element, "tcPr", "vMerge")
                goes_on = merge is not None and get_attribute(merge, "val") != "restart"
                text = above.get(column, "") if goes_on else self._cell(element)
                above[column] = text
                cells.append(Cell(text, max(columns, 1), is_header=is_header))
                column += max(columns, 1)
            yield cells

    def _cell(self, cell: "Element") -> str:
        texts = (self._read(paragraph).text for paragraph in walk_body(cell, inside_tables=True))
        return " ".join(text for text in texts if text)


def _table_rows(table: "Element") -> Iterator["Element"]:
    return (found for found in _unwrap(table) if local_name(found.tag) == "tr")


def _row_cells(row: "Element") -> Iterator["Element"]:
    """Yield the cells of a row, also those in controls and proposed insertions."""
    return (found for found in _unwrap(row) if local_name(found.tag) == "tc")


def _unwrap(parent: "Element") -> Iterator["Element"]:
    for child in parent:
        name = local_name(child.tag)
        if name in _WRAPPERS:
            yield from _unwrap(child)
        else:
            yield child


def _looks_like_heading(paragraph: Paragraph, place: _Place) -> bool:
    """Return whether a line is a heading that somebody made by hand: short and bold throughout."""
    text = paragraph.text
    return (
        paragraph.is_bold
        and len(text) <= _LONGEST_BOLD_HEADING
        and place.label != "-"
        and not text.endswith(_ENDS_OF_SENTENCES)
        and any(character.isalpha() for character in text)
    )
