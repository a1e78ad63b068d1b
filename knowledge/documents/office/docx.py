"""Reads Word documents: headings, numbered clauses, lists, tables, code and footnotes.

Proposed insertions are text and proposed deletions are not; hidden runs, fields' instructions and
tables of contents are left out. The parts are read without a library for Word files, because those
that are kept leave out insertions and the numbers that Word counts.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from knowledge.documents.office.zipped_xml import (
    ZippedXml,
    find_all,
    find_child,
    find_children,
    find_drawn,
    get_attribute,
    get_value,
    local_name,
    read_properties,
)
from knowledge.documents.page import (
    Anchors,
    Block,
    BlockKind,
    Page,
    Picture,
    first_heading,
    make_code,
    make_item,
)
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
        lambda drawing: find_drawn(drawing, archive, main),
    )
    blocks = tuple(writer.write(body))
    stated = read_properties(archive)
    return Page(
        source,
        first_heading(blocks) or stated.title,
        blocks,
        description=stated.description,
        keywords=stated.keywords,
        links=tuple(_list_web_links(body, archive.web_links(main))),
        warnings=writer.warnings(),
    )


def _list_web_links(
    body: "Element | None", addresses: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the label of each link to the web that is not deleted, and its address."""
    for link in find_all(body, "hyperlink"):
        address = addresses.get(get_attribute(link, "id") or "")
        label = read_paragraph(link).text
        if address and label and label != address:
            yield label, address


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
class ParagraphStyle:
    """What a paragraph is by its style; `level` is 0 for text, `list_id` empty for no list."""

    level: int = 0
    list_id: str = ""
    list_level: int = 0
    is_code: bool = False
    is_contents: bool = False
    is_caption: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a paragraph stands: its style, and its label in a list."""

    style: ParagraphStyle
    label: str | None
    list_level: int


@dataclass(slots=True)
class Paragraph:
    """A paragraph; `text` is one line with code in backticks, `raw` keeps spaces and breaks.

    `notes` name footnotes; `deleted` and `hidden` count passages that were left out.
    """

    text: str = ""
    raw: str = ""
    is_bold: bool = False
    is_code: bool = False
    notes: list[str] = field(default_factory=list)
    deleted: int = 0
    hidden: int = 0


class Styles:
    """The styles of a document by their ids; what a style leaves open its base says."""

    def __init__(self, root: "Element | None") -> None:
        self._styles = {
            get_attribute(style, "styleId") or "": style for style in find_children(root, "style")
        }
        self._found: dict[str, ParagraphStyle] = {}

    def find(self, style_id: str) -> ParagraphStyle:
        """Return what a style says; an unknown one says nothing."""
        if style_id not in self._found:
            self._found[style_id] = self._read(style_id)
        return self._found[style_id]

    def _read(self, style_id: str) -> ParagraphStyle:
        chain = self._chain(style_id)
        names = [(get_value(style, "name") or "").lower() for style in chain]
        properties = [find_child(style, "pPr") for style in chain]
        lists = [get_value(found, "numPr", "numId") for found in properties]
        list_levels = [get_value(found, "numPr", "ilvl") for found in properties]
        return ParagraphStyle(
            level=_find_level(names, [get_value(found, "outlineLvl") for found in properties]),
            list_id=next((found for found in lists if found), ""),
            list_level=next((int(at) for at in list_levels if at and at.isdecimal()), 0),
            is_code=any(word in name for name in names[:1] for word in _STYLES_OF_CODE)
            or any(is_typeface_of_code(find_child(style, "rPr")) for style in chain),
            is_contents=any(name.startswith(("toc ", "table of figures")) for name in names),
            is_caption="caption" in names,
        )

    def _chain(self, style_id: str) -> list["Element"]:
        chain: list[Element] = []
        following: str | None = style_id
        while following in self._styles and len(chain) < _DEEPEST:
            chain.append(self._styles[following])
            following = get_value(chain[-1], "basedOn")
        return chain


class Numbering:
    """The lists of a document, and how far each of them has counted."""

    def __init__(self, root: "Element | None") -> None:
        abstract = {
            get_attribute(found, "abstractNumId"): _read_levels(found)
            for found in find_children(root, "abstractNum")
        }
        self._lists: dict[str, tuple[str, Mapping[int, Level]]] = {}
        for found in find_children(root, "num"):
            name = get_value(found, "abstractNumId") or ""
            levels = dict(abstract.get(name, {}))
            own = ""
            for override in find_children(found, "lvlOverride"):
                start = get_value(override, "startOverride")
                level = _to_number(get_attribute(override, "ilvl"))
                if start is not None and level in levels:
                    before = levels[level]
                    levels[level] = Level(before.style, before.text, _to_number(start))
                    own = f"#{get_attribute(found, 'numId')}"
            self._lists[get_attribute(found, "numId") or ""] = (name + own, levels)
        self._counts: dict[str, list[int | None]] = {}

    def count(self, list_id: str, level: int) -> str | None:
        """Return the label of the next paragraph: `4.2`, `(a)`, `-` for a bullet, or None."""
        name, levels = self._lists.get(list_id, ("", {}))
        found = levels.get(level)
        if found is None or not 0 <= level < _LEVELS:
            return None
        if found.style == "bullet":
            return "-"
        counts = self._counts.setdefault(name, [None] * _LEVELS)
        before = counts[level]
        counts[level] = found.start if before is None else before + 1
        counts[level + 1 :] = [None] * (_LEVELS - level - 1)

        def number(placeholder: re.Match[str]) -> str:
            shown = int(placeholder[1]) - 1
            if shown not in levels:
                return ""
            value = counts[shown]
            level = levels[shown]
            return write_number(level.start if value is None else value, level.style)

        return _PLACEHOLDER.sub(number, found.text).strip() or None


class _DocxWriter:
    """Writes the blocks of a body; knows the headings above and the lines of code so far."""

    def __init__(
        self,
        styles: Styles,
        numbering: Numbering,
        notes: dict[str, str],
        find_drawn: "Callable[[Element], Iterable[Picture]]",
    ) -> None:
        self._find_drawn = find_drawn
        self._pictures: tuple[Picture, ...] = ()
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
                self._pictures += self._find_pictures(element)
                yield from self._show_pictures()
            else:
                yield from self._paragraph(element)
        yield from self._end_code()
        yield from self._show_pictures()

    def _find_pictures(self, element: "Element") -> tuple[Picture, ...]:
        """Return the pictures of a paragraph or table that are neither hidden nor deleted."""
        found: list[Picture] = []
        waiting = [element]
        while waiting:
            one = waiting.pop()
            name = local_name(one.tag)
            if name == "drawing":
                # A text box is walked by its own paragraphs.
                is_box = any(True for _ in find_all(one, "txbxContent"))
                found += () if is_box else self._find_drawn(one)
            elif name not in _LEFT_OUT and name not in _DELETED:
                is_hidden = name == "r" and _is_on(find_child(one, "rPr"), "vanish")
                waiting.extend(() if is_hidden else reversed(list(one)))
        return tuple(found)

    def _show_pictures(self, caption: str = "") -> Iterator[Block]:
        """Yield the pictures that stand before this place, the last one with its caption."""
        pictures, self._pictures = self._pictures, ()
        if pictures and caption:
            pictures = (*pictures[:-1], replace(pictures[-1], caption=caption))
        if pictures:
            yield Block(BlockKind.TEXT, "", pictures=pictures)

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
        if place.style.is_caption:
            self._pictures += self._find_pictures(element)
        yield from self._show_pictures(paragraph.text if place.style.is_caption else "")
        if paragraph.text:
            yield self._block(paragraph, place)
        if not place.style.is_caption:
            self._pictures += self._find_pictures(element)
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
            return make_item(place.label, text, place.list_level)
        return Block(BlockKind.TEXT, text)

    def _end_code(self) -> Iterator[Block]:
        lines, self._code = self._code, []
        text = "\n".join(lines).strip("\n")
        if text.strip():
            yield make_code(text)

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


_DELETED = frozenset({"del", "moveFrom"})
_LEFT_OUT = frozenset({"pPr", "rPr", "instrText", "delText", "Fallback", "sdtPr", "sdtEndPr"})
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}
_NOTES = {"footnoteReference": "footnote", "endnoteReference": "endnote"}
_OFF = frozenset({"0", "false", "off", "none"})


@dataclass(slots=True)
class _Run:
    """Text of one typeface."""

    text: str
    is_code: bool
    is_bold: bool


def walk_body(parent: "Element | None", *, inside_tables: bool = False) -> "Iterator[Element]":
    """Yield the paragraphs and tables of a body or a cell in order, also those in controls.

    Text boxes follow the paragraph that they are anchored at. With `inside_tables` a table is
    replaced by its paragraphs.
    """
    waiting = [parent] if parent is not None else []
    while waiting:
        element = waiting.pop()
        name = local_name(element.tag)
        if name == "p" and element is not parent:
            yield element
            waiting.extend(reversed(list(_text_boxes(element))))
        elif name == "tbl" and element is not parent and not inside_tables:
            yield element
        elif name not in _LEFT_OUT and name not in _DELETED:
            waiting.extend(reversed(list(element)))


def read_paragraph(element: "Element") -> Paragraph:
    """Return what a paragraph shows."""
    paragraph = Paragraph()
    runs: list[_Run] = []
    waiting: list[Element] = list(reversed(list(element)))
    while waiting:
        found = waiting.pop()
        name = local_name(found.tag)
        if name in _DELETED:
            paragraph.deleted += any(True for _ in find_all(found, "delText"))
        elif name == "r":
            _read_run(found, paragraph, runs)
        elif name not in _LEFT_OUT:
            waiting.extend(reversed(list(found)))
    visible = [run for run in runs if run.text.strip()]
    paragraph.is_bold = bool(visible) and all(run.is_bold for run in visible)
    paragraph.is_code = bool(visible) and all(run.is_code for run in visible)
    paragraph.raw = "".join(run.text for run in runs)
    paragraph.text = " ".join(_join(runs, mark_code=not paragraph.is_code).split())
    return paragraph


def _text_boxes(paragraph: "Element") -> "Iterator[Element]":
    waiting = list(reversed(list(paragraph)))
    while waiting:
        element = waiting.pop()
        name = local_name(element.tag)
        if name == "txbxContent":
            yield element
        elif name not in _LEFT_OUT and name not in _DELETED:
            waiting.extend(reversed(list(element)))


def _read_run(run: "Element", paragraph: Paragraph, runs: list[_Run]) -> None:
    properties = find_child(run, "rPr")
    if _is_on(properties, "vanish"):
        paragraph.hidden += 1
        return
    parts: list[str] = []
    for child in run:
        name = local_name(child.tag)
        if name == "t":
            parts.append(child.text or "")
        elif name in _SIGNS:
            parts.append(_SIGNS[name])
        elif name in _NOTES:
            paragraph.notes.append(f"{_NOTES[name]} {get_attribute(child, 'id')}")
    if parts:
        is_code = is_typeface_of_code(properties)
        runs.append(_Run("".join(parts), is_code, _is_on(properties, "b")))


def _is_on(properties: "Element | None", name: str) -> bool:
    found = find_child(properties, name)
    return found is not None and (get_attribute(found, "val") or "true").lower() not in _OFF


def _join(runs: list[_Run], *, mark_code: bool) -> str:
    """Return the text of runs, each stretch of code in backticks."""
    text = ""
    code = ""
    for run in [*runs, _Run("", False, False)]:
        if run.is_code and mark_code:
            code += run.text
            continue
        text += _mark(code) + run.text
        code = ""
    return text


def _mark(code: str) -> str:
    bare = code.strip()
    if not bare or "`" in bare:
        return code
    start = code.index(bare)
    return f"{code[:start]}`{bare}`{code[start + len(bare) :]}"


_DEEPEST = 12
_TYPEFACES_OF_CODE = (
    "consolas", "courier", "menlo", "monaco", "mono", "source code", "lucida console", "fira code",
)  # fmt: skip
_STYLES_OF_CODE = ("code", "preformatted", "listing", "verbatim")


def is_typeface_of_code(properties: "Element | None") -> bool:
    """Return whether runs with these properties are set in a typeface of code."""
    fonts = find_child(properties, "rFonts")
    name = (get_attribute(fonts, "ascii") or "").lower() if fonts is not None else ""
    return any(typeface in name for typeface in _TYPEFACES_OF_CODE)


def _find_level(names: list[str], outline_levels: list[str | None]) -> int:
    for name, outline in zip(names, outline_levels, strict=True):
        if outline is not None and outline.isdecimal():
            return min(int(outline) + 1, 6) if int(outline) < 9 else 0
        if name.startswith("heading ") and name[8:].isdecimal():
            return max(1, min(int(name[8:]), 6))
        if name == "title":
            return 1
    return 0


_PLACEHOLDER = re.compile(r"%([1-9])")
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
          (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip
_LARGEST_ROMAN = 4000
_LEVELS = 9


@dataclass(frozen=True, slots=True)
class Level:
    """How one level of a list is numbered; `text` has `%1` for the number of the first level."""

    style: str
    text: str
    start: int


def _read_levels(abstract: "Element") -> dict[int, Level]:
    return {
        _to_number(get_attribute(level, "ilvl")): Level(
            style=get_value(level, "numFmt") or "decimal",
            text=get_value(level, "lvlText") or "",
            start=_to_number(get_value(level, "start") or "1"),
        )
        for level in find_children(abstract, "lvl")
        if find_child(level, "lvlText") is not None
    }


def write_number(number: int, style: str) -> str:
    """Return a number as a style of Word writes it, such as `lowerRoman`."""
    if style in ("lowerLetter", "upperLetter") and number > 0:
        letter = chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 10)
        return letter if style == "lowerLetter" else letter.upper()
    if style in ("lowerRoman", "upperRoman") and 0 < number < _LARGEST_ROMAN:
        roman = _write_roman(number)
        return roman if style == "lowerRoman" else roman.upper()
    if style == "none":
        return ""
    return f"{number:02d}" if style == "decimalZero" else str(number)


def _write_roman(number: int) -> str:
    written = ""
    for value, sign in _ROMAN:
        written += sign * (number // value)
        number %= value
    return written


def _to_number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 7 else 0
