"""Reads Word documents: headings, numbered clauses, lists, tables, code and footnotes.

Proposed insertions are read and proposed deletions are not; hidden runs, field instructions and
tables of contents are left out. No Word library is used, because the maintained ones omit
insertions and the numbers that Word generates.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import hexdigits
from typing import TYPE_CHECKING

from knowledge.documents.notation import Script, Span, join_spans
from knowledge.documents.office.drawings import read_graphics, write_omml
from knowledge.documents.office.symbols import find_symbol, replace_symbols
from knowledge.documents.office.word_numbering import Numbering
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
    read_properties,
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
    make_code,
    make_item,
)
from knowledge.documents.readers import read_inner_file
from knowledge.documents.tables import Cell, unfold_tables, write_table

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_EXPECTED = "a Word document"
_LONGEST_BOLD_HEADING = 80
_WRAPPERS = frozenset({"sdt", "sdtContent", "ins", "moveTo", "customXml"})
_ENDS_OF_SENTENCES = (".", ",", ";", ":", "!", "?")
_DELETED = frozenset({"del", "moveFrom"})
_LEFT_OUT = frozenset(
    {"pPr", "rPr", "instrText", "delText", "Fallback", "sdtPr", "sdtEndPr", "rt", "rubyPr"}
)
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}
_NOTES = {"footnoteReference": "footnote", "endnoteReference": "endnote"}
_SCRIPTS = {"superscript": Script.RAISED, "subscript": Script.LOWERED}
_DEEPEST = 12
_TYPEFACES_OF_CODE = (
    "consolas", "courier", "menlo", "monaco", "mono", "source code", "lucida console", "fira code",
)  # fmt: skip
_STYLES_OF_CODE = ("code", "preformatted", "listing", "verbatim")


@dataclass(frozen=True, slots=True)
class ParagraphStyle:
    """The meaning of a paragraph style; `level` is 0 for text, and `list_id` is empty outside of
    lists.

    `name` is the id of the style. `list_level` is None if the style does not state one.
    """

    level: int = 0
    list_id: str = ""
    list_level: int | None = None
    is_code: bool = False
    is_contents: bool = False
    is_caption: bool = False
    name: str = ""


@dataclass(slots=True)
class Paragraph:
    """A paragraph; `text` is one line with code in backticks, `raw` keeps spaces and line breaks.

    `notes` are the ids of footnotes; `deleted` and `hidden` count passages that were left out.
    """

    text: str = ""
    raw: str = ""
    is_bold: bool = False
    is_code: bool = False
    notes: list[str] = field(default_factory=list)
    deleted: int = 0
    hidden: int = 0


class Styles:
    """The styles of a document by id; properties that are not set are inherited from the base
    style.
    """

    def __init__(self, root: "Element | None") -> None:
        self._styles = {
            get_attribute(style, "styleId") or "": style for style in find_children(root, "style")
        }
        self._found: dict[str, ParagraphStyle] = {}
        self._runs: dict[str, list[Element | None]] = {}

    def find(self, style_id: str) -> ParagraphStyle:
        """Return the definition of a style, or an empty one if the style is unknown."""
        if style_id not in self._found:
            self._found[style_id] = self._read(style_id)
        return self._found[style_id]

    def _read(self, style_id: str) -> ParagraphStyle:
        chain = self._chain(style_id)
        names = [(get_value(style, "name") or "").lower() for style in chain]
        properties = [find_child(style, "pPr") for style in chain]
        lists = [get_value(element, "numPr", "numId") for element in properties]
        list_levels = [get_value(element, "numPr", "ilvl") for element in properties]
        return ParagraphStyle(
            level=_find_level(names, [get_value(element, "outlineLvl") for element in properties]),
            list_id=next((element for element in lists if element), ""),
            list_level=next((int(at) for at in list_levels if at and at.isdecimal()), None),
            is_code=any(word in name for name in names[:1] for word in _STYLES_OF_CODE)
            or any(is_typeface_of_code(find_child(style, "rPr")) for style in chain),
            is_contents=any(name.startswith(("toc ", "table of figures")) for name in names),
            is_caption="caption" in names,
            name=style_id,
        )

    def is_on(self, properties: "Element | None", name: str) -> bool:
        """Return whether a property is set by the properties of a run or by the style to which they
        refer.
        """
        stated = [properties, *self._list_run_properties(get_value(properties, "rStyle") or "")]
        elements = (element for element in stated if find_child(element, name) is not None)
        return is_on(next(elements, None), name)

    def _list_run_properties(self, style_id: str) -> list["Element | None"]:
        if style_id not in self._runs:
            chain = self._chain(style_id)
            self._runs[style_id] = [find_child(style, "rPr") for style in chain]
        return self._runs[style_id]

    def hides(self, paragraph: "Element") -> bool:
        """Return whether the style of a paragraph hides its text."""
        stated = self._list_run_properties(get_value(paragraph, "pPr", "pStyle") or "")
        elements = (element for element in stated if find_child(element, "vanish") is not None)
        return is_on(next(elements, None), "vanish")

    def _chain(self, style_id: str) -> list["Element"]:
        chain: list[Element] = []
        following: str | None = style_id
        while following in self._styles and len(chain) < _DEEPEST:
            chain.append(self._styles[following])
            following = get_value(chain[-1], "basedOn")
        return chain


class _Parts:
    """The parts to which a document refers: pictures, charts, diagrams and embedded files."""

    def __init__(self, archive: ZippedXml, main: str, left_out: LeftOutCounts) -> None:
        self._archive = archive
        self._main = main
        self._relations = archive.relationships(main)
        self.left_out = left_out

    def find_drawn(self, drawing: "Element") -> Iterator[Picture]:
        """Yield the pictures of a drawing."""
        return find_drawn(drawing, self._archive, self._main)

    def read_graphics(self, paragraph: "Element") -> Iterator[Block]:
        """Yield the charts, the diagrams and the embedded files of a paragraph."""
        yield from read_graphics(paragraph, self._archive, self._main)
        for element in find_all(paragraph, "OLEObject"):
            yield from self.read_file(element)

    def read_file(self, element: "Element") -> tuple[Block, ...]:
        """Return the blocks of a file that is a part of the document."""
        relation = self._relations.get(get_attribute(element, "id") or "")
        if relation is None or relation.target not in self._archive:
            return ()
        data = self._archive.read(relation.target)
        levels = 0 if relation.kind == "aFChunk" else 2
        return read_inner_file(data, relation.target, self.left_out, levels=levels)


@dataclass(frozen=True, slots=True)
class _Place:
    """The context of a paragraph: its style, and its list label."""

    style: ParagraphStyle
    label: str | None
    list_level: int


class _DocxWriter:
    """Writes the blocks of a body; keeps track of the current headings and of open lines of
    code.
    """

    def __init__(
        self,
        styles: Styles,
        numbering: Numbering,
        notes: dict[str, str],
        parts: _Parts,
    ) -> None:
        self._parts = parts
        self._pictures: tuple[Picture, ...] = ()
        self._styles = styles
        self._numbering = numbering
        self._notes = notes
        self._anchors = Anchors()
        self._code: list[str] = []
        self._level = 0
        self._initial = ""

    def write(self, body: "Element | None") -> Iterator[Block]:
        for element in walk_body(body):
            name = local_name(element.tag)
            if name == "p":
                yield from self._paragraph(element)
                continue
            yield from self._end_code()
            if name == "altChunk":
                yield from self._parts.read_file(element)
            elif (framed := _find_framed(element)) is not None:
                yield from self.write(framed)
            else:
                yield from self._table(element)
        yield from self._end_code()
        yield from self._show_pictures()

    def _table(self, element: "Element") -> Iterator[Block]:
        yield from write_table(list(self._rows(element)))
        self._pictures += self._find_pictures(element)
        yield from self._show_pictures()
        yield from self._parts.read_graphics(element)

    def _find_pictures(self, element: "Element") -> tuple[Picture, ...]:
        """Return the pictures of a paragraph or table that are neither hidden nor deleted."""
        pictures: list[Picture] = []
        waiting = [element]
        while waiting:
            node = waiting.pop()
            name = local_name(node.tag)
            if name == "drawing":
                # A text box is walked by its own paragraphs.
                is_box = any(True for _ in find_all(node, "txbxContent"))
                pictures += () if is_box else self._parts.find_drawn(node)
            elif name not in _LEFT_OUT and name not in _DELETED:
                is_hidden = name == "r" and self._styles.is_on(find_child(node, "rPr"), "vanish")
                waiting.extend(() if is_hidden else reversed(list(node)))
        return tuple(pictures)

    def _show_pictures(self, caption: str = "") -> Iterator[Block]:
        """Yield the preceding pictures, the last one with its caption."""
        pictures, self._pictures = self._pictures, ()
        if pictures and caption:
            pictures = (*pictures[:-1], replace(pictures[-1], caption=caption))
        if pictures:
            yield Block(BlockKind.TEXT, "", pictures=pictures)

    def _paragraph(self, element: "Element") -> Iterator[Block]:
        paragraph = self._read(element)
        if _is_initial(element):
            self._initial += paragraph.text
            return
        place = self._place(element, paragraph)
        if place.style.is_contents:
            return
        initial, self._initial = self._initial, ""
        paragraph.text = initial + paragraph.text
        if place.style.is_code or (paragraph.is_code and not place.style.level):
            self._code.append(paragraph.raw)
            return
        yield from self._end_code()
        yield from self._write_paragraph(element, paragraph, place)

    def _write_paragraph(
        self, element: "Element", paragraph: Paragraph, place: _Place
    ) -> Iterator[Block]:
        if place.style.is_caption:
            self._pictures += self._find_pictures(element)
        yield from self._show_pictures(paragraph.text if place.style.is_caption else "")
        if paragraph.text:
            yield self._block(paragraph, place)
        if not place.style.is_caption:
            self._pictures += self._find_pictures(element)
        yield from self._parts.read_graphics(element)
        for note in paragraph.notes:
            if text := self._notes.get(note):
                yield Block(BlockKind.TEXT, text)

    def _read(self, element: "Element") -> Paragraph:
        paragraph = read_paragraph(element, self._styles)
        left_out = self._parts.left_out
        left_out.add("deleted passage", "marked as deleted", paragraph.deleted)
        left_out.add("hidden passage", "formatted as hidden text", paragraph.hidden)
        return paragraph

    def _place(self, element: "Element", paragraph: Paragraph) -> _Place:
        properties = find_child(element, "pPr")
        style = self._styles.find(get_value(properties, "pStyle") or "")
        outline = get_value(properties, "outlineLvl")
        if outline is not None and outline.isdecimal() and int(outline) < 9:
            style = replace(style, level=min(int(outline) + 1, 6), is_code=False)
        list_id = get_value(properties, "numPr", "numId") or style.list_id
        stated = get_value(properties, "numPr", "ilvl")
        level = int(stated) if stated and stated.isdecimal() else style.list_level
        if level is None:
            level = self._numbering.find_level(list_id, style.name) or 0
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
            return make_item(place.label, text, place.list_level)
        return Block(BlockKind.TEXT, text)

    def _end_code(self) -> Iterator[Block]:
        lines, self._code = self._code, []
        text = "\n".join(lines).strip("\n")
        if text.strip():
            yield make_code(text)

    def _rows(self, table: "Element") -> Iterator[Sequence[Cell]]:
        """Yield the rows of a table; a cell that continues the row above repeats its text.

        Tables inside cells are flattened.
        """
        above: dict[int, str] = {}
        for row in _table_rows(table):
            properties = find_child(row, "trPr")
            if find_child(properties, "del") is not None:
                self._parts.left_out.add("deleted row", "marked as deleted")
                continue
            is_header = find_child(properties, "tblHeader") is not None
            cells, inner = _skip_columns(properties, "gridBefore"), []
            for element in _row_cells(row):
                cells.append(self._cell(element, above, sum(cell.columns for cell in cells)))
                nested = next(find_all(element, "tbl"), None)
                inner.append([] if nested is None else list(self._rows(nested)))
            inner = [[] for _ in range(len(cells) - len(inner))] + inner
            cells = [replace(cell, is_header=is_header) for cell in cells]
            yield from unfold_tables(cells, inner)

    def _cell(self, element: "Element", above: dict[int, str], column: int) -> Cell:
        merge = find_child(element, "tcPr", "vMerge")
        goes_on = merge is not None and get_attribute(merge, "val") != "restart"
        if goes_on:
            text = above.get(column, "")
        else:
            paragraphs = (child for child in walk_body(element) if local_name(child.tag) == "p")
            texts = (self._read(paragraph).text for paragraph in paragraphs)
            text = " ".join(text for text in texts if text)
        above[column] = text
        return Cell(text, max(1, to_number(get_value(element, "tcPr", "gridSpan"))))


@dataclass(slots=True)
class _Run:
    """Text in one typeface."""

    span: Span
    is_code: bool = False
    is_bold: bool = False
    is_formula: bool = False


def read(data: bytes, source: str) -> Page:
    """Return the page; its title is its first heading or, if there is none, that in its
    properties.
    """
    archive = ZippedXml(data, _EXPECTED)
    main = archive.find_related("", "officeDocument") or "word/document.xml"
    body = find_child(archive.parse(main), "body")
    styles = Styles(_parse_related(archive, main, "styles"))
    left_out = LeftOutCounts()
    writer = _DocxWriter(
        styles,
        Numbering(_parse_related(archive, main, "numbering")),
        _read_notes(archive, main, styles),
        _Parts(archive, main, left_out),
    )
    blocks = (*_read_headers(archive, main, styles), *writer.write(body))
    stated = read_properties(archive)
    comments = sum(1 for _ in find_all(_parse_related(archive, main, "comments"), "comment"))
    left_out.add("comment", "comments of reviewers are not text of the document", comments)
    count_macros(archive, left_out)
    return Page(
        source,
        first_heading(blocks) or stated.title,
        blocks,
        description=stated.description,
        keywords=stated.keywords,
        links=tuple(_list_web_links(body, archive.web_links(main), styles)),
        left_out=left_out.list(),
    )


def walk_body(parent: "Element | None", *, inside_tables: bool = False) -> "Iterator[Element]":
    """Yield the paragraphs and tables of a body or a cell in order, including those in content
    controls.

    Text boxes follow the paragraph to which they are anchored. With `inside_tables`, a table is
    replaced by its paragraphs. Files that are part of the body (`altChunk`) are yielded, too.
    """
    ends = {"p", "altChunk"} if inside_tables else {"p", "altChunk", "tbl"}
    for element in _walk_shown(parent, ends):
        yield element
        if local_name(element.tag) == "p":
            for box in _walk_shown(element, {"txbxContent"}):
                yield from walk_body(box, inside_tables=inside_tables)


def read_paragraph(element: "Element", styles: Styles) -> Paragraph:
    """Return the visible text of a paragraph."""
    paragraph = Paragraph()
    runs: list[_Run] = []
    waiting: list[Element] = list(reversed(list(element)))
    if styles.hides(element):
        paragraph.hidden += any(True for _ in find_all(element, "t"))
        waiting = []
    while waiting:
        node = waiting.pop()
        name = local_name(node.tag)
        if name in _DELETED:
            paragraph.deleted += any(True for _ in find_all(node, "delText"))
        elif name == "oMath":
            border = " " if runs and runs[-1].is_formula else ""
            runs.append(_Run(Span(border + write_omml(node)), is_formula=True))
        elif name == "r":
            inner = find_child(node, "ruby", "rubyBase")
            _read_run(node, paragraph, runs, styles)
            waiting.extend(() if inner is None else reversed(list(inner)))
        elif name not in _LEFT_OUT:
            waiting.extend(reversed(list(node)))
    visible = [run for run in runs if run.span.text.strip()]
    paragraph.is_bold = bool(visible) and all(run.is_bold for run in visible)
    paragraph.is_code = bool(visible) and all(run.is_code for run in visible)
    paragraph.raw = "".join(run.span.text for run in runs)
    paragraph.text = " ".join(_join(runs, mark_code=not paragraph.is_code).split())
    return paragraph


def is_typeface_of_code(properties: "Element | None") -> bool:
    """Return whether runs with these properties are set in a monospaced typeface."""
    name = _find_typeface(properties).lower()
    return any(typeface in name for typeface in _TYPEFACES_OF_CODE)


def _list_web_links(
    body: "Element | None", addresses: Mapping[str, str], styles: "Styles"
) -> Iterator[tuple[str, str]]:
    """Yield the label and URL of each web link that is not deleted."""
    for link in find_all(body, "hyperlink"):
        address = addresses.get(get_attribute(link, "id") or "")
        label = read_paragraph(link, styles).text
        if address and label and label != address:
            yield label, address


def _parse_related(archive: ZippedXml, main: str, kind: str) -> "Element | None":
    name = archive.find_related(main, kind)
    return None if name is None else archive.parse(name)


def _read_notes(archive: ZippedXml, main: str, styles: "Styles") -> dict[str, str]:
    """Return the footnotes and endnotes by kind and id."""
    notes: dict[str, str] = {}
    for kind in ("footnote", "endnote"):
        for note in find_children(_parse_related(archive, main, f"{kind}s"), kind):
            if get_attribute(note, "type") in (None, "normal"):
                texts = (read_paragraph(noted, styles).text for noted in find_all(note, "p"))
                notes[f"{kind} {get_attribute(note, 'id')}"] = " ".join(filter(None, texts))
    return notes


def _read_headers(archive: ZippedXml, main: str, styles: "Styles") -> Iterator[Block]:
    """Return the lines of page headers and footers, without duplicates."""
    parts = (
        relation.target
        for relation in archive.relationships(main).values()
        if relation.kind in ("header", "footer") and relation.target in archive
    )
    lines = (
        read_paragraph(paragraph, styles).text
        for part in parts
        for paragraph in walk_body(archive.parse(part), inside_tables=True)
    )
    return write_page_headers(lines)


def _skip_columns(properties: "Element | None", name: str) -> list[Cell]:
    """Return empty cells for the columns that a row omits at its beginning."""
    count = to_number(get_value(properties, name))
    return [Cell("", count)] if count else []


def _find_framed(table: "Element") -> "Element | None":
    """Return the only cell of a table that merely frames other tables, or None."""
    cells = [cell for row in _table_rows(table) for cell in _row_cells(row)]
    is_frame = len(cells) == 1 and next(find_all(cells[0], "tbl"), None) is not None
    return cells[0] if is_frame else None


def _is_initial(paragraph: "Element") -> bool:
    """Return whether a paragraph is a drop cap, the large first letter of the next one."""
    frame = find_child(paragraph, "pPr", "framePr")
    return frame is not None and (get_attribute(frame, "dropCap") or "none") != "none"


def _table_rows(table: "Element") -> Iterator["Element"]:
    return (child for child in _unwrap(table) if local_name(child.tag) == "tr")


def _row_cells(row: "Element") -> Iterator["Element"]:
    """Yield the cells of a row, including those in content controls and proposed insertions."""
    return (child for child in _unwrap(row) if local_name(child.tag) == "tc")


def _unwrap(parent: "Element") -> Iterator["Element"]:
    for child in parent:
        name = local_name(child.tag)
        if name in _WRAPPERS:
            yield from _unwrap(child)
        else:
            yield child


def _looks_like_heading(paragraph: Paragraph, place: _Place) -> bool:
    """Return whether a line is an unstyled heading: short and bold throughout."""
    text = paragraph.text
    return (
        paragraph.is_bold
        and len(text) <= _LONGEST_BOLD_HEADING
        and place.label != "-"
        and not text.endswith(_ENDS_OF_SENTENCES)
        and any(character.isalpha() for character in text)
    )


def _walk_shown(parent: "Element | None", ends: Collection[str]) -> "Iterator[Element]":
    """Yield the first elements with these names on each branch, without invisible content."""
    waiting = list(reversed(parent)) if parent is not None else []
    while waiting:
        element = waiting.pop()
        name = local_name(element.tag)
        if name in ends:
            yield element
        elif name not in _LEFT_OUT and name not in _DELETED:
            waiting.extend(reversed(element))


def _read_run(run: "Element", paragraph: Paragraph, runs: list[_Run], styles: Styles) -> None:
    properties = find_child(run, "rPr")
    if styles.is_on(properties, "vanish"):
        paragraph.hidden += 1
        return
    text = ""
    typeface = _find_typeface(properties)
    for child in run:
        name = local_name(child.tag)
        if name in _NOTES:
            paragraph.notes.append(f"{_NOTES[name]} {get_attribute(child, 'id')}")
        else:
            text += _read_sign(child, name, typeface)
    if text:
        span = Span(
            text,
            _SCRIPTS.get(get_value(properties, "vertAlign") or "", Script.LINE),
            styles.is_on(properties, "strike") or styles.is_on(properties, "dstrike"),
        )
        is_code = is_typeface_of_code(properties)
        runs.append(_Run(span, is_code, is_on(properties, "b")))


def _read_sign(child: "Element", name: str, typeface: str) -> str:
    """Return the visible part of a run: text, a symbol, or a check box."""
    if name == "t":
        return replace_symbols(child.text or "", typeface)
    if name == "sym":
        code = get_attribute(child, "char") or ""
        is_code = len(code) <= 4 and all(digit in hexdigits for digit in code or "-")
        return find_symbol(int(code, 16), get_attribute(child, "font") or "") if is_code else ""
    if name == "fldChar" and (box := find_child(child, "ffData", "checkBox")) is not None:
        stated = "checked" if find_child(box, "checked") is not None else "default"
        return "\u2612" if is_on(box, stated) else "\u2610"
    return _SIGNS.get(name, "")


def _find_typeface(properties: "Element | None") -> str:
    fonts = find_child(properties, "rFonts")
    return (get_attribute(fonts, "ascii") or "") if fonts is not None else ""


def _join(runs: list[_Run], *, mark_code: bool) -> str:
    """Return the text of runs, each stretch of code in backticks."""
    spans: list[Span] = []
    code = ""
    for run in [*runs, _Run(Span(""))]:
        if run.is_code and mark_code and not run.span.is_struck:
            code += run.span.text
            continue
        spans += (Span(_mark(code)), run.span)
        code = ""
    return join_spans(spans)


def _mark(code: str) -> str:
    bare = code.strip()
    if not bare or "`" in bare:
        return code
    start = code.index(bare)
    return f"{code[:start]}`{bare}`{code[start + len(bare) :]}"


def _find_level(names: list[str], outline_levels: list[str | None]) -> int:
    for name, outline in zip(names, outline_levels, strict=True):
        if outline is not None and outline.isdecimal():
            return min(int(outline) + 1, 6) if int(outline) < 9 else 0
        if name.startswith("heading ") and name[8:].isdecimal():
            return max(1, min(int(name[8:]), 6))
        if name == "title":
            return 1
    return 0
