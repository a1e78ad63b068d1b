"""Reads PowerPoint slides: each slide is a section headed by its title, with its notes.

Hidden slides and shapes are left out and counted. What the slides repeat (footers, and text of
their layouts and masters) precedes them once, without slide numbers.
"""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.notation import write_number
from knowledge.documents.office.drawings import order_shapes, read_drawing_text, read_graphics
from knowledge.documents.office.zipped_xml import (
    ZippedXml,
    count_macros,
    find_all,
    find_child,
    find_children,
    find_drawn,
    find_first,
    read_core_properties,
    to_length,
    to_number,
    write_page_headers,
)
from knowledge.documents.page import Block, BlockKind, LeftOutCounts, Page, make_item
from knowledge.documents.readers import read_inner_file
from knowledge.documents.tables import Cell, write_table

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_EXPECTED = "a PowerPoint presentation"
_HIDDEN = "hidden in the presentation"
_COMMENTS = "comments of reviewers are not text of the slides"
_TITLES = frozenset({"title", "ctrTitle"})
_FOOTERS = frozenset({"dt", "ftr", "hdr"})
_FURNITURE = frozenset({*_FOOTERS, "sldNum", "sldImg"})
_BULLETS = ("buAutoNum", "buChar", "buBlip", "buNone")
_BORDERS = {
    "ParenBoth": ("(", ")"),
    "ParenR": ("", ")"),
    "Period": ("", "."),
    "Minus": ("- ", " -"),
}


def read(data: bytes, source: str) -> Page:
    """Return the page; its title is that of the first slide or, if there is none, that in its
    properties.
    """
    archive = ZippedXml(data, _EXPECTED)
    main = archive.find_related("", "officeDocument") or "ppt/presentation.xml"
    root = archive.parse(main)
    if root.tag != "presentation":
        raise WrongFormatError(f"expected {_EXPECTED}, found another kind of office file")
    relations = archive.relationships(main)
    blocks: list[Block] = []
    repeated: list[str] = []
    left_out = LeftOutCounts()
    title = ""
    for number, entry in enumerate(find_children(root.find("sldIdLst"), "sldId"), start=1):
        # The id with a namespace is that of the relationship; the other one is that of the slide.
        names = (name for key, name in entry.items() if key.endswith("}id"))
        relation = relations.get(next(names, entry.get("id", "")))
        if relation is None or relation.target not in archive:
            continue
        slide = archive.parse(relation.target)
        if slide.get("show") in ("0", "false"):
            left_out.add("hidden slide", _HIDDEN, name=str(number))
            continue
        for kind in ("comments", "comment"):
            name = archive.find_related(relation.target, kind)
            comments = find_all(archive.parse(name), "cm") if name is not None else ()
            left_out.add("comment", _COMMENTS, sum(1 for _ in comments))
        layout = archive.find_related(relation.target, "slideLayout")
        master = archive.find_related(layout, "slideMaster") if layout is not None else None
        repeated += _read_texts(slide, _FOOTERS)
        if slide.get("showMasterSp") not in ("0", "false"):
            parts = (archive.parse(name) for name in (master, layout) if name is not None)
            repeated += (text for part in parts for text in _read_texts(part, {None}))
        heading = _find_title(slide)
        title = title or heading
        anchor = f"slide={number}"
        below = (
            *_write_shapes(slide, archive, relation.target, left_out),
            *_write_notes(archive, relation.target),
        )
        if heading or below:
            named = heading or f"Slide {number}"
            blocks += (Block(BlockKind.HEADING, named, 2, anchor), *below)
    stated = read_core_properties(archive)
    count_macros(archive, left_out)
    return Page(
        source,
        stated.title or title,
        (*write_page_headers(repeated), *blocks),
        description=stated.description,
        keywords=stated.keywords,
        left_out=left_out.list(),
    )


def _placeholder(shape: "Element", name: str = "type", default: str = "obj") -> str | None:
    """Return the placeholder kind of a shape, or another property, or None."""
    for properties in shape.iter("nvPr"):
        element = properties.find("ph")
        return element.get(name, default) if element is not None else None
    return None


def _read_texts(part: "Element", kinds: Collection[str | None]) -> Iterator[str]:
    """Yield the texts of the visible shapes of a slide, a layout or a master that are placeholders
    of these kinds, or none (None).
    """
    for shape in part.iter("sp"):
        if _placeholder(shape) in kinds and not _is_hidden(shape):
            yield " ".join(text for _, text, _ in _paragraphs(shape))


def _order_placeholders(
    slide: "Element", archive: ZippedXml, name_of_slide: str
) -> "list[Element]":
    """Return the shapes of a slide, its placeholders in the order of its layout, if they have the
    places that the layout states.
    """
    shapes = list(find_child(slide, "cSld", "spTree") or ())
    layout = archive.find_related(name_of_slide, "slideLayout")
    stated = find_all(None if layout is None else archive.parse(layout), "sp")
    order = [_placeholder(shape, "idx", "0") for shape in stated]
    slots = {
        at: order.index(place)
        for at, shape in enumerate(shapes)
        if (place := _placeholder(shape, "idx", "0")) is not None
        and place in order
        and find_child(shape, "spPr", "xfrm") is None
        and shape.find("xfrm") is None
    }
    ordered = [shapes[at] for at in sorted(slots, key=lambda at: slots[at])]
    for slot, shape in zip(slots, ordered, strict=True):
        shapes[slot] = shape
    return shapes


