"""Reads the body of an OpenDocument file: paragraphs, lists, tables, drawings and notes."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from xml.etree.ElementTree import Element

from knowledge.documents.decoding import clean_text
from knowledge.documents.notation import Script, join_spans, keep_lines, write_formula
from knowledge.documents.office.drawings import NO_VALUES, read_mathml
from knowledge.documents.office.opendocument_styles import PLAIN, ColouredSpan, ListNumbers, Styles
from knowledge.documents.office.zipped_xml import (
    BACKGROUND,
    ZippedXml,
    count,
    end_code,
    find_all,
    find_first,
    write_page_headers,
)
from knowledge.documents.page import Anchors, Block, BlockKind, LeftOutCounts, Picture, make_item
from knowledge.documents.pictures import decode, hold_picture
from knowledge.documents.symbols import replace_symbols
from knowledge.documents.tabbed_lines import TabbedLine, are_rows, write_tabbed_lines
from knowledge.documents.tables import MOST_COLUMNS, Cell, unfold_tables, write_table

HIDDEN = "hidden in the file"
WHITE = "#ffffff"
MOST_REPEATED = 1000
DRAWN = frozenset(
    {"frame", "rect", "line", "polyline", "polygon", "regular-polygon", "path", "circle", "g"}
    | {"ellipse", "page-thumbnail", "caption", "connector", "custom-shape"}
)
_LEFT_OUT = frozenset(
    {"tracked-changes", "annotation", "annotation-end", "table-of-content", "hidden-paragraph"}
    | {"sequence-decls", "forms", "ruby-text", "number", "script"}
)
_COUNTED = {
    "annotation": ("comment", "comments of reviewers are not text of the document"),
    "table-of-content": ("contents list", "the headings themselves are read"),
}
_FAMILIES = {"p": "paragraph", "h": "paragraph", "table": "table"}
_UNKNOWN_BACKGROUNDS = frozenset({"table", "section", "g"})
_PLAYED = ("plugin", "applet", "floating-frame")
_NO_VALUE = ("NaN", "1.#NAN")
"""What programs write in the table of a chart for a point without a value."""
_CHECKED = {"checked": "\u2612", "true": "\u2612"}
_UNCHECKED = "\u2610"
ReadObject = Callable[[Element, str], Iterator[Block]]
"""Reads a document inside another one, by its root and its folder."""


class BodyReader:
    """Reads the elements of a body; collects links and notes on what was left out.

    `root` is that of `content.xml`, or of a flat file. `folder` is that of a document inside
    another one, such as `Object 1/`, which `read_object` reads.
    """

    def __init__(
        self, archive: ZippedXml, root: Element, folder: str, read_object: ReadObject
    ) -> None:
        self.links: list[tuple[str, str]] = []
        self.left_out = LeftOutCounts()
        self._archive = archive
        self._folder = folder
        self._read_document = read_object
        name = f"{folder}styles.xml"
        self._parts = (archive.parse(name) if name in archive else root, root)
        self._styles = Styles(self._parts)
        self._masters = {page.get("name"): page for page in self._parts[0].iter("master-page")}
        self._anchors = Anchors()
        self._base = PLAIN
        self._lists = ListNumbers(self._styles, self.left_out)
        self._tabbed: list[TabbedLine] = []
        self._notes: list[tuple[str, Element]] = []
        self._drawn: list[Element] = []
        self._caption = ""
        self._signs = {"tab": "\t", "line-break": "\n"}
        self._controls = {
            control.get("id"): control for forms in root.iter("forms") for control in forms.iter()
        }
        self._readers: dict[str, Callable[[Element], Iterator[Block]]] = {
            "p": self._paragraph,
            "h": self._paragraph,
            "numbered-paragraph": self._list,
            "control": self._control,
            "frame": self._frame,
            **dict.fromkeys(("object", "object-ole", *_PLAYED), self._object),
            "list": self._list,
            "table": self._table,
        }

    def read(self, body: Element) -> Iterator[Block]:
        """Yield the blocks of a body of text or drawings, below the headers of its pages."""
        is_plain = body.tag == "text" and not self._has_backgrounds()
        self._base = ColouredSpan(background=WHITE if is_plain else "")
        yield from self._page_headers(self._masters.values())
        yield from self._blocks(body)

    def _has_backgrounds(self) -> bool:
        """Return whether the pages have a colour or drawings that text can lie on."""
        return any(
            element.tag in DRAWN
            or (
                element.tag == "page-layout-properties"
                and (
                    element.get("background-color", "transparent") not in ("transparent", WHITE)
                    or element.get("fill", "none") != "none"
                    or element.find("background-image") is not None
                )
            )
            for part in self._parts
            for element in part.iter()
        )

    def _page_headers(self, masters: Iterable[Element]) -> Iterator[Block]:
        """Yield the lines of page headers and footers, without duplicates and drawings."""
        parts = (part for page in masters for part in page if part.get("display") != "false")
        yield from write_page_headers(self._line(line) for part in parts for line in part.iter("p"))
        self._drawn.clear()

    def _blocks(self, parent: Element) -> Iterator[Block]:
        code: list[str] = []
        for child in parent:
            is_text = child.tag == "p" and not self._lists.depth
            if is_text and self._styles.is_code(child.get("style-name", "")):
                code.append(join_spans(self._spans(child, replace(PLAIN, is_code=True))))
            else:
                yield from end_code(code)
                tabbed = len(self._tabbed)
                blocks = list(self._block(child))
                if len(self._tabbed) == tabbed:
                    yield from self._end_tabbed()
                yield from blocks
        yield from (*end_code(code), *self._end_tabbed())

    def _end_tabbed(self) -> Iterator[Block]:
        lines, self._tabbed = self._tabbed, []
        yield from write_tabbed_lines(lines, self.left_out)
        yield from self._show_drawings() if lines else ()

    def _block(self, element: Element) -> Iterator[Block]:
        if self._leaves_out(element):
            return
        base = self._base
        style = element.get("style-name")
        if element.tag in _UNKNOWN_BACKGROUNDS:
            self._base = PLAIN
        elif element.tag in DRAWN:
            fill = self._styles.find_fill(style, "graphic", "presentation")
            self._base = base if fill == "" else replace(base, background=fill or "")
        yield from self._readers.get(element.tag, self._blocks)(element)
        self._base = base

    def _leaves_out(self, element: Element) -> bool:
        """Return whether an element is hidden, or no text of the document; count it."""
        if element.tag in _COUNTED:
            self.left_out.add(*_COUNTED[element.tag])
        if element.tag in _LEFT_OUT:
            return True
        family = _FAMILIES.get(element.tag, "text")
        is_hidden = (
            element.get("display") in ("none", "false")
            or element.get("is-hidden") == "true"
            or self._styles.hides(family, element.get("style-name"))
            or any(
                part.tag == "hidden-paragraph" and part.get("is-hidden") == "true"
                for part in element
            )
        )
        if is_hidden:
            texts = (element.get("string-value"), *element.itertext())
            self.left_out.add("hidden passage", HIDDEN, any((text or "").strip() for text in texts))
        return is_hidden

    def _paragraph(self, element: Element) -> Iterator[Block]:
        spaced = self._read_spaced(element)
        text = keep_lines(spaced)
        style = element.get("style-name", "")
        stops = self._styles.count_tab_stops(style)
        rows = [TabbedLine(line, stops) for line in spaced.split("\n")]
        if element.tag == "p" and not self._lists.depth and are_rows(rows):
            self._tabbed += rows
            return
        if text and element.tag == "h":
            depth = min(count(element, "outline-level"), 6)
            label = self._lists.label_heading(element, style)
            shown = f"{label} {text}" if label and label != "-" else text
            yield Block(BlockKind.HEADING, shown, depth, self._anchors.take(shown))
        elif self._lists.depth:
            label = self._lists.take_label(style)
            if text or (self._lists.is_in_cell and label != "-"):
                yield make_item(label, text, self._lists.depth - 1)
        elif text:
            yield Block(BlockKind.TEXT, text)
        self._caption = text if self._styles.is_caption(style) else ""
        yield from self._show_drawings()
        self._caption = ""

    def _show_drawings(self) -> Iterator[Block]:
        """Yield the drawings and the notes of the text since the last ones."""
        drawn, self._drawn = self._drawn, []
        notes, self._notes = self._notes, []
        for drawing in drawn:
            yield from self._block(drawing)
        with self._lists.suspend():
            for mark, body in notes:
                for at, block in enumerate(self._blocks(body)):
                    text = block.text if at else f"{mark} {block.text}".strip()
                    yield replace(block, text=text)

    def _list(self, element: Element, *, is_in_cell: bool = False) -> Iterator[Block]:
        with self._lists.open(element, is_in_cell=is_in_cell) as is_open:
            for item in [element] if element.tag == "numbered-paragraph" else element:
                if is_open:
                    self._lists.begin_item(item)
                yield from self._blocks(item)

    def _table(self, element: Element) -> Iterator[Block]:
        yield from write_table(list(self._rows(element)))
        yield from self._show_drawings()

    def _rows(self, table: Element) -> Iterator[list[Cell]]:
        for row, is_header in list_rows(table):
            cells: list[Cell] = []
            inner: list[list[list[Cell]]] = []
            for element in row.findall("table-cell"):
                cell = Cell(
                    self._cell(element, PLAIN),
                    count(element, "number-columns-spanned"),
                    count(element, "number-rows-spanned"),
                    is_header,
                )
                tables = element.findall("table")
                times = min(count(element, "number-columns-repeated"), MOST_COLUMNS)
                cells += [cell] * times
                inner += [[row for nested in tables for row in self._rows(nested)]] * times
            yield from unfold_tables(cells, inner)

    def _cell(self, cell: Element, outer: ColouredSpan) -> str:
        """Return the text of a cell, with its note in brackets, without drawings and tables."""
        texts = list(filter(None, self._cell_lines(cell, outer)))
        notes = (line for part in cell if part.tag == "annotation" for line in part.iter("p"))
        if note := "\n".join(filter(None, map(self._line, notes))):
            texts.append(f"[Note: {note}]")
        return "\n".join(texts)

    def _cell_lines(self, parent: Element, outer: ColouredSpan) -> Iterator[str]:
        for part in parent:
            name = part.tag
            if name in ("p", "h"):
                yield "" if self._leaves_out(part) else self._line(part, outer)
            elif name == "list":
                for block in self._list(part, is_in_cell=True):
                    yield block.text.strip().removeprefix("- ")
            elif name in DRAWN:
                self._drawn.append(part)
            elif name not in ("annotation", "table"):
                yield from self._cell_lines(part, outer)

    def _frame(self, frame: Element) -> Iterator[Block]:
        """Yield the text, the table or the object in a frame, or its picture if it has none.

        Next to an object, the picture is a replacement for programs that cannot show the object.
        """
        if any(child.tag not in ("image", "desc", "title") for child in frame):
            yield from self._blocks(frame)
        else:
            caption = self._caption or frame.findtext("desc") or frame.findtext("title") or ""
            images = [self._read_picture(image, caption) for image in frame.findall("image")]
            # Further images are replacements for programs that cannot show the first one.
            shown = [picture for picture in images if not picture.fault] or images
            yield from (Block(BlockKind.TEXT, "", pictures=(each,)) for each in shown[:1])

    def _read_picture(self, image: Element, caption: str) -> Picture:
        if (data := image.findtext("binary-data")) is not None:
            return hold_picture(decode(data) or b"", caption)
        return self._archive.read_picture(image.get("href", "").removeprefix("./"), caption)

    def _object(self, element: Element) -> Iterator[Block]:
        """Yield the formula, the chart or the document of an object that is stored in the file.

        In a flat file, the element contains the object.
        """
        name = element.get("href", "").removeprefix("./").rstrip("/")
        folder = f"{self._folder}{name}/"
        if f"{folder}content.xml" in self._archive:
            root = self._archive.parse(f"{folder}content.xml")
        elif (stored := find_first(element, "document", "math")) is not None:
            root = stored
        else:
            self.left_out.add("embedded file", "the format is not read inside other files")
            return
        if root.tag == "math":
            yield Block(BlockKind.TEXT, write_formula(read_mathml(root)))
            return
        if (chart := root.find("body/chart/chart")) is not None:
            yield from self._chart(chart)
            return
        for block in self._read_document(root, folder):
            yield replace(block, anchor=None, level=min(block.level + 2, 6) if block.level else 0)

    def _chart(self, chart: Element) -> Iterator[Block]:
        """Yield the titles of a chart and the table of its values; count one without values."""
        titles = [
            " ".join(self._line(line) for line in find_all(chart.find(part), "p"))
            for part in ("title", "subtitle")
        ]
        yield from (Block(BlockKind.TEXT, title) for title in titles if title)
        table = [row for part in chart.findall("table") for row in self._rows(part)]
        rows = [
            [replace(cell, text="") if cell.text in _NO_VALUE else cell for cell in row]
            for row in table
        ]
        if not any(cell.text for row in rows for cell in row[1:] or row if not cell.is_header):
            self.left_out.add("chart", NO_VALUES, name=titles[0])
        yield from write_table(rows)

    def _line(self, element: Element, outer: ColouredSpan | None = None) -> str:
        """Return the text of a paragraph in its lines; text that nobody can see is counted."""
        return keep_lines(self._read_spaced(element, outer))

    def _read_spaced(self, element: Element, outer: ColouredSpan | None = None) -> str:
        """Return the text of a paragraph with its spaces, tabs and line breaks."""
        base = self._base if outer is None else outer
        style = self._styles.find_span("paragraph", element.get("style-name"), base)
        spans = list(self._spans(element, style))
        shown = [span for span in spans if not span.is_invisible()]
        self.left_out.add("hidden passage", BACKGROUND, len(shown) < len(spans))
        return clean_text(join_spans(map(_show_symbols, shown)))

    def _spans(self, element: Element, outer: ColouredSpan) -> Iterator[ColouredSpan]:
        # A line break of the file itself is a space.
        yield replace(outer, text=(element.text or "").replace("\n", " "))
        for child in element:
            yield from self._read_child(child, outer)
            yield replace(outer, text=(child.tail or "").replace("\n", " "))

    def _read_child(self, child: Element, outer: ColouredSpan) -> Iterator[ColouredSpan]:
        name = child.tag
        if name == "note":
            citation = child.find("note-citation")
            mark = "" if citation is None else f"[{''.join(citation.itertext()).strip()}]"
            self._notes += ((mark, body) for body in child.findall("note-body"))
            yield replace(outer, text=mark, script=Script.NOTE)
        elif name == "s":
            yield replace(outer, text=" " * min(count(child, "c"), MOST_REPEATED))
        elif name in self._signs:
            yield replace(outer, text=self._signs[name])
        elif name == "control":
            yield replace(outer, text=self._read_control(child))
        elif name in DRAWN:
            self._drawn.append(child)
        elif not self._leaves_out(child):
            style = self._styles.find_span("text", child.get("style-name"), outer)
            shown = list(self._spans(child, style))
            yield from shown
            address = child.get("href", "") if name == "a" else ""
            label = " ".join("".join(span.text for span in shown).split())
            if label and label != address and address.startswith(("http://", "https://")):
                self.links.append((label, address))

    def _control(self, element: Element) -> Iterator[Block]:
        if text := self._read_control(element):
            yield Block(BlockKind.TEXT, text)

    def _read_control(self, element: Element) -> str:
        """Return the value of a form field as displayed."""
        control = self._controls.get(element.get("control"))
        if control is None:
            return ""
        kind, label = control.tag, control.get("label", "")
        if kind in ("checkbox", "radio"):
            name = "state" if kind == "checkbox" else "selected"
            state = control.get(f"current-{name}") or control.get(name) or ""
            return f"{_CHECKED.get(state, _UNCHECKED)} {label}".strip()
        if kind == "listbox":
            chosen = (
                option.get("label", "")
                for option in control.findall("option")
                if "true" in (option.get("current-selected"), option.get("selected"))
            )
            return ", ".join(filter(None, chosen))
        paragraphs = " ".join(map(self._line, control.iter("p")))
        return paragraphs or control.get("current-value") or control.get("value") or label


def list_rows(table: Element) -> Iterator[tuple[Element, bool]]:
    """Yield the rows of a table, including grouped ones, and whether they are header rows."""
    for child in table:
        name = child.tag
        if name == "table-row":
            yield child, table.tag == "table-header-rows"
        elif name in ("table-header-rows", "table-rows", "table-row-group"):
            yield from list_rows(child)


def _show_symbols(span: ColouredSpan) -> ColouredSpan:
    text = replace_symbols(span.text, span.typeface)
    return span if text == span.text else replace(span, text=text)
