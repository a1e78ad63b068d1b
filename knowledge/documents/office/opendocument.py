"""Reads files of LibreOffice and other programs in the OpenDocument format: text, sheets, slides.

Tracked deletions, comments, tables of contents, and hidden text, sheets, rows and slides are left
out. Cell values are written as displayed, because the file contains that form.
"""

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from xml.etree.ElementTree import Element

from knowledge.documents.decoding import clean_text
from knowledge.documents.errors import SkippedError, WrongFormatError
from knowledge.documents.notation import Script, Span, join_spans, write_formula
from knowledge.documents.office.drawings import Box, find_backgrounds, order_shapes, read_mathml
from knowledge.documents.office.list_numbering import LEVELS, Level, count_item
from knowledge.documents.office.zipped_xml import (
    BACKGROUND,
    LOCKED,
    ZippedXml,
    count_field_in_header,
    end_code,
    find_all,
    find_children,
    make_page,
    read_properties,
    to_length,
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
from knowledge.documents.tables import (
    CONDITIONAL,
    MOST_COLUMNS,
    TOO_MANY_COLUMNS,
    Cell,
    SheetRow,
    close_gaps,
    fill_merged,
    unfold_tables,
    write_named_sheet,
    write_table,
)

_EXPECTED = "an OpenDocument file"
_LEFT_OUT = frozenset(
    {"tracked-changes", "annotation", "annotation-end", "table-of-content", "title", "desc"}
    | {"hidden-paragraph", "sequence-decls", "forms", "ruby-text", "number", "script"}
)
_SIGNS = {"tab": "\t", "line-break": "\n"}
_DRAWN = frozenset(
    {"frame", "rect", "line", "polyline", "polygon", "regular-polygon", "path", "circle", "g"}
    | {"ellipse", "page-thumbnail", "caption", "connector", "custom-shape"}
)
_DATA_STYLES = frozenset(
    f"{kind}-style"
    for kind in ("number", "currency", "percentage", "date", "time", "boolean", "text")
)
_HIDDEN = "hidden in the file"
_COMMENT = ("comment", "comments of reviewers are not text of the document")
_COUNTED = {
    "annotation": _COMMENT,
    "table-of-content": ("contents list", "the headings themselves are read"),
}
_FORMULA = ("formula", "the file stores no result: save it in LibreOffice")
_MOST_REPEATED = 1000
_MOST_COPIES = 200_000
"""Maximum number of cells of repeated rows."""
_DEEPEST_STYLE = 12
_WHITE = "#ffffff"
_UNKNOWN_BACKGROUNDS = frozenset({"table", "section", "g"})
_LINES = frozenset({"line", "polyline", "connector"})
_OUTLINE = "#outline"
_FIELDS_OF_PAGES = frozenset(
    {"sheet-name", "page-number", "page-count", "date", "time", "title", "file-name"}
)
_SHOWN_BY_SLIDES: dict[str | None, tuple[str, tuple[str | None, ...]]] = {
    None: ("background-objects-visible", ("true", None)),
    **{kind: (f"display-{kind}", ("true",)) for kind in ("footer", "date-time")},
}
"""What a slide shows of its master: by kind of shape, an attribute of the slide and its values."""
_NOT_ON_SCREEN = ("none", "printer")
_FURNITURE = frozenset({"page-number", "date-time", "header", "footer"})
_CHECKED = {"checked": "\u2612", "true": "\u2612", "": "\u2610"}


@dataclass(frozen=True, slots=True)
class _Text(Span):
    """Text with its colour and the colour behind it, such as `#ffffff`; empty if not known."""

    text: str = ""
    colour: str = ""
    background: str = ""

    def is_invisible(self) -> bool:
        """Return whether text has the colour of its background; spaces still part words."""
        return bool(self.text.strip() and self.colour) and self.colour == self.background


_PLAIN = _Text()


class _Styles:
    """The properties of styles by family and name; a style inherits those of its parent.

    `levels` are those of lists by the names of their styles.
    """

    def __init__(self, parts: list[Element | None]) -> None:
        self._styles: dict[tuple[str, str], Element] = {}
        self.levels: dict[str, dict[int, Level]] = {}
        self._formats: dict[str | None, Element] = {}
        self._found: dict[tuple[str, str, str], str | None] = {}
        for part in parts:
            for style in find_all(part, "style"):
                key = (style.get("family", ""), style.get("name", ""))
                self._styles[key] = style
            for style in part if part is not None else ():
                self._formats |= {
                    child.get("name"): child for child in style if child.tag in _DATA_STYLES
                }
            for kind in ("list-style", "outline-style"):
                for style in find_all(part, kind):
                    name = style.get("name") if kind == "list-style" else _OUTLINE
                    self.levels[name or ""] = _read_levels(style)

    def find(self, family: str, name: str | None, attribute: str) -> str | None:
        """Return an attribute of a style or of its properties, or None if it is not set."""
        key = (family, name or "", attribute)
        if key not in self._found:
            stated = (
                value
                for style in self._chain(family, name or "")
                for element in (style, *style)
                if (value := element.get(attribute)) is not None
            )
            self._found[key] = next(stated, None)
        return self._found[key]

    def hides(self, family: str, name: str | None) -> bool:
        """Return whether a style hides text, a table, or a slide."""
        is_hidden = self.find(family, name, "display") in ("none", "false")
        return is_hidden or self.find(family, name, "visibility") == "hidden"

    def hides_value(self, name: str | None) -> bool:
        """Return whether the number format of a cell style shows no value."""
        data_style = self._formats.get(self.find("table-cell", name, "data-style-name"))
        return data_style is not None and all(
            part.tag in ("text", "map", "text-properties") for part in data_style
        )

    def find_span(self, family: str, name: str | None, outer: _Text) -> _Text:
        """Return a span without text in the typeface of a style, inside of another typeface."""
        line = self.find(family, name, "text-line-through-style")
        position = (self.find(family, name, "text-position") or "").partition(" ")[0]
        script = outer.script
        if position == "super" or position.rstrip("%").isdecimal():
            script = Script.RAISED if position != "0%" else Script.LINE
        elif position == "sub" or position.startswith("-"):
            script = Script.LOWERED
        return replace(
            outer,
            text="",
            script=script,
            is_struck=line != "none" if line else outer.is_struck,
            colour=self.find_colour(family, name, "color") or outer.colour,
            background=self.find_colour(family, name, "background-color") or outer.background,
        )

    def find_colour(self, family: str, name: str | None, attribute: str) -> str:
        """Return a colour such as `#ffffff`, or an empty text if a style states none."""
        stated = (self.find(family, name, attribute) or "").lower()
        return stated if stated.startswith("#") else ""

    def find_fill(self, name: str | None, *families: str) -> str | None:
        """Return the colour of a shape or a slide: empty for none, None if it is not known."""
        for family in families:
            fill = self.find(family, name, "fill")
            if fill == "solid" and self.find(family, name, "opacity") in (None, "100%"):
                return self.find_colour(family, name, "fill-color") or None
            if fill is not None:
                return "" if fill == "none" else None
        return None

    def has_conditions(self, name: str | None) -> bool:
        """Return whether the appearance of cells in a style depends on conditions."""
        return self.find("table-cell", name, "apply-style-name") is not None

    def is_caption(self, name: str) -> bool:
        """Return whether a paragraph of a style is the caption of a figure."""
        return "Caption" in self._names(name)

    def is_code(self, name: str) -> bool:
        """Return whether a paragraph of a style is preformatted."""
        names = self._names(name)
        return any("Preformatted" in part or part == "Source_20_Code" for part in names)

    def _names(self, name: str) -> list[str]:
        chain = self._chain("paragraph", name)
        parents = (style.get("parent-style-name", "") for style in chain)
        return [name, *parents]

    def _chain(self, family: str, name: str) -> list[Element]:
        chain: list[Element] = []
        while (style := self._styles.get((family, name))) is not None:
            if len(chain) == _DEEPEST_STYLE:
                break
            chain.append(style)
            name = style.get("parent-style-name", "")
        return chain


@dataclass(slots=True)
class _List:
    """An open list: its style, the numbers of all its levels, and the label of its open item.

    `is_begun`: the open item has a label, which its further paragraphs do not repeat. `has_list`:
    the open item contains a list. `is_in_cell`: the list is in a cell of a table, where a number
    may be the only content.
    """

    style: str
    counts: list[int | None]
    label: str = ""
    is_begun: bool = False
    has_list: bool = False
    is_in_cell: bool = False
    start: int | None = None


class _Reader:
    """Reads the elements of a body; collects links and notes on what was left out.

    `root` is that of `content.xml`, or of a flat file. `folder` is that of a document inside
    another one, such as `Object 1/`.
    """

    def __init__(self, archive: ZippedXml, root: Element, folder: str = "") -> None:
        self.links: list[tuple[str, str]] = []
        self.left_out = LeftOutCounts()
        self.stated = root
        self._archive = archive
        self._folder = folder
        name = f"{folder}styles.xml"
        self._common = archive.parse(name) if name in archive else root
        self._styles = _Styles([self._common, self.stated])
        self._masters = {page.get("name"): page for page in self._common.iter("master-page")}
        self._anchors = Anchors()
        self._base = _PLAIN
        self._copies_left = _MOST_COPIES
        self._lists: list[_List] = []
        self._counted: dict[str | None, list[int | None]] = {}
        self._notes: list[tuple[str, Element]] = []
        self._repeated: list[str] = []
        self._shared: set[tuple[str | None, str | None]] = set()
        self._fields = dict(_SIGNS)
        self._controls = {
            control.get("id"): control
            for forms in self.stated.iter("forms")
            for control in forms.iter()
        }

        self._readers: dict[str, Callable[[Element], Iterator[Block]]] = {
            "p": self._paragraph,
            "h": self._paragraph,
            "numbered-paragraph": self._numbered,
            "control": self._control,
            "frame": self._frame,
            "object": self._object,
            "object-ole": self._object,
            "list": self._list,
            "table": self._table,
        }

    def read(self) -> tuple[str, tuple[Block, ...]]:
        """Return the kind of the body, such as `text`, and its blocks."""
        body = self.stated.find("body")
        parts = {child.tag: child for child in (body if body is not None else ())}
        deleted = len(list(find_all(body, "deletion")))
        self.left_out.add("deleted passage", "marked as deleted", deleted)
        if "spreadsheet" in parts:
            return "spreadsheet", tuple(self._sheets(parts["spreadsheet"]))
        if "presentation" in parts:
            slides = tuple(self._slides(parts["presentation"]))
            return "presentation", (*write_page_headers(self._repeated), *slides)
        for kind in ("text", "drawing", "chart"):
            if kind in parts:
                is_plain = kind == "text" and not self._has_backgrounds()
                self._base = _Text(background=_WHITE if is_plain else "")
                headers = self._page_headers(self._masters.values())
                return kind, (*headers, *self._blocks(parts[kind]))
        raise WrongFormatError(f"expected {_EXPECTED} with text, sheets or slides, found another")

    def _has_backgrounds(self) -> bool:
        """Return whether the pages have a colour or drawings that text can lie on."""
        parts = (self._common, self.stated)
        return any(
            element.tag in _DRAWN
            or (
                element.tag == "page-layout-properties"
                and (
                    element.get("background-color", "transparent") not in ("transparent", _WHITE)
                    or element.get("fill", "none") != "none"
                    or element.find("background-image") is not None
                )
            )
            for part in parts
            for element in part.iter()
        )

    def _page_headers(self, masters: Iterable[Element]) -> Iterator[Block]:
        """Return the lines of page headers and footers, without duplicates."""
        parts = (part for page in masters for part in page if part.get("display") != "false")
        return write_page_headers(self._line(line) for part in parts for line in part.iter("p"))

    def _printed_headers(self, table: Element) -> Iterator[Block]:
        """Return the printed headers of the first sheet that has them; those with fields are
        counted.
        """
        name = self._styles.find("table", table.get("style-name"), "master-page-name")
        master = self._masters.pop(name, None)
        for line in list(find_all(master, "p")):
            parts = list(line.iter())
            if any(part.tag in _FIELDS_OF_PAGES for part in parts):
                literals = (line.text or "", *(part.tail or "" for part in parts[1:]))
                count_field_in_header(" ".join(literals), self.left_out)
                line.clear()
        return self._page_headers(() if master is None else [master])

    def _blocks(self, parent: Element) -> Iterator[Block]:
        code: list[str] = []
        for child in parent:
            name = child.tag
            style = child.get("style-name", "")
            if name == "p" and not self._lists and self._styles.is_code(style):
                code.append(self._raw(child))
                continue
            yield from end_code(code)
            yield from self._block(child, name)
        yield from end_code(code)

    def _block(self, element: Element, name: str) -> Iterator[Block]:
        if name in _COUNTED:
            self.left_out.add(*_COUNTED[name])
        if name in _LEFT_OUT or self._hides(element, name):
            return
        base = self._base
        if name in _UNKNOWN_BACKGROUNDS:
            self._base = _PLAIN
        yield from self._readers.get(name, self._blocks)(element)
        self._base = base

    def _control(self, element: Element) -> Iterator[Block]:
        if text := self._read_control(element):
            yield Block(BlockKind.TEXT, text)

    def _hides(self, element: Element, name: str) -> bool:
        """Return whether an element is hidden; count it."""
        style = element.get("style-name")
        family = {"p": "paragraph", "h": "paragraph", "table": "table"}.get(name, "")
        hidden = (
            element.get("display") in ("none", "false")
            or element.get("is-hidden") == "true"
            or (family and self._styles.hides(family, style))
            or any(
                child.get("is-hidden") == "true" for child in element.findall("hidden-paragraph")
            )
        )
        if hidden and any((text or "").strip() for text in element.itertext()):
            self.left_out.add("hidden passage", _HIDDEN)
        return bool(hidden)

    def _table(self, element: Element) -> Iterator[Block]:
        yield from write_table(list(self._rows(element)))
        for row, _ in _list_rows(element):
            for cell in row.findall("table-cell"):
                yield from self._drawings(cell)
        yield from self._end_notes()

    def _frame(self, frame: Element) -> Iterator[Block]:
        """Yield the text, the table or the object in a frame, or its picture if it has none.

        Next to an object, the picture is a replacement for programs that cannot show the object.
        """
        if all(child.tag in ("image", "desc", "title") for child in frame):
            pictures = tuple(self._find_pictures(frame))
            yield from (Block(BlockKind.TEXT, "", pictures=pictures),) if pictures else ()
        else:
            yield from self._blocks(frame)

    def _object(self, element: Element) -> Iterator[Block]:
        """Yield the formula, the chart or the document of an object that is stored in the file.

        In a flat file, the element contains the object.
        """
        name = (element.get("href", "")).removeprefix("./").rstrip("/")
        folder = f"{self._folder}{name}/"
        if f"{folder}content.xml" in self._archive:
            root = self._archive.parse(f"{folder}content.xml")
        elif (element.tag, len(element)) == ("object", 1):
            root = element[0]
        else:
            self.left_out.add("embedded file", "the format is not read inside other files")
            return
        if root.tag == "math":
            yield Block(BlockKind.TEXT, write_formula(read_mathml(root)))
            return
        for chart in root.iter("chart"):
            if chart.tag == "chart" and (table := chart.find("table")) is not None:
                yield from self._chart(chart, table)
                return
        inner = _Reader(self._archive, root, folder)
        for block in inner.read()[1]:
            yield replace(block, anchor=None, level=min(block.level + 2, 6) if block.level else 0)
        self.left_out.take(inner.left_out.list())

    def _chart(self, chart: Element, table: Element) -> Iterator[Block]:
        for part in ("title", "subtitle"):
            text = " ".join(self._line(child) for child in find_all(chart.find(part), "p"))
            yield from (Block(BlockKind.TEXT, text),) if text else ()
        yield from write_table(list(self._rows(table)))

    def _paragraph(self, element: Element) -> Iterator[Block]:
        text = self._line(element)
        style = element.get("style-name", "")
        if text and element.tag == "h":
            depth = min(_count(element, "outline-level"), 6)
            label = self._label_heading(element, style)
            shown = f"{label} {text}" if label and label != "-" else text
            yield Block(BlockKind.HEADING, shown, depth, self._anchors.take(shown))
        elif self._lists:
            label = self._take_label(style)
            if text or (self._lists[-1].is_in_cell and label != "-"):
                yield make_item(label, text, len(self._lists) - 1)
        elif text:
            yield Block(BlockKind.TEXT, text)
        yield from self._drawings(element, text if self._styles.is_caption(style) else "")
        yield from self._end_notes()

    def _end_notes(self) -> Iterator[Block]:
        """Yield the notes to which the text since the last notes refers, each after its mark."""
        notes, self._notes = self._notes, []
        lists, self._lists = self._lists, []
        for mark, body in notes:
            for at, block in enumerate(self._blocks(body)):
                text = block.text if at else f"{mark} {block.text}".strip()
                yield replace(block, text=text)
        self._lists = lists

    def _label_heading(self, element: Element, style: str) -> str:
        """Return the number of a heading, from its list or from the numbering of chapters."""
        if element.get("is-list-header") == "true":
            return ""
        if self._lists:
            return self._take_label(style)
        if self._styles.find("paragraph", style, "list-style-name") == "":
            return _read_number(element)
        level = min(_count(element, "outline-level"), LEVELS) - 1
        counts = self._counted.setdefault(_OUTLINE, [None] * LEVELS)
        levels = self._styles.levels.get(_OUTLINE, {})
        return _read_number(element) or count_item(levels, counts, level, self.left_out)

    def _numbered(self, element: Element) -> Iterator[Block]:
        label = _read_number(element)
        for child in element:
            for block in self._block(child, child.tag):
                is_text = label and block.kind is BlockKind.TEXT
                yield make_item(label, block.text, 0) if is_text else block

    def _take_label(self, style: str) -> str:
        """Return the label of the next paragraph of the open item; further ones are indented."""
        current = self._lists[-1]
        if current.is_begun:
            return " " * len(current.label)
        current.is_begun = True
        name = current.style or self._styles.find("paragraph", style, "list-style-name") or ""
        levels = self._styles.levels.get(name, {})
        level = len(self._lists) - 1
        label = count_item(levels, current.counts, level, self.left_out, current.start)
        current.label = current.label or label
        return current.label

    def _find_frames(self, element: Element) -> tuple[list[Picture], list[Element]]:
        """Return the pictures in the frames of a paragraph or a cell, and its other drawings."""
        pictures: list[Picture] = []
        drawn: list[Element] = []
        waiting = [element]
        while waiting:
            node = waiting.pop()
            name = node.tag
            if name == "frame":
                contents = [child for child in node if child.tag not in _LEFT_OUT]
                if all(child.tag == "image" for child in contents):
                    pictures += self._find_pictures(node)
                else:
                    drawn.append(node)
            elif name in _DRAWN:
                drawn.append(node)
            elif name not in _LEFT_OUT and not (name == "table" and node is not element):
                waiting.extend(reversed(list(node)))
        return pictures, drawn

    def _find_pictures(self, frame: Element) -> Iterator[Picture]:
        """Yield the picture of a frame, with the text that describes it."""
        texts = (frame.find(name) for name in ("desc", "title"))
        caption = next((text.text for text in texts if text is not None and text.text), "")
        for image in frame.findall("image"):
            name = image.get("href", "")
            if (data := image.find("binary-data")) is not None:
                yield Picture(caption, data="".join((data.text or "").split()))
                return
            picture = self._archive.read_picture(name, caption)
            if picture is not None:
                yield picture
                return
        self.left_out.add("picture", "missing in the file, or too large", name=caption)

    def _drawings(self, element: Element, caption: str = "") -> Iterator[Block]:
        """Yield the pictures and the other drawings in a paragraph or a cell, or on a sheet."""
        pictures, drawn = self._find_frames(element)
        if pictures and caption:
            pictures[-1] = replace(pictures[-1], caption=caption)
        if pictures:
            yield Block(BlockKind.TEXT, "", pictures=tuple(pictures))
        for drawing in drawn:
            yield from self._block(drawing, drawing.tag)

    def _list(self, element: Element, *, is_in_cell: bool = False) -> Iterator[Block]:
        outer = self._lists[-1] if self._lists else None
        is_in_cell = is_in_cell or (outer is not None and outer.is_in_cell)
        style = element.get("style-name") or (outer.style if outer is not None else "")
        level = len(self._lists)
        goes_on = element.get("continue-numbering") == "true"
        if outer is not None:
            counts = outer.counts
            if outer.has_list and not goes_on:
                counts[level:] = [None] * (LEVELS - level)
            outer.has_list = True
        else:
            name = style if goes_on else element.get("continue-list")
            counts = list(self._counted.get(name, ())) or [None] * LEVELS
        if level >= LEVELS:
            yield from self._blocks(element)
            return
        self._lists.append(_List(style, counts, is_in_cell=is_in_cell))
        for item in element:
            start = to_number(item.get("start-value"), -1)
            is_header = item.tag == "list-header"
            self._lists[-1] = replace(
                self._lists[-1],
                label="  " if is_header else _read_number(item),
                is_begun=is_header,
                has_list=False,
                start=None if start < 0 else start,
            )
            yield from self._blocks(item)
        self._lists.pop()
        if outer is None:
            self._counted |= {element.get("id") or style: counts, style: counts}

    def _line(self, element: Element, outer: _Text | None = None) -> str:
        """Return the text of a paragraph on one line; text that nobody can see is counted."""
        base = self._base if outer is None else outer
        spans = list(
            self._spans(
                element, self._styles.find_span("paragraph", element.get("style-name"), base)
            )
        )
        shown = [span for span in spans if not span.is_invisible()]
        self.left_out.add("hidden passage", BACKGROUND, len(shown) < len(spans))
        return " ".join(clean_text(join_spans(shown)).split())

    def _raw(self, element: Element) -> str:
        return join_spans(self._spans(element, _PLAIN))

    def _spans(self, element: Element, outer: _Text) -> Iterator[_Text]:
        yield replace(outer, text=element.text or "")
        for child in element:
            yield from self._read_child(child, child.tag, outer)
            yield replace(outer, text=child.tail or "")

    def _read_child(self, child: Element, name: str, outer: _Text) -> Iterator[_Text]:
        style = child.get("style-name")
        if name == "note":
            citation = child.find("note-citation")
            mark = "" if citation is None else f"[{''.join(citation.itertext()).strip()}]"
            self._notes += ((mark, body) for body in child.findall("note-body"))
            yield replace(outer, text=mark, script=Script.NOTE)
        elif name == "annotation":
            self.left_out.add(*_COMMENT)
        elif name == "s":
            yield replace(outer, text=" " * min(_count(child, "c"), _MOST_REPEATED))
        elif name in self._fields:
            yield replace(outer, text=self._fields[name])
        elif name == "control":
            yield replace(outer, text=self._read_control(child))
        elif (
            self._styles.hides("text", style)
            or child.get("is-hidden") == "true"
            or child.get("display") == "none"
        ):
            self.left_out.add("hidden passage", _HIDDEN, name != "hidden-paragraph")
        elif name not in _LEFT_OUT and name not in _DRAWN:
            shown = list(self._spans(child, self._styles.find_span("text", style, outer)))
            yield from shown
            self._note_link(child, name, "".join(span.text for span in shown))

    def _note_link(self, element: Element, name: str, shown: str) -> None:
        address = element.get("href", "") if name == "a" else ""
        label = " ".join(shown.split())
        if label and label != address and address.startswith(("http://", "https://")):
            self.links.append((label, address))

    def _read_control(self, element: Element) -> str:
        """Return the value of a form field as displayed."""
        control = self._controls.get(element.get("control"))
        if control is None:
            return ""
        kind, label = control.tag, control.get("label", "")
        if kind in ("checkbox", "radio"):
            stated = "current-state" if kind == "checkbox" else "current-selected"
            state = control.get(stated) or control.get(stated[8:]) or ""
            return f"{_CHECKED.get(state, _CHECKED[''])} {label}".strip()
        if kind == "listbox":
            chosen = (
                option.get("label", "")
                for option in control.findall("option")
                if "true"
                in (
                    option.get("current-selected", ""),
                    option.get("selected", ""),
                )
            )
            return ", ".join(filter(None, chosen))
        paragraphs = [self._line(paragraph) for paragraph in control.iter("p")]
        values = (control.get(name) for name in ("current-value", "value"))
        return " ".join(paragraphs) or next(filter(None, values), label)

    def _rows(self, table: Element) -> Iterator[list[Cell]]:
        for row, is_header in _list_rows(table):
            cells: list[Cell] = []
            inner: list[list[list[Cell]]] = []
            for element in row.findall("table-cell"):
                cell = Cell(
                    self._cell(element, _PLAIN),
                    _count(element, "number-columns-spanned"),
                    _count(element, "number-rows-spanned"),
                    is_header,
                )
                tables = element.findall("table")
                times = min(_count(element, "number-columns-repeated"), MOST_COLUMNS)
                cells += [cell] * times
                inner += [[row for nested in tables for row in self._rows(nested)]] * times
            yield from unfold_tables(cells, inner)

    def _cell(self, cell: Element, outer: _Text) -> str:
        """Return the text of a cell, with its note in brackets, without drawings and tables."""
        texts: list[str] = []
        notes: list[str] = []
        waiting = [(child, texts) for child in reversed(list(cell))]
        while waiting:
            part, target = waiting.pop()
            name = part.tag
            if name in ("p", "h"):
                if not self._hides(part, name):
                    target.append(self._line(part, outer if target is texts else _PLAIN))
            elif name == "list" and target is texts:
                items = (
                    block.text.strip().removeprefix("- ")
                    for block in self._list(part, is_in_cell=True)
                )
                target += filter(None, items)
            elif name != "table" and name not in _DRAWN:
                inner = notes if name == "annotation" else target
                waiting += [(child, inner) for child in reversed(list(part))]
        note = " ".join(filter(None, notes))
        return " ".join(filter(None, (*texts, f"[{note}]" if note else "")))

    def _sheets(self, body: Element) -> Iterator[Block]:
        headers = list(_list_headers(body))
        for table in body.findall("table"):
            name = " ".join((table.get("name") or "Sheet").split())
            if self._styles.hides("table", table.get("style-name")):
                self.left_out.add("hidden sheet", _HIDDEN, name=name)
                continue
            self._base = _Text(background=self._find_sheet_colour(table, name))
            headers_of_sheet = {row for sheet, row in headers if sheet == table.get("name")}
            rows = self._sheet_rows(table)
            after = (*self._drawings(table), *self._end_notes())
            yield from write_named_sheet(
                name, rows, headers_of_sheet, self._printed_headers(table), after
            )

    def _sheet_rows(self, table: Element) -> list[SheetRow]:
        columns = _list_columns(table)
        hidden = {at for at, column in columns.items() if _is_collapsed(column)}
        self.left_out.add("hidden column", _HIDDEN, len(hidden))
        rows: list[SheetRow] = []
        merged: list[tuple[range, range]] = []
        number, hidden_rows = 1, 0
        for row, _ in _list_rows(table):
            times = _count(row, "number-rows-repeated")
            cells = self._sheet_cells(row, columns, number, merged)
            if _is_collapsed(row):
                self.left_out.add("hidden row", _HIDDEN, times)
                hidden_rows += times
                number += times
                continue
            cells = {at: text for at, text in cells.items() if at not in hidden}
            if cells or row.find("covered-table-cell") is not None:
                shown = min(times, _MOST_REPEATED, 1 + self._copies_left // max(1, len(cells)))
                self._copies_left -= (shown - 1) * len(cells)
                self.left_out.add("row", "further repetitions are not shown", times - shown)
                rows += (SheetRow(number + at, dict(cells), hidden_rows) for at in range(shown))
            number += times
        by_number = {row.number: row for row in rows}
        for spanned_rows, spanned_columns in merged:
            fill_merged(by_number, spanned_rows, spanned_columns)
        return close_gaps(rows, hidden)

    def _sheet_cells(
        self,
        row: Element,
        columns: dict[int, Element],
        number: int,
        merged: list[tuple[range, range]],
    ) -> dict[int, str]:
        """Return the texts of the row with a 1-based number; add its merged cells to `merged`."""
        cells: dict[int, str] = {}
        column = 0
        for cell in row:
            times = _count(cell, "number-columns-repeated")
            if cell.tag == "table-cell":
                style = (
                    cell.get("style-name")
                    or row.get("default-cell-style-name")
                    or columns.get(column, row).get("default-cell-style-name")
                )
                text = self._sheet_cell(cell, style)
                own = range(column, min(column + times, MOST_COLUMNS)) if text else range(0)
                cells.update(dict.fromkeys(own, text))
                if text and column + times > MOST_COLUMNS:
                    self.left_out.add("cell", TOO_MANY_COLUMNS)
                spans = [_count(cell, f"number-{name}-spanned") for name in ("rows", "columns")]
                if text and spans != [1, 1]:
                    merged.append(
                        (range(number, number + spans[0]), range(column, column + spans[1]))
                    )
            column += times
        return cells

    def _sheet_cell(self, cell: Element, style_name: str | None) -> str:
        """Return the text of a cell, or its value if the file does not contain its text."""
        style = self._styles.find_span("table-cell", style_name, self._base)
        if self._styles.has_conditions(style_name):
            style = replace(style, background="")
        text = self._cell(cell, style)
        if text or any("".join(line.itertext()).strip() for line in cell.iter("p")):
            return text
        kind = cell.get("value-type")
        if kind is None and cell.get("formula") is not None:
            self.left_out.add(*_FORMULA)
        stated = cell.get(f"{kind}-value") or cell.get("value") or ""
        value = replace(style, text=" ".join(clean_text(stated).split()))
        if value.text and self._styles.hides_value(style_name):
            self.left_out.add("value", "hidden by the number format")
            return ""
        if value.is_invisible():
            self.left_out.add("value", BACKGROUND)
            return ""
        return value.text.upper() if kind == "boolean" else join_spans([value])

    def _find_sheet_colour(self, table: Element, name: str) -> str:
        """Return the colour behind the cells of a sheet, or an empty text if it may depend on
        conditions; count those that strike out cells.
        """
        conditions = list(find_children(table.find("conditional-formats"), "conditional-format"))
        for condition in conditions:
            for rule in condition.findall("condition"):
                style = rule.get("apply-style-name", "").replace(" ", "_20_")
                if self._styles.find_span("table-cell", style, _PLAIN).is_struck:
                    place = condition.get("target-range-address", name)
                    self.left_out.add(*CONDITIONAL, name=place)
        return "" if conditions else _WHITE

    def _slides(self, body: Element) -> Iterator[Block]:
        declared = {(part.tag, part.get("name")): part.text or "" for part in body}
        self._fields["page-number"] = ""
        for number, slide in enumerate(body.findall("page"), start=1):
            if self._styles.hides("drawing-page", slide.get("style-name")):
                self.left_out.add("hidden slide", _HIDDEN, name=str(number))
                continue
            self._repeated += self._read_shared(slide, declared)
            shown = [child for child in slide if child.tag != "notes"]
            bases = self._find_bases(slide, shown)
            shapes = order_shapes(shown, _find_box)
            for notes in slide.findall("notes"):
                shapes += (child for child in notes if child.get("class") not in _FURNITURE)
            titles: list[str] = []
            below: list[Block] = []
            for shape in shapes:
                self._base = bases.get(shape, _PLAIN)
                if shape.get("class") == "title":
                    titles += map(self._line, shape.iter("p"))
                else:
                    below += self._block(shape, shape.tag)
            title = " ".join(filter(None, titles))
            if title or below:
                named = title or f"Slide {number}"
                yield Block(BlockKind.HEADING, named, 2, f"slide={number}")
                yield from below

    def _read_shared(
        self, slide: Element, declared: Mapping[tuple[str, str | None], str]
    ) -> Iterator[str]:
        """Yield the lines that a slide shows of its master, each once, and its footer."""
        self._base = _PLAIN
        master = slide.get("master-page-name")
        for kind, (name, shown) in _SHOWN_BY_SLIDES.items():
            if self._styles.find("drawing-page", slide.get("style-name"), name) not in shown:
                continue
            yield declared.get((f"{kind}-decl", slide.get(f"use-{kind}-name")), "")
            is_new = (master, kind) not in self._shared
            self._shared.add((master, kind))
            for shape in self._masters.get(master, ()) if is_new else ():
                is_shown = shape.tag in _DRAWN and shape.get("display") not in _NOT_ON_SCREEN
                if is_shown and shape.get("class") == kind:
                    yield from map(self._line, shape.iter("p"))

    def _find_bases(self, slide: Element, shapes: Sequence[Element]) -> dict[Element, _Text]:
        """Return the colour of the text of each shape, and the colour behind it."""
        master = self._masters.get(slide.get("master-page-name"), ())
        page: str | None = _WHITE
        for part in (slide, master):
            style = part.get("style-name") if isinstance(part, Element) else None
            # A slide without a fill has that of its master.
            if self._styles.find("drawing-page", style, "fill") not in (None, "none"):
                page = self._styles.find_fill(style, "drawing-page")
                break
        below = [
            _find_box(shape)
            for shape in master
            if shape.get("class") is None and self._find_fill(shape) != ""
        ]
        places = ((self._find_fill(shape), _find_box(shape)) for shape in shapes)
        backgrounds = find_backgrounds(places, page, below)
        return {
            shape: _Text(
                colour=self._styles.find_colour("graphic", shape.get("style-name"), "color"),
                background=background or "",
            )
            for shape, background in zip(shapes, backgrounds, strict=True)
        }

    def _find_fill(self, shape: Element) -> str | None:
        """Return the fill of a shape: empty for none, None if it is not known."""
        if shape.tag not in _DRAWN or shape.tag in _LINES:
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
    reader = _Reader(archive, root)
    kind, blocks = reader.read()
    meta = archive.parse("meta.xml") if "meta.xml" in archive else root
    stated = read_properties(meta.find("meta"))
    title = "" if kind == "spreadsheet" else first_heading(blocks)
    title = title or stated.title
    return make_page(source, archive, stated, title, blocks, reader.links, reader.left_out)


def _pack(data: bytes) -> bytes:
    """Return a flat file, which is one XML document, as an archive of that part."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("content.xml", data)
    return packed.getvalue()


def _read_levels(style: Element) -> dict[int, Level]:
    """Return the levels of a list by their 0-based number; one without numbers is a bullet."""
    elements = {_count(element, "level"): element for element in style}
    levels: dict[int, Level] = {}
    for at, element in elements.items():
        above = range(max(1, at - _count(element, "display-levels") + 1), at)
        numbers = [place for place in above if elements.get(place, element).get("num-format")]
        number = ".".join(f"%{place}" for place in (*numbers, at))
        before, after = (element.get(f"num-{name}", "") for name in ("prefix", "suffix"))
        kind = element.get("num-format") or "bullet"
        if element.get("num-letter-sync") == "true":
            kind = {"a": "lowerLetter", "A": "upperLetter"}.get(kind, kind)
        start = to_number(element.get("start-value"), 1)
        levels[at - 1] = Level(kind, f"{before}{number}{after}", start)
    return levels


def _find_box(shape: Element) -> Box | None:
    """Return the box of a shape, or None if it does not state one."""
    lengths = [shape.get(name) for name in ("x", "y", "width", "height")]
    return None if None in lengths else Box(*map(to_length, lengths))


def _read_number(element: Element) -> str:
    """Return the label that the file states for an item or a heading; mostly it states none."""
    number = element.find("number")
    return " ".join((number.text or "").split()) if number is not None else ""


def _list_rows(table: Element) -> Iterator[tuple[Element, bool]]:
    """Yield the rows of a table, including grouped ones, and whether they are header rows."""
    for child in table:
        name = child.tag
        if name == "table-row":
            yield child, table.tag == "table-header-rows"
        elif name in ("table-header-rows", "table-rows", "table-row-group"):
            yield from _list_rows(child)


def _list_headers(body: Element) -> Iterator[tuple[str, int]]:
    """Yield the sheet and the 1-based row of each header of a range, such as that of a filter."""
    for declared in body.iter("database-range"):
        first = (declared.get("target-range-address", "")).partition(":")[0]
        sheet, _, cell = first.rpartition(".")
        if declared.get("contains-header") != "false":
            name = sheet.removeprefix("$").removeprefix("'").removesuffix("'")
            yield name.replace("''", "'"), to_number(cell.lstrip("$" + ascii_uppercase))


def _list_columns(table: Element) -> dict[int, Element]:
    """Return the definitions of the columns of a table by their 0-based index."""
    columns: dict[int, Element] = {}
    at = 0
    for column in table.iter("table-column"):
        times = _count(column, "number-columns-repeated")
        columns.update(dict.fromkeys(range(at, min(at + times, MOST_COLUMNS)), column))
        at += times
    return columns


def _is_collapsed(part: Element) -> bool:
    """Return whether a row or a column is hidden; one hidden only by a filter is still valid."""
    return part.get("visibility") == "collapse"


def _count(element: Element, name: str) -> int:
    return max(1, to_number(element.get(name)))
