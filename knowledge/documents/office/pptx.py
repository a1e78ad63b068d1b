"""Reads PowerPoint slides: each slide is a section by its title, with its notes.

Hidden slides are left out with a note. What a slide takes from its master (footer, date, number of
the slide) is not text of the slide.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.office.zipped_xml import (
    ZippedXml,
    find_all,
    find_child,
    find_children,
    find_drawn,
    get_attribute,
    local_name,
    read_properties,
)
from knowledge.documents.page import Block, BlockKind, Page, make_item
from knowledge.documents.tables import Cell, write_table

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_EXPECTED = "a PowerPoint presentation"
_TITLES = frozenset({"title", "ctrTitle"})
_FURNITURE = frozenset({"dt", "ftr", "hdr", "sldNum", "sldImg"})


def read(data: bytes, source: str) -> Page:
    """Return the page; its title is that of the first slide, else what its properties state."""
    archive = ZippedXml(data, _EXPECTED)
    main = archive.find_related("", "officeDocument") or "ppt/presentation.xml"
    root = archive.parse(main)
    if local_name(root.tag) != "presentation":
        raise WrongFormatError(f"expected {_EXPECTED}, found another kind of office file")
    relations = archive.relationships(main)
    blocks: list[Block] = []
    warnings: list[str] = []
    title = ""
    for number, entry in enumerate(find_children(find_child(root, "sldIdLst"), "sldId"), start=1):
        relation = relations.get(_relation_id(entry))
        if relation is None or relation.target not in archive:
            continue
        slide = archive.parse(relation.target)
        if slide.get("show") in ("0", "false"):
            warnings.append(f"the hidden slide {number} was left out")
            continue
        heading = _find_title(slide)
        title = title or heading
        anchor = f"slide={number}"
        below = (
            *_write_shapes(slide, archive, relation.target),
            *_write_notes(archive, relation.target),
        )
        if heading or below:
            named = heading or f"Slide {number}"
            blocks += (Block(BlockKind.HEADING, named, 2, anchor), *below)
    stated = read_properties(archive)
    return Page(
        source,
        stated.title or title,
        tuple(blocks),
        description=stated.description,
        keywords=stated.keywords,
        warnings=tuple(warnings),
    )


def _relation_id(entry: "Element") -> str:
    """Return the id of a relationship; a slide also has an id without a namespace."""
    return next((value for key, value in entry.items() if key.endswith("}id")), "")


def _placeholder(shape: "Element") -> str | None:
    """Return the kind of placeholder that a shape is, or None."""
    for properties in find_all(shape, "nvPr"):
        found = find_child(properties, "ph")
        return found.get("type", "obj") if found is not None else None
    return None


def _find_title(slide: "Element") -> str:
    for shape in find_all(slide, "sp"):
        if _placeholder(shape) in _TITLES:
            text = " ".join(text for _, text, _ in _paragraphs(shape))
            if text:
                return text
    return ""


def _write_shapes(slide: "Element", archive: ZippedXml, name_of_slide: str) -> Iterator[Block]:
    waiting = list(reversed(list(slide)))
    while waiting:
        element = waiting.pop()
        name = local_name(element.tag)
        if name == "sp":
            if _placeholder(element) not in _TITLES | _FURNITURE:
                yield from _write_paragraphs(element)
        elif name == "pic":
            pictures = tuple(find_drawn(element, archive, name_of_slide))
            yield Block(BlockKind.TEXT, "", pictures=pictures)
        elif name == "tbl":
            yield from write_table([_row(row) for row in find_children(element, "tr")])
        elif name != "Fallback":
            waiting.extend(reversed(list(element)))


def _write_paragraphs(shape: "Element") -> Iterator[Block]:
    is_body = _placeholder(shape) in ("body", "obj")
    found = list(_paragraphs(shape))
    for level, text, label in found:
        if label or (is_body and len(found) > 1):
            yield make_item(label or "-", text, level)
        else:
            yield Block(BlockKind.TEXT, text)


def _paragraphs(shape: "Element") -> Iterator[tuple[int, str, str]]:
    """Yield the level, the text and the label of each paragraph that is not empty."""
    counts: dict[int, int] = {}
    for paragraph in find_all(find_child(shape, "txBody"), "p"):
        text = _text(paragraph)
        if not text:
            continue
        properties = find_child(paragraph, "pPr")
        stated = properties.get("lvl", "0") if properties is not None else "0"
        level = int(stated) if stated.isdecimal() else 0
        label = ""
        if find_child(properties, "buAutoNum") is not None:
            counts[level] = counts.get(level, 0) + 1
            label = f"{counts[level]}."
        elif find_child(properties, "buChar") is not None:
            label = "-"
        yield level, text, label


def _text(paragraph: "Element") -> str:
    parts: list[str] = []
    for element in paragraph.iter():
        name = local_name(element.tag)
        if name == "t":
            parts.append(element.text or "")
        elif name in ("br", "tab"):
            parts.append(" ")
    return " ".join("".join(parts).split())


def _row(row: "Element") -> list[Cell]:
    cells: list[Cell] = []
    for cell in find_children(row, "tc"):
        if cell.get("hMerge") in ("1", "true") or cell.get("vMerge") in ("1", "true"):
            # What spans this place states so itself.
            continue
        text = " ".join(filter(None, (_text(found) for found in find_all(cell, "p"))))
        cells.append(Cell(text, _span(cell, "gridSpan"), _span(cell, "rowSpan")))
    return cells


def _span(cell: "Element", name: str) -> int:
    stated = get_attribute(cell, name) or "1"
    return max(1, int(stated)) if stated.isdecimal() and len(stated) < 5 else 1


def _write_notes(archive: ZippedXml, slide: str) -> Iterator[Block]:
    name = archive.find_related(slide, "notesSlide")
    if name is None:
        return
    for shape in find_all(archive.parse(name), "sp"):
        if _placeholder(shape) == "body":
            for _, text, label in _paragraphs(shape):
                yield Block(BlockKind.TEXT, f"{label} {text}".strip())
