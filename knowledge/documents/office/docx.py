"""Reads Word documents: headings, numbered clauses, lists, tables, code and footnotes.

Proposed insertions are read and proposed deletions are not; hidden runs, field instructions and
tables of contents are left out. No Word library is used, because the maintained ones omit
insertions and the numbers that Word generates.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from xml.etree.ElementTree import Element

from knowledge.documents.notation import keep_lines
from knowledge.documents.office.drawings import read_graphics
from knowledge.documents.office.list_numbering import Numbering, write_list_number
from knowledge.documents.office.word_text import (
    DELETED_REASON,
    HIDDEN,
    NOTES,
    Paragraph,
    Styles,
    TextReader,
    add_tab_stops,
    has_own_mark,
    name_note,
    read_outline,
    walk_shown,
)
from knowledge.documents.office.zipped_xml import (
    ZippedXml,
    end_code,
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
from knowledge.documents.page import (
    Anchors,
    Block,
    BlockKind,
    LeftOutCounts,
    Page,
    Picture,
    first_heading,
    make_item,
)
from knowledge.documents.tabbed_lines import TabbedLine, are_rows, write_tabbed_lines
from knowledge.documents.tables import Cell, unfold_tables, write_table

_EXPECTED = "a Word document"
_LONGEST_BOLD_HEADING = 80
_DRAWN = frozenset({"background", "anchor", "pict", "txbxContent"})
_ENDS_OF_SENTENCES = (".", ",", ";", ":", "!", "?")
_CONTENTS = "the headings themselves are read"


class _DocxWriter:
    """Writes the blocks of a body; keeps track of its headings and of open lines of code."""

    def __init__(self, archive: ZippedXml, main: str, left_out: LeftOutCounts) -> None:
        def parse(kind: str) -> Element | None:
            name = archive.find_related(main, kind)
            return None if name is None else archive.parse(name)

        self.body = archive.parse(main)
        self.styles = Styles(parse("styles"))
        self.reader = TextReader(self.styles, left_out, _mark_notes(self.body, parse("settings")))
        comments = sum(1 for _ in find_all(parse("comments"), "comment"))
        left_out.add("comment", "comments of reviewers are not text of the document", comments)
        self._archive = archive
        self._main = main
        self._relations = archive.relationships(main)
        self._left_out = left_out
        self._headers = [
            archive.parse(relation.target)
            for relation in self._relations.values()
            if relation.kind in ("header", "footer") and relation.target in archive
        ]
        self._numbering = Numbering(parse("numbering"), left_out)
        self._notes = {
            f"{kind} {note.get('id')}": note
            for kind in NOTES.values()
            for note in find_children(parse(f"{kind}s"), kind)
        }
        # White text elsewhere may lie on something dark.
        direct = walk_shown(self.body, {"p", "tbl"})
        self._on_white = set(() if self._has_backgrounds() else direct)
        for box in walk_shown(self.body, {"wsp"}):
            fill = find_child(box, "spPr", "solidFill", "srgbClr[@val='FFFFFF']")
            # An element inside of the colour changes it, such as its opacity.
            if fill is not None and not len(fill):
                self._on_white.update(box.findall("txbx/txbxContent/p"))
        self._open_notes: list[str] = []
        self._drawings: list[Element] = []
        self._pictures: tuple[Picture, ...] = ()
        self._anchors = Anchors()
        self._code: list[str] = []
        self._tabbed: list[TabbedLine] = []
        self._level = 0
        self._initial: list[str] = []

    def _has_backgrounds(self) -> bool:
        """Return whether the pages have a colour or drawings that text can lie on."""
        parts = (self.body, *self._headers)
        return any(element.tag in _DRAWN for part in parts for element in part.iter())

    def read_headers(self) -> Iterator[Block]:
        """Return the lines of page headers and footers, without duplicates."""
        return write_page_headers(
            self.reader.read(paragraph).text
            for part in self._headers
            for paragraph in walk_body(part, inside_tables=True)
        )

    def write(self, body: Element) -> Iterator[Block]:
        """Yield the blocks of the body, or of a cell that frames other tables."""
        for element in walk_body(body):
            name = element.tag
            if name == "p":
                yield from self._paragraph(element)
                continue
            yield from self._end_lines()
            if name == "altChunk":
                yield from read_graphics(element, self._archive, self._main, self._left_out)
            elif (framed := _find_framed(element)) is not None:
                yield from self.write(framed)
            else:
                yield from self._table(element)
        yield from (*self._end_lines(), *self._show_drawings(), *self._show_pictures())

    def _table(self, element: Element) -> Iterator[Block]:
        yield from write_table(list(self._rows(element)))
        yield from (*self._show_pictures(), *self._show_drawings())

    def _show_drawings(self) -> Iterator[Block]:
        """Yield the drawings and the notes of the text since the last ones; keep its pictures."""
        drawings, self._drawings = self._drawings, []
        for drawing in drawings:
            # The paragraphs of a text box have their own drawings, and objects only a preview.
            if drawing.tag != "object" and next(drawing.iter("txbxContent"), None) is None:
                self._pictures += tuple(find_drawn(drawing, self._archive, self._main))
            yield from read_graphics(drawing, self._archive, self._main, self._left_out)
        names, self._open_notes = self._open_notes, []
        for name in names:
            lines = walk_body(self._notes.get(name), inside_tables=True)
            texts = [self.reader.read(line).text for line in lines]
            mark = self.reader.marks.get(name, "")
            if any(texts):
                yield Block(BlockKind.TEXT, " ".join(filter(None, (mark, *texts))))

    def _show_pictures(self, caption: str = "") -> Iterator[Block]:
        """Yield the preceding pictures, the last one with its caption."""
        pictures, self._pictures = self._pictures, ()
        if pictures and caption:
            pictures = (*pictures[:-1], replace(pictures[-1], caption=caption))
        if pictures:
            yield Block(BlockKind.TEXT, "", pictures=pictures)

    def _paragraph(self, element: Element) -> Iterator[Block]:
        paragraph = self._read(element)
        if paragraph.is_joined or _is_initial(element):
            self._initial.append(paragraph.spaced)
            return
        if paragraph.style.is_contents:
            self._left_out.add("contents line", _CONTENTS, bool(paragraph.text))
            return
        initial, self._initial = self._initial, []
        paragraph.spaced = "".join((*initial, paragraph.spaced))
        if paragraph.style.is_code or (paragraph.is_code and not paragraph.style.level):
            yield from self._end_tabbed()
            self._code.append(paragraph.raw)
            return
        if (rows := _list_tabbed(paragraph, element)) and are_rows(rows):
            yield from end_code(self._code)
            self._tabbed += rows
            return
        yield from self._end_lines()
        caption, own = "", tuple[Block, ...]()
        if paragraph.style.is_caption:
            # Its picture may be in the same paragraph.
            caption, own = paragraph.text, tuple(self._show_drawings())
        yield from self._show_pictures(caption)
        if paragraph.text:
            yield self._block(paragraph)
        yield from (*own, *self._show_drawings())

    def _read(self, element: Element) -> Paragraph:
        """Return a paragraph with its style and its number; its list counts it."""
        paragraph = self.reader.read(element, is_on_page=element in self._on_white)
        self._open_notes += paragraph.notes
        self._drawings += paragraph.drawings
        properties = element.find("pPr")
        style = self.styles.find(get_value(properties, "pStyle") or "")
        if outline := read_outline(properties):
            style = replace(style, level=outline, is_code=False)
        list_id = get_value(properties, "numPr", "numId") or style.list_id
        stated = get_value(properties, "numPr", "ilvl")
        level = int(stated) if stated and stated.isdecimal() else style.list_level
        if level is None:
            level = self._numbering.find_level(list_id, style.name) or 0
        paragraph.style, paragraph.list_level = style, level
        if paragraph.is_counted and list_id:
            paragraph.label = self._numbering.count(list_id, level)
        return paragraph

    def _block(self, paragraph: Paragraph) -> Block:
        text = paragraph.text
        level = paragraph.style.level
        if not level and _looks_like_heading(paragraph):
            level = min(self._level + 1, 6)
        elif level:
            self._level = level
        if level:
            numbered = paragraph.label and paragraph.label != "-"
            text = f"{paragraph.label} {text}" if numbered else text
            return Block(BlockKind.HEADING, text, level, self._anchors.take(text))
        if paragraph.label is not None:
            return make_item(paragraph.label, text, paragraph.list_level)
        return Block(BlockKind.TEXT, text)

    def _end_lines(self) -> Iterator[Block]:
        """Yield the open lines, and a text that no other paragraph continues."""
        yield from end_code(self._code)
        yield from self._end_tabbed()
        initial, self._initial = keep_lines("".join(self._initial)), []
        yield from (Block(BlockKind.TEXT, initial),) if initial else ()

    def _end_tabbed(self) -> Iterator[Block]:
        lines, self._tabbed = self._tabbed, []
        yield from write_tabbed_lines(lines, self._left_out)

    def _rows(self, table: Element) -> Iterator[Sequence[Cell]]:
        """Yield the rows of a table; a cell that continues the row above repeats its text.

        Tables inside cells are flattened.
        """
        above: dict[int, str] = {}
        for row in walk_shown(table, {"tr"}):
            properties = row.find("trPr")
            if self._leaves_out(row):
                _end_merged(row, above)
                continue
            skipped = to_number(get_value(properties, "gridBefore"))
            cells, inner = [Cell("", skipped)] if skipped else [], []
            for element in walk_shown(row, {"tc"}):
                if cells and _is_merged(element, "hMerge"):
                    cells[-1] = replace(cells[-1], columns=cells[-1].columns + 1)
                    continue
                cells.append(self._cell(element, above, sum(cell.columns for cell in cells)))
                tables = walk_shown(element, {"tbl"})
                inner.append([row for table in tables for row in self._rows(table)])
            inner = [[] for _ in range(len(cells) - len(inner))] + inner
            is_header = is_on(properties, "tblHeader")
            cells = [replace(cell, is_header=is_header) for cell in cells]
            yield from unfold_tables(cells, inner)

    def _cell(self, element: Element, above: dict[int, str], column: int) -> Cell:
        text = above.pop(column, None)
        if text is None or not _is_merged(element, "vMerge"):
            is_deleted = find_child(element, "tcPr", "cellDel") is not None
            self._left_out.add("deleted cell", DELETED_REASON, is_deleted)
            lines = () if is_deleted else walk_body(element)
            paragraphs = (line for line in lines if line.tag == "p")
            text = "\n".join(filter(None, map(self._cell_line, paragraphs)))
        if find_child(element, "tcPr", "vMerge") is not None:
            above[column] = text
        return Cell(text, _count_columns(element))

    def _leaves_out(self, row: Element) -> bool:
        """Return whether a row is deleted or hidden; count it."""
        properties = row.find("trPr")
        is_deleted = find_child(properties, "del") is not None
        is_hidden = not is_deleted and is_on(properties, "hidden")
        self._left_out.add("deleted row", DELETED_REASON, is_deleted)
        self._left_out.add("hidden row", HIDDEN, is_hidden)
        return is_deleted or is_hidden

    def _cell_line(self, element: Element) -> str:
        """Return the text of a paragraph of a cell, after its number."""
        paragraph = self._read(element)
        label = paragraph.label
        return f"{label or ''} {paragraph.text}".strip() if label != "-" else paragraph.text


def read(data: bytes, source: str) -> Page:
    """Return the page; its title is its first heading, or the one in its properties."""
    archive = ZippedXml(data, _EXPECTED)
    main = archive.find_related("", "officeDocument") or "word/document.xml"
    left_out = LeftOutCounts()
    writer = _DocxWriter(archive, main, left_out)
    blocks = (*writer.read_headers(), *writer.write(writer.body))
    stated = read_core_properties(archive)
    links = _list_web_links(writer.body, archive.web_links(main), writer.styles)
    title = first_heading(blocks) or stated.title
    return make_page(source, archive, stated, title, blocks, links, left_out)


def walk_body(parent: Element | None, *, inside_tables: bool = False) -> Iterator[Element]:
    """Yield the paragraphs and tables of a body or a cell in order, including those in content
    controls.

    Text boxes follow the paragraph to which they are anchored. With `inside_tables`, a table is
    replaced by its paragraphs. Files that are part of the body (`altChunk`) are yielded, too.
    """
    ends = {"p", "altChunk"} if inside_tables else {"p", "altChunk", "tbl"}
    for element in walk_shown(parent, ends):
        yield element
        if element.tag == "p":
            for box in walk_shown(element, {"txbxContent"}):
                yield from walk_body(box, inside_tables=inside_tables)


def _list_web_links(
    body: Element, addresses: Mapping[str, str], styles: "Styles"
) -> Iterator[tuple[str, str]]:
    """Yield the label and URL of each web link that is not deleted."""
    reader = TextReader(styles, LeftOutCounts(), {})
    for link in body.iter("hyperlink"):
        address = addresses.get(link.get("id", ""))
        label = " ".join(reader.read(link).text.split())
        if address and label and label != address:
            yield label, address


def _mark_notes(body: Element, settings: Element | None) -> dict[str, str]:
    """Return the marks of notes by kind and id; those that the author wrote are empty.

    If the numbers begin again on each page or in each section, the marks are asterisks.
    """
    marks: dict[str, str] = {}
    for name, kind in NOTES.items():
        properties = [*find_all(settings, f"{kind}Pr"), *body.iter(f"{kind}Pr")]
        stated = {part.tag: part.get("val") for own in reversed(properties) for part in own}
        style = stated.get("numFmt") or ("decimal" if kind == "footnote" else "lowerRoman")
        is_counted = (stated.get("numRestart") or "continuous") == "continuous"
        references = list(walk_shown(body, {name}))
        marks |= {name_note(reference): "" for reference in references if has_own_mark(reference)}
        counted = (reference for reference in references if not has_own_mark(reference))
        for number, reference in enumerate(counted, start=to_number(stated.get("numStart"), 1)):
            mark = write_list_number(number, style) if is_counted else "*"
            marks[name_note(reference)] = f"[{mark}]"
    return marks


def _is_merged(cell: Element, direction: str) -> bool:
    """Return whether a cell continues the one above it (`vMerge`) or before it (`hMerge`)."""
    merge = find_child(cell, "tcPr", direction)
    return merge is not None and merge.get("val") != "restart"


def _count_columns(cell: Element) -> int:
    return max(1, to_number(get_value(cell, "tcPr", "gridSpan")))


def _end_merged(row: Element, above: dict[int, str]) -> None:
    """Remove what the cells of the row above would repeat, unless it spans a row left out."""
    column = to_number(get_value(row, "trPr", "gridBefore"))
    for cell in walk_shown(row, {"tc"}):
        if not _is_merged(cell, "vMerge"):
            above[column] = ""
        column += _count_columns(cell)


def _find_framed(table: Element) -> Element | None:
    """Return the only cell of a table that merely frames other tables, or None."""
    cells = [cell for row in walk_shown(table, {"tr"}) for cell in walk_shown(row, {"tc"})]
    is_frame = len(cells) == 1 and next(cells[0].iter("tbl"), None) is not None
    return cells[0] if is_frame else None


def _list_tabbed(paragraph: Paragraph, element: Element) -> list[TabbedLine]:
    """Return the lines of a paragraph, none if it is a list item or a heading with a number."""
    tabs = paragraph.spaced.strip().count("\t")
    is_heading = paragraph.style.level or (tabs == 1 and _looks_like_heading(paragraph))
    if is_heading or paragraph.label is not None:
        return []
    stops = len(add_tab_stops(paragraph.style.tab_stops, element.find("pPr")))
    lines = paragraph.spaced.split("\n")
    return [TabbedLine(line, stops, paragraph.is_bold) for line in lines]


def _is_initial(paragraph: Element) -> bool:
    """Return whether a paragraph is a drop cap, the large first letter of the next one."""
    frame = find_child(paragraph, "pPr", "framePr")
    return frame is not None and (frame.get("dropCap") or "none") != "none"


def _looks_like_heading(paragraph: Paragraph) -> bool:
    """Return whether a line is an unstyled heading: short and bold throughout."""
    text = paragraph.text
    return (
        paragraph.is_bold
        and len(text) <= _LONGEST_BOLD_HEADING
        and paragraph.label != "-"
        and not text.endswith(_ENDS_OF_SENTENCES)
        and any(character.isalpha() for character in text)
    )
