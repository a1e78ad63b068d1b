"""Reads PowerPoint slides: each slide is a section headed by its title, with its notes.

Hidden slides and shapes are left out and counted. What the slides repeat (footers, and text of
their layouts and masters) precedes them once, without slide numbers.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import NamedTuple
from xml.etree.ElementTree import Element

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.notation import keep_lines, write_number
from knowledge.documents.office.drawings import read_drawing_text, read_graphics
from knowledge.documents.office.shapes import (
    FALSE,
    NOTES,
    TITLES,
    Box,
    Layout,
    find_box,
    find_placeholder,
    order_shapes,
    remove_invisible_text,
)
from knowledge.documents.office.zipped_xml import (
    ZippedXml,
    count,
    find_all,
    find_child,
    find_children,
    find_drawn,
    make_page,
    read_core_properties,
    to_number,
    write_page_headers,
)
from knowledge.documents.page import Block, BlockKind, LeftOutCounts, Page, make_item
from knowledge.documents.symbols import write_bullet
from knowledge.documents.tabbed_lines import TabbedLine, are_rows, write_tabbed_lines
from knowledge.documents.tables import Cell, write_table

_EXPECTED = "a PowerPoint presentation"
_HIDDEN = "hidden in the presentation"
_COMMENTS = "comments of reviewers are not text of the slides"
_FOOTERS = frozenset({"dt", "ftr", "hdr"})
_FURNITURE = frozenset({*_FOOTERS, "sldNum", "sldImg"})
_BULLETS = ("buAutoNum", "buChar", "buBlip", "buNone")
_BORDERS = {
    "ParenBoth": ("(", ")"),
    "ParenR": ("", ")"),
    "Period": ("", "."),
    "Minus": ("- ", " -"),
}


class _Paragraph(NamedTuple):
    """A paragraph of a shape: its level, its text, its label, and its lines with their tabs."""

    level: int
    text: str
    label: str
    lines: Sequence[TabbedLine]


class _SlideReader:
    """Reads slides one after the other.

    `title` is that of the first slide which has one, and `repeated` are the lines that slides,
    layouts and masters repeat.
    """

    def __init__(self, archive: ZippedXml) -> None:
        self.title = ""
        self.repeated: list[str] = []
        self.left_out = LeftOutCounts()
        self._archive = archive
        self._parse = cache(archive.parse)
        self._find_layout = cache(self._read_layout)
        self._shown: set[Layout] = set()

    def read(self, name: str, number: int) -> Iterator[Block]:
        """Yield the blocks of a slide, unless it is hidden."""
        slide = self._archive.parse(name)
        if slide.get("show") in FALSE:
            self.left_out.add("hidden slide", _HIDDEN, name=str(number))
            return
        for kind in ("comments", "comment"):
            comments = find_all(self._parse_related(name, kind), "cm")
            self.left_out.add("comment", _COMMENTS, sum(1 for _ in comments))
        layout = self._find_layout(self._archive.find_related(name, "slideLayout"))
        remove_invisible_text(slide, layout, self.left_out)
        self.repeated += _read_texts(slide, _FOOTERS)
        if slide.get("showMasterSp") not in FALSE and layout not in self._shown:
            self._shown.add(layout)
            for part in reversed(layout.shown):
                self.repeated += _read_texts(part, {None})
        titles = (shape for shape in slide.iter("sp") if _placeholder(shape) in TITLES)
        texts = (_read_text(shape, layout.list_styles(shape)) for shape in titles)
        heading = next(filter(None, texts), "")
        self.title = self.title or heading
        controls = sum(1 for _ in slide.iter("control"))
        self.left_out.add("form control", "ActiveX controls are not read", controls)
        shapes = slide.findall("cSld/spTree/*")
        below = (*self._shapes(shapes, layout, name, f"slide {number}"), *self._notes(name))
        if heading or below:
            yield Block(BlockKind.HEADING, heading or f"Slide {number}", 2, f"slide={number}")
            yield from below

    def _parse_related(self, name: str | None, kind: str) -> Element | None:
        related = self._archive.find_related(name, kind) if name is not None else None
        return None if related is None else self._parse(related)

    def _read_layout(self, name: str | None) -> Layout:
        """Return a layout with its master and its theme."""
        master = None if name is None else self._archive.find_related(name, "slideMaster")
        parts = [self._parse(part) for part in (name, master) if part is not None]
        return Layout(parts, self._parse_related(master, "theme"))

    def _shapes(
        self, shapes: Iterable[Element], layout: Layout, slide: str, name: str
    ) -> Iterator[Block]:
        waiting = self._order(shapes, layout, name)
        while waiting:
            element = waiting.pop()
            if _is_hidden(element):
                self.left_out.add("hidden shape", _HIDDEN)
            elif element.tag == "sp":
                if _placeholder(element) not in TITLES | _FURNITURE:
                    yield from _write_paragraphs(element, layout, self.left_out)
            elif element.tag == "pic":
                pictures = tuple(find_drawn(element, self._archive, slide))
                yield Block(BlockKind.TEXT, "", pictures=pictures)
            elif element.tag == "graphicFrame":
                yield from self._frame(element, slide)
            elif element.tag != "Fallback":
                waiting += self._order(element, layout, name)

    def _order(self, shapes: Iterable[Element], layout: Layout, name: str) -> list[Element]:
        """Return shapes in reverse reading order."""

        def find_place(shape: Element) -> Box | None:
            is_elsewhere = _is_hidden(shape) or _placeholder(shape) in TITLES | _FURNITURE
            return None if is_elsewhere else find_box(layout.trace(shape))

        return order_shapes(shapes, find_place, self.left_out, name)[::-1]

    def _frame(self, frame: Element, slide: str) -> Iterator[Block]:
        """Yield the table, the chart, the diagram or the embedded file of a frame."""
        for table in frame.iter("tbl"):
            yield from write_table([_row(row) for row in table.findall("tr")])
        yield from read_graphics(frame, self._archive, slide, self.left_out)

    def _notes(self, slide: str) -> Sequence[Block]:
        shapes = find_all(self._parse_related(slide, "notesSlide"), "sp")
        bodies = (shape for shape in shapes if _placeholder(shape) not in _FURNITURE)
        parts = (part for shape in bodies for part in _paragraphs(shape))
        texts = [f"{part.label} {part.text}".strip() for part in parts]
        return [Block(BlockKind.TEXT, text) for text in ([NOTES, *texts] if texts else ())]


def read(data: bytes, source: str) -> Page:
    """Return the page; its title is the one in its properties, or that of the first slide."""
    archive = ZippedXml(data, _EXPECTED)
    main = archive.find_related("", "officeDocument") or "ppt/presentation.xml"
    root = archive.parse(main)
    if root.tag != "presentation":
        raise WrongFormatError(f"expected {_EXPECTED}, found another kind of office file")
    relations = archive.relationships(main)
    reader = _SlideReader(archive)
    blocks: list[Block] = []
    for number, entry in enumerate(find_children(root.find("sldIdLst"), "sldId"), start=1):
        # The id with a namespace is that of the relationship; the other one is that of the slide.
        names = (name for key, name in entry.items() if key.endswith("}id"))
        relation = relations.get(next(names, entry.get("id", "")))
        if relation is not None and relation.target in archive:
            blocks += reader.read(relation.target, number)
    stated = read_core_properties(archive)
    title = stated.title or reader.title
    blocks = [*write_page_headers(reader.repeated), *blocks]
    return make_page(source, archive, stated, title, blocks, (), reader.left_out)


def _placeholder(shape: Element) -> str | None:
    """Return the placeholder kind of a shape, or None."""
    stated = find_placeholder(shape)
    return None if stated is None else stated.get("type", "obj")


def _read_texts(part: Element | None, kinds: Collection[str | None]) -> Iterator[str]:
    """Yield the texts of the visible shapes that are placeholders of these kinds, or none."""
    for shape in find_all(part, "sp"):
        if _placeholder(shape) in kinds and not _is_hidden(shape):
            yield _read_text(shape)


def _read_text(shape: Element, inherited: Iterable[Element] = ()) -> str:
    return " ".join(part.text for part in _paragraphs(shape, inherited))


def _is_hidden(shape: Element) -> bool:
    properties = next((find_child(child, "cNvPr") for child in shape), None)
    return properties is not None and properties.get("hidden") in ("1", "true")


def _write_paragraphs(shape: Element, layout: Layout, left_out: LeftOutCounts) -> Iterator[Block]:
    paragraphs = list(_paragraphs(shape, layout.list_styles(shape)))
    for is_tabbed, group in groupby(paragraphs, key=_is_row):
        if is_tabbed:
            yield from write_tabbed_lines([line for part in group for line in part.lines], left_out)
            continue
        for part in group:
            # The bullet of a single text does not mean anything.
            if part.label and (part.label != "-" or len(paragraphs) > 1):
                yield make_item(part.label, part.text, part.level)
            else:
                yield Block(BlockKind.TEXT, part.text)


def _is_row(paragraph: _Paragraph) -> bool:
    return not paragraph.label and are_rows(paragraph.lines)


def _paragraphs(shape: Element, inherited: Iterable[Element] = ()) -> Iterator[_Paragraph]:
    """Yield the paragraphs that are not empty; `inherited` are list styles."""
    counts: dict[int, tuple[str, int]] = {}
    body = shape.find("txBody")
    styles = (*find_children(body, "lstStyle"), *inherited)
    for paragraph in find_children(body, "p"):
        properties = paragraph.find("pPr")
        level = to_number(properties.get("lvl") if properties is not None else None)
        below = [one for style in styles for one in style.findall(f"lvl{level + 1}pPr")]
        text = read_drawing_text(paragraph, below)
        if not text.strip():
            continue
        stated = [one for style in (properties, *below) if style is not None for one in style]
        bullet = next((one for one in stated if one.tag in _BULLETS), Element("buNone"))
        counts = {at: count for at, count in counts.items() if at <= level}
        label = ""
        if bullet.tag == "buAutoNum":
            style = bullet.get("type", "")
            before, number = counts.get(level, ("", 0))
            number = number + 1 if before == style else count(bullet, "startAt")
            counts[level] = (style, number)
            label = _write_label(number, style)
        else:
            counts.pop(level, None)
            if bullet.tag != "buNone":
                typeface = next((one for one in stated if one.tag == "buFont"), bullet)
                label = write_bullet(bullet.get("char", ""), typeface.get("typeface", ""))
        stops = len(find_child(properties, "tabLst") or ())
        lines = [TabbedLine(line, stops) for line in text.split("\n")]
        yield _Paragraph(level, keep_lines(text), label, lines)


def _write_label(number: int, kind: str) -> str:
    """Return the label of a numbered paragraph, such as `b)` for the type `alphaLcParenR`."""
    border = next((name for name in _BORDERS if kind.endswith(name)), "")
    before, after = _BORDERS.get(border, ("", "" if kind.endswith("Plain") else "."))
    return f"{before}{write_number(number, kind.removesuffix(border))}{after}"


def _row(row: Element) -> list[Cell]:
    cells: list[Cell] = []
    for cell in row.findall("tc"):
        if cell.get("hMerge") in ("1", "true") or cell.get("vMerge") in ("1", "true"):
            # An element that spans this place states so itself.
            continue
        parts = _paragraphs(cell)
        text = "\n".join(f"{part.label.strip('-')} {part.text}".strip() for part in parts)
        cells.append(Cell(text, count(cell, "gridSpan"), count(cell, "rowSpan")))
    return cells
