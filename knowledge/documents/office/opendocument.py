"""Reads files of LibreOffice and other programs in the OpenDocument format: text, sheets, slides.

Tracked deletions, comments, tables of contents, and hidden text, sheets, rows and slides are left
out. Cell values are written as displayed, because the file contains that form.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from knowledge.documents.decoding import clean_text
from knowledge.documents.errors import WrongFormatError
from knowledge.documents.notation import Script, Span, join_spans, write_formula
from knowledge.documents.office.drawings import read_mathml
from knowledge.documents.office.word_numbering import write_number
from knowledge.documents.office.zipped_xml import (
    ZippedXml,
    choose_title,
    find_all,
    find_child,
    find_children,
    get_attribute,
    local_name,
    to_number,
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
from knowledge.documents.tables import MOST_COLUMNS, Cell, SheetRow, write_sheet, write_table

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_EXPECTED = "an OpenDocument file"
_LEFT_OUT = frozenset(
    {"tracked-changes", "annotation", "annotation-end", "table-of-content", "hidden-text"}
    | {"hidden-paragraph", "sequence-decls", "note-citation", "forms", "title", "desc", "ruby-text"}
)
_SIGNS = {"tab": "\t", "line-break": "\n"}
_NUMBERS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
_UNSEEN = "collapse"  # rows hidden by a filter are still valid
_HIDDEN = "hidden in the file"
_MOST_REPEATED = 1000
_PLAIN = Span("")


class _Styles:
    """The relevant properties of styles: hidden text and numbered lists."""

    def __init__(self, parts: "list[Element | None]") -> None:
        self.hidden: set[str] = set()
        self._numbered: dict[str, dict[int, Element]] = {}
        self._code: set[str] = set()
        self._spans: dict[str, Span] = {}
        self._captions = {"Caption"}
        for part in parts:
            for style in find_all(part, "style"):
                self._read(style)
            for style in find_all(part, "list-style"):
                levels = find_children(style, "list-level-style-number")
                self._numbered[get_attribute(style, "name") or ""] = {
                    _count(level, "level"): level for level in levels
                }

    def _read(self, style: "Element") -> None:
        name = get_attribute(style, "name") or ""
        for properties in find_children(style, "text-properties"):
            line = get_attribute(properties, "text-line-through-style") or "none"
            position = (get_attribute(properties, "text-position") or "").partition(" ")[0]
            script = Script.LINE
            if position == "super" or position.rstrip("%").isdecimal():
                script = Script.RAISED if position != "0%" else Script.LINE
            elif position == "sub" or position.startswith("-"):
                script = Script.LOWERED
            self._spans[name] = Span("", script, line != "none")
        if any(get_attribute(properties, "display") in ("none", "false") for properties in style):
            self.hidden.add(name)
        if any(
            get_attribute(properties, "visibility") == "hidden"
            for properties in find_children(style, "drawing-page-properties")
        ):
            self.hidden.add(name)
        parent = get_attribute(style, "parent-style-name") or ""
        if "Preformatted" in parent or "Preformatted" in name or parent == "Source_20_Code":
            self._code.add(name)
        if parent in self._captions:
            self._captions.add(name)

    def find_start(self, list_style: str, level: int) -> int:
        """Return the number of the first item of a list at a 1-based level."""
        element = self._numbered.get(list_style, {}).get(level)
        return 1 if element is None else _count(element, "start-value")

    def label(self, list_style: str, level: int, number: int) -> str:
        """Return the label of a list item at a 1-based level: `2.`, `(a)`, `-`."""
        element = self._numbered.get(list_style, {}).get(level)
        if element is None:
            return "-"
        signs = [get_attribute(element, f"num-{name}") or "" for name in ("prefix", "suffix")]
        written = write_number(number, _NUMBERS.get(get_attribute(element, "num-format") or "", ""))
        return f"{signs[0]}{written}{signs[1]}".strip() or "-"

    def find_span(self, name: str) -> Span:
        """Return a span without text in the typeface of a style."""
        return self._spans.get(name, _PLAIN)

    def is_caption(self, name: str) -> bool:
        """Return whether a paragraph of a style is the caption of a figure."""
        return name in self._captions

    def is_code(self, name: str) -> bool:
        """Return whether a paragraph of a style is preformatted."""
        return name in self._code or "Preformatted" in name or name == "Source_20_Code"


@dataclass(slots=True)
class _List:
    """An open list: its style, and the number reached so far."""

    style: str
    count: int = 0
    label: str = ""


class _Reader:
    """Reads the elements of a body; collects links and notes on what was left out."""

    def __init__(self, styles: _Styles, archive: ZippedXml) -> None:
        self._archive = archive
        self.links: list[tuple[str, str]] = []
        self.left_out = LeftOutCounts()
        self._styles = styles
        self._anchors = Anchors()
        self._lists: list[_List] = []
        self._counted: dict[str, int] = {}
        self._notes: list[Element] = []

    def blocks(self, parent: "Element") -> Iterator[Block]:
        code: list[str] = []
        for child in parent:
            name = local_name(child.tag)
            if name == "p" and self._styles.is_code(get_attribute(child, "style-name") or ""):
                code.append(self._raw(child))
                continue
            if code:
                yield make_code("\n".join(code).strip("\n"))
                code = []
            yield from self._block(child, name)
        if code:
            yield make_code("\n".join(code).strip("\n"))

    def _block(self, element: "Element", name: str) -> Iterator[Block]:
        if name in _LEFT_OUT:
            return
        if name in ("p", "h"):
            yield from self._paragraph(element, name)
        elif name == "frame" and (pictures := tuple(self._drawn(element))):
            yield Block(BlockKind.TEXT, "", pictures=pictures)
        elif name == "object":
            yield from self._object(element)
        elif name == "list":
            yield from self._list(element)
        elif name == "table":
            yield from write_table(list(self._rows(element)))
        else:
            yield from self.blocks(element)

    def _object(self, element: "Element") -> Iterator[Block]:
        """Yield the formula or the chart of an object that is stored in the file."""
        name = f"{(get_attribute(element, 'href') or '').removeprefix('./')}/content.xml"
        if name not in self._archive:
            return
        root = self._archive.parse(name)
        if local_name(root.tag) == "math":
            yield Block(BlockKind.TEXT, write_formula(read_mathml(root)))
        for chart in find_all(root, "chart"):
            for part in ("title", "subtitle"):
                text = " ".join(
                    self.line(child) for child in find_all(find_child(chart, part), "p")
                )
                yield from (Block(BlockKind.TEXT, text),) if text else ()
            for table in find_children(chart, "table"):
                yield from write_table(list(self._rows(table)))

    def _paragraph(self, element: "Element", name: str) -> Iterator[Block]:
        text = self.line(element)
        notes, self._notes = self._notes, []
        if text and name == "h":
            depth = min(_count(element, "outline-level"), 6)
            yield Block(BlockKind.HEADING, text, depth, self._anchors.take(text))
        elif text and self._lists:
            label = self._lists[-1].label
            yield make_item(label, text, len(self._lists) - 1)
            self._lists[-1].label = " " * len(label)
        elif text:
            yield Block(BlockKind.TEXT, text)
        caption = (
            text if self._styles.is_caption(get_attribute(element, "style-name") or "") else ""
        )
        pictures, boxes = self._find_frames(element, caption)
        if pictures:
            yield Block(BlockKind.TEXT, "", pictures=pictures)
        for box in boxes:
            yield from self._block(box, local_name(box.tag))
        for note in notes:
            yield from self.blocks(note)

    def _find_frames(
        self, element: "Element", caption: str
    ) -> "tuple[tuple[Picture, ...], list[Element]]":
        """Return the pictures in the frames of a paragraph, and the texts in its frames."""
        pictures: list[Picture] = []
        boxes: list[Element] = []
        waiting = [element]
        while waiting:
            node = waiting.pop()
            name = local_name(node.tag)
            if name in ("text-box", "object"):
                boxes.append(node)
            elif name not in _LEFT_OUT:
                pictures += self._drawn(node) if name == "frame" else ()
                waiting.extend(reversed(list(node)))
        if pictures and caption:
            pictures[-1] = replace(pictures[-1], caption=caption)
        return tuple(pictures), boxes

    def _drawn(self, frame: "Element") -> Iterator[Picture]:
        """Yield the picture of a frame, with the text that describes it."""
        texts = (find_child(frame, name) for name in ("desc", "title"))
        caption = next((text.text for text in texts if text is not None and text.text), "")
        for image in find_children(frame, "image"):
            name = get_attribute(image, "href") or ""
            picture = self._archive.read_picture(name, caption)
            if picture is not None:
                yield picture
                return

    def _list(self, element: "Element") -> Iterator[Block]:
        outer = self._lists[-1].style if self._lists else ""
        style = get_attribute(element, "style-name") or outer
        self._lists.append(_List(style))
        current, level = self._lists[-1], len(self._lists)
        continued = get_attribute(element, "continue-list") or ""
        if get_attribute(element, "continue-numbering") == "true":
            continued = style
        before = self._styles.find_start(style, level) - 1
        current.count = self._counted.get(continued, before)
        for item in element:
            if local_name(item.tag) == "list-item":
                stated = get_attribute(item, "start-value")
                current.count = current.count + 1 if stated is None else _count(item, "start-value")
            current.label = self._styles.label(style, level, current.count)
            yield from self.blocks(item)
        self._lists.pop()
        for name in (get_attribute(element, "id") or "", style):
            self._counted[name] = current.count

    def line(self, element: "Element") -> str:
        """Return the text of a paragraph on one line."""
        style = self._styles.find_span(get_attribute(element, "style-name") or "")
        return " ".join(clean_text(join_spans(self._spans(element, style))).split())

    def _raw(self, element: "Element") -> str:
        return "".join(span.text for span in self._spans(element, _PLAIN))

    def _spans(self, element: "Element", outer: Span) -> Iterator[Span]:
        yield replace(outer, text=element.text or "")
        for child in element:
            yield from self._read_child(child, local_name(child.tag), outer)
            yield replace(outer, text=child.tail or "")

    def _read_child(self, child: "Element", name: str, outer: Span) -> Iterator[Span]:
        style = get_attribute(child, "style-name") or ""
        if name == "note":
            self._notes += find_children(child, "note-body")
        elif name == "annotation":
            self.left_out.add("comment", "comments of reviewers are not text of the document")
        elif name == "s":
            yield replace(outer, text=" " * min(_count(child, "c"), _MOST_REPEATED))
        elif name in _SIGNS:
            yield replace(outer, text=_SIGNS[name])
        elif style in self._styles.hidden:
            self.left_out.add("hidden passage", "formatted as hidden text")
        elif name not in _LEFT_OUT and name != "text-box":
            own = self._styles.find_span(style)
            inner = own if own.script is not Script.LINE else replace(own, script=outer.script)
            inner = replace(inner, is_struck=own.is_struck or outer.is_struck)
            shown = list(self._spans(child, inner))
            yield from shown
            self._note_link(child, name, "".join(span.text for span in shown))

    def _note_link(self, element: "Element", name: str, shown: str) -> None:
        address = get_attribute(element, "href") or "" if name == "a" else ""
        label = " ".join(shown.split())
        if label and label != address and address.startswith(("http://", "https://")):
            self.links.append((label, address))

    def _rows(self, table: "Element") -> Iterator[list[Cell]]:
        for row, is_header in _list_rows(table):
            yield [
                Cell(
                    self._cell(cell),
                    _count(cell, "number-columns-spanned"),
                    _count(cell, "number-rows-spanned"),
                    is_header,
                )
                for cell in find_children(row, "table-cell")
            ]

    def _cell(self, cell: "Element") -> str:
        """Return the text of a cell, with its note in brackets."""
        texts: list[str] = []
        notes: list[str] = []
        waiting = [(child, texts) for child in reversed(list(cell))]
        while waiting:
            part, target = waiting.pop()
            name = local_name(part.tag)
            if name in ("p", "h"):
                target.append(self.line(part))
            else:
                inner = notes if name == "annotation" else target
                waiting += [(child, inner) for child in reversed(list(part))]
        note = " ".join(filter(None, notes))
        return " ".join(filter(None, (*texts, f"[{note}]" if note else "")))

    def sheets(self, body: "Element") -> Iterator[Block]:
        for table in find_children(body, "table"):
            name = " ".join((get_attribute(table, "name") or "Sheet").split())
            if get_attribute(table, "style-name") in self._styles.hidden:
                self.left_out.add("hidden sheet", _HIDDEN, name=name)
                continue
            anchor = f"sheet={quote(name)}"
            below = tuple(write_sheet(list(self._sheet_rows(table, name)), f"{anchor}&"))
            if below:
                yield Block(BlockKind.HEADING, name, 2, anchor)
                yield from below

    def _sheet_rows(self, table: "Element", name: str) -> Iterator[SheetRow]:
        hidden = _hidden_columns(table)
        self.left_out.add("hidden column", _HIDDEN, len(hidden))
        number = 1
        merged: dict[int, tuple[str, int]] = {}
        for row, _ in _list_rows(table):
            times = _count(row, "number-rows-repeated")
            if get_attribute(row, "visibility") == _UNSEEN:
                self.left_out.add("hidden row", _HIDDEN, times)
                number += times
                continue
            cells = {
                column: text
                for column, text in self._sheet_cells(row, merged).items()
                if column not in hidden
            }
            for _ in range(min(times, _MOST_REPEATED) if cells else 0):
                yield SheetRow(number, dict(cells))
                number += 1
            number += times if not cells else max(0, times - _MOST_REPEATED)

    def _sheet_cells(self, row: "Element", merged: dict[int, tuple[str, int]]) -> dict[int, str]:
        """Return the texts of a row; a merged cell belongs to every row and column that it
        spans.
        """
        cells = {column: text for column, (text, _) in merged.items()}
        merged.update({column: (text, left - 1) for column, (text, left) in merged.items()})
        for column in [column for column, (_, left) in merged.items() if left < 1]:
            del merged[column]
        spans: dict[int, int] = {}
        column = 0
        for cell in row:
            times = _count(cell, "number-columns-repeated")
            if local_name(cell.tag) == "table-cell" and (text := self._cell(cell)):
                own = range(column, min(column + times, MOST_COLUMNS))
                cells.update(dict.fromkeys(own, text))
                spans[column] = _count(cell, "number-columns-spanned")
                rows = _count(cell, "number-rows-spanned")
                if rows > 1:
                    below = range(column, min(column + spans[column], MOST_COLUMNS))
                    merged.update(dict.fromkeys(below, (text, rows - 1)))
            column += times
        # A cell that spans the whole row is a caption rather than a value of each column.
        if len(cells) > 1:
            for first, span in spans.items():
                wide = range(first, min(first + span, MOST_COLUMNS))
                cells.update(dict.fromkeys(wide, cells[first]))
        return cells

    def slides(self, body: "Element") -> Iterator[Block]:
        for number, slide in enumerate(find_children(body, "page"), start=1):
            if get_attribute(slide, "style-name") in self._styles.hidden:
                self.left_out.add("hidden slide", _HIDDEN, name=str(number))
                continue
            frames = [child for child in slide if local_name(child.tag) != "notes"]
            titles = [frame for frame in frames if get_attribute(frame, "class") == "title"]
            title = " ".join(self._cell(frame) for frame in titles).strip()
            below = [
                block
                for frame in frames
                if not any(frame is element for element in titles)
                for block in self.blocks(frame)
            ]
            for notes in find_children(slide, "notes"):
                below += (block for block in self.blocks(notes) if not block.text.isdecimal())
            if title or below:
                named = title or f"Slide {number}"
                yield Block(BlockKind.HEADING, named, 2, f"slide={number}")
                yield from below


def read(data: bytes, source: str) -> Page:
    """Return the page; sheets and slides are sections."""
    archive = ZippedXml(data, _EXPECTED)
    content = archive.parse("content.xml")
    styles = _Styles([archive.parse("styles.xml") if "styles.xml" in archive else None, content])
    reader = _Reader(styles, archive)
    body = find_child(content, "body")
    kinds = {local_name(child.tag): child for child in (body if body is not None else ())}
    if "spreadsheet" in kinds:
        blocks = tuple(reader.sheets(kinds["spreadsheet"]))
    elif "presentation" in kinds:
        blocks = tuple(reader.slides(kinds["presentation"]))
    elif "text" in kinds:
        blocks = tuple(reader.blocks(kinds["text"]))
    else:
        raise WrongFormatError(f"expected {_EXPECTED} with text, sheets or slides, found another")
    deleted = sum(1 for _ in find_all(body, "deletion"))
    reader.left_out.add("deleted passage", "marked as deleted", deleted)
    stated = _read_properties(archive)
    title = "" if "spreadsheet" in kinds else first_heading(blocks)
    return Page(
        source,
        title or choose_title(stated.get("title", "")),
        blocks,
        description=stated.get("subject", ""),
        links=tuple(reader.links),
        left_out=reader.left_out.list(),
    )


def _read_properties(archive: ZippedXml) -> dict[str, str]:
    root = archive.parse("meta.xml") if "meta.xml" in archive else None
    return {
        local_name(element.tag): " ".join(clean_text(element.text or "").split())
        for element in (find_all(root, "meta") if root is not None else ())
        for element in element
    }


def _list_rows(table: "Element") -> "Iterator[tuple[Element, bool]]":
    """Yield the rows of a table, including grouped ones, and whether they are header rows."""
    for child in table:
        name = local_name(child.tag)
        if name == "table-row":
            yield child, local_name(table.tag) == "table-header-rows"
        elif name in ("table-header-rows", "table-rows", "table-row-group"):
            yield from _list_rows(child)


def _hidden_columns(table: "Element") -> frozenset[int]:
    hidden: set[int] = set()
    at = 0
    for column in find_all(table, "table-column"):
        times = _count(column, "number-columns-repeated")
        if get_attribute(column, "visibility") == _UNSEEN:
            hidden.update(range(at, min(at + times, MOST_COLUMNS)))
        at += times
    return frozenset(hidden)


def _count(element: "Element", name: str) -> int:
    return max(1, to_number(get_attribute(element, name)))