def _find_title(slide: "Element") -> str:
    for shape in slide.iter("sp"):
        if _placeholder(shape) in _TITLES:
            text = " ".join(text for _, text, _ in _paragraphs(shape))
            if text:
                return text
    return ""


def _write_shapes(
    slide: "Element", archive: ZippedXml, name_of_slide: str, left_out: LeftOutCounts
) -> Iterator[Block]:
    controls = sum(1 for _ in slide.iter("control"))
    left_out.add("form control", "ActiveX controls are not read", controls)
    shapes = _order_placeholders(slide, archive, name_of_slide)
    waiting = list(reversed(order_shapes(shapes, _measure)))
    while waiting:
        element = waiting.pop()
        name = element.tag
        if _is_hidden(element):
            left_out.add("hidden shape", _HIDDEN)
        elif name == "sp":
            if _placeholder(element) not in _TITLES | _FURNITURE:
                yield from _write_paragraphs(element)
        elif name == "pic":
            pictures = tuple(find_drawn(element, archive, name_of_slide))
            yield Block(BlockKind.TEXT, "", pictures=pictures)
        elif name == "graphicFrame":
            yield from _write_frame(element, archive, name_of_slide, left_out)
        elif name != "Fallback":
            waiting.extend(reversed(order_shapes(element, _measure)))


def _measure(shape: "Element") -> tuple[float, float, float]:
    """Return the top, the left and the height of a shape."""
    frame = find_child(shape, "spPr", "xfrm")
    lengths = (("off", "y"), ("off", "x"), ("ext", "cy"))
    parts = ((find_child(frame, part), name) for part, name in lengths)
    top, left, height = (0.0 if part is None else to_length(part.get(name)) for part, name in parts)
    return top, left, height


def _is_hidden(shape: "Element") -> bool:
    properties = next((child.find("cNvPr") for child in shape), None)
    return properties is not None and properties.get("hidden") in ("1", "true")


def _write_frame(
    frame: "Element", archive: ZippedXml, slide: str, left_out: LeftOutCounts
) -> Iterator[Block]:
    """Yield the table, the chart, the diagram or the embedded file of a frame."""
    for table in frame.iter("tbl"):
        yield from write_table([_row(row) for row in table.findall("tr")])
    yield from read_graphics(frame, archive, slide)
    relations = archive.relationships(slide)
    names = {child.get("id", "") for child in frame.iter("oleObj")}
    for name in sorted(names):
        relation = relations.get(name)
        if relation is None or relation.target not in archive:
            left_out.add("embedded file", "it is linked, and not part of this file")
        else:
            yield from read_inner_file(archive.read(relation.target), relation.target, left_out)


def _write_paragraphs(shape: "Element") -> Iterator[Block]:
    is_body = _placeholder(shape) in ("body", "obj")
    paragraphs = list(_paragraphs(shape))
    for level, text, label in paragraphs:
        if label or (is_body and len(paragraphs) > 1):
            yield make_item(label or "-", text, level)
        else:
            yield Block(BlockKind.TEXT, text)


def _paragraphs(shape: "Element") -> Iterator[tuple[int, str, str]]:
    """Yield the level, the text and the label of each paragraph that is not empty."""
    counts: dict[int, tuple[str, int]] = {}
    body = shape.find("txBody")
    for paragraph in find_children(body, "p"):
        text = read_drawing_text(paragraph)
        if not text:
            continue
        properties = paragraph.find("pPr")
        level = to_number(properties.get("lvl") if properties is not None else None)
        bullet = find_first(properties, *_BULLETS)
        if bullet is None:
            bullet = find_first(find_child(body, "lstStyle", f"lvl{level + 1}pPr"), *_BULLETS)
        counts = {at: count for at, count in counts.items() if at <= level}
        label = ""
        if bullet is not None and bullet.tag == "buAutoNum":
            style = bullet.get("type", "")
            before, number = counts.get(level, ("", 0))
            number = number + 1 if before == style else _number(bullet, "startAt")
            counts[level] = (style, number)
            label = _write_label(number, style)
        else:
            counts.pop(level, None)
            label = "-" if bullet is not None and bullet.tag == "buChar" else ""
        yield level, text, label


def _write_label(number: int, kind: str) -> str:
    """Return the label of a numbered paragraph, such as `b)` for the type `alphaLcParenR`."""
    border = next((name for name in _BORDERS if kind.endswith(name)), "")
    before, after = _BORDERS.get(border, ("", "" if kind.endswith("Plain") else "."))
    return f"{before}{write_number(number, kind.removesuffix(border))}{after}"


def _row(row: "Element") -> list[Cell]:
    cells: list[Cell] = []
    for cell in row.findall("tc"):
        if cell.get("hMerge") in ("1", "true") or cell.get("vMerge") in ("1", "true"):
            # An element that spans this place states so itself.
            continue
        lines = ((line, label.strip("-")) for _, line, label in _paragraphs(cell))
        text = " ".join(f"{label} {line}".strip() for line, label in lines)
        cells.append(Cell(text, _number(cell, "gridSpan"), _number(cell, "rowSpan")))
    return cells


def _number(element: "Element", name: str) -> int:
    return max(1, to_number(element.get(name)))


def _write_notes(archive: ZippedXml, slide: str) -> Iterator[Block]:
    name = archive.find_related(slide, "notesSlide")
    if name is None:
        return
    for shape in find_all(archive.parse(name), "sp"):
        if _placeholder(shape) == "body":
            for _, text, label in _paragraphs(shape):
                yield Block(BlockKind.TEXT, f"{label} {text}".strip())
