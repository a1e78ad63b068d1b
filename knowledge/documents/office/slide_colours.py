"""Removes the text of a slide that has the colour of what is behind it, so that nobody sees it.

What is behind a text is the fill of its shape, or else the background of the slide. Text of an
unknown colour, or on something unknown such as a picture, is kept.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from xml.etree.ElementTree import Element

from knowledge.documents.office.drawings import MOST_SHAPES, find_backgrounds, find_box
from knowledge.documents.office.zipped_xml import BACKGROUND, find_child, find_first
from knowledge.documents.page import LeftOutCounts

_NAMES_ON_SHEETS = {"bg1": "lt1", "tx1": "dk1", "bg2": "lt2", "tx2": "dk2"}
_FILLS = ("noFill", "solidFill", "gradFill", "blipFill", "pattFill", "grpFill")
_SHAPES = frozenset({"sp", "pic", "graphicFrame", "grpSp"})
_VALUES = {"srgbClr": "val", "sysClr": "lastClr"}
_FIRST_OF_THEME = "1001"
_WHITE = "FFFFFF"
_KINDS = {"ctrTitle": "title", "subTitle": "body", "obj": "body"}
"""Placeholders of slides, with those of their masters."""


class _Colours:
    """The colours of a slide in hexadecimal digits, by its theme and the map of its master."""

    def __init__(self, parts: Sequence[Element], theme: Element | None) -> None:
        self._scheme = find_child(theme, "themeElements", "clrScheme")
        self._fills = find_child(theme, "themeElements", "fmtScheme", "bgFillStyleLst")
        own = (find_child(part, "clrMapOvr", "overrideClrMapping") for part in parts)
        maps = (*own, *(part.find("clrMap") for part in parts))
        self._names = next(
            (stated.attrib for stated in maps if stated is not None), _NAMES_ON_SHEETS
        )
        self._parts = parts

    def read(self, parent: Element | None) -> str | None:
        """Return the colour that an element contains, or None if it is not known."""
        colour = next(iter(parent if parent is not None else ()), None)
        if colour is not None and colour.tag == "schemeClr" and not len(colour):
            name = colour.get("val", "")
            colour = next(iter(find_child(self._scheme, self._names.get(name, name)) or ()), None)
        if colour is None or len(colour):
            return None
        if colour.tag == "prstClr":
            return _WHITE if colour.get("val") == "white" else None
        return colour.get(_VALUES.get(colour.tag, ""), "").upper() or None

    def read_fill(self, properties: Element | None) -> str | None:
        """Return the fill that properties state: empty for none, None if it is not known."""
        stated = find_first(properties, *_FILLS)
        if stated is None or stated.tag not in ("noFill", "solidFill"):
            return None
        return self.read(stated) if stated.tag == "solidFill" else ""

    def find_fill(self, chain: Sequence[Element]) -> str | None:
        """Return the fill of a shape, or that of those from which it inherits."""
        for shape in chain:
            properties = shape.find("spPr") if shape.tag == "sp" else None
            if find_first(properties, *_FILLS) is not None:
                return self.read_fill(properties)
            if shape.tag != "sp" or shape.find("style") is not None:
                return None
        return ""

    def find_page(self) -> str | None:
        """Return the background of the slide."""
        stated = (find_child(part, "cSld", "bg") for part in self._parts)
        background = next((element for element in stated if element is not None), None)
        if background is None:
            return _WHITE
        if (own := background.find("bgPr")) is not None:
            fill = self.read_fill(own)
            return _WHITE if fill == "" else fill
        reference = background.find("bgRef")
        is_first = reference is not None and reference.get("idx") == _FIRST_OF_THEME
        fill_of_theme = next(iter(self._fills if self._fills is not None else ()), None)
        is_plain = fill_of_theme is not None and fill_of_theme.tag == "solidFill"
        return self.read(reference) if is_first and is_plain else None


def remove_invisible_text(
    slide: Element,
    layout: Element | None,
    master: Element | None,
    theme: Element | None,
    left_out: LeftOutCounts,
) -> None:
    """Remove the runs of a slide that have the colour of their background, and count them.

    A slide with too many shapes stays as it is.
    """
    bases = [part for part in (layout, master) if part is not None]
    if sum(1 for part in (slide, *bases) for _ in part.iter("sp")) > MOST_SHAPES:
        return
    colours = _Colours([slide, *bases], theme)
    below = [
        find_box(shape)
        for part in bases
        for shape in _list_shapes(part)
        if _placeholder(shape) is None and colours.find_fill([shape]) != ""
    ]
    shapes = list(_list_shapes(slide))
    chains = [[shape, *_list_inherited(shape, bases)] for shape in shapes]
    boxes = (next(filter(None, map(find_box, chain)), None) for chain in chains)
    fills = map(colours.find_fill, chains)
    backgrounds = find_backgrounds(zip(fills, boxes, strict=True), colours.find_page(), below)
    for shape, background in zip(shapes, backgrounds, strict=True):
        if shape.tag == "sp":
            _remove(shape, background, colours, left_out)
        for inner in shape.iter("sp") if shape.tag == "grpSp" else ():
            _remove(inner, colours.find_fill([inner]) or None, colours, left_out)
        for cell in shape.iter("tc"):
            _remove(cell, colours.read_fill(cell.find("tcPr")) or None, colours, left_out)


def remove_invisible_text_on_sheet(
    drawing: Element, page: str | None, theme: Element | None, left_out: LeftOutCounts
) -> None:
    """Remove the runs of the shapes on a sheet that have the colour of their background.

    `page` is the colour of its cells, or None if it is not known.
    """
    colours = _Colours((), theme)
    shapes = [shape for anchor in drawing for shape in anchor if shape.tag in _SHAPES]
    boxes = [find_box(shape) for shape in shapes]
    # Programs that state the place of a shape only by cells write a box without a size.
    sized = (box if box is not None and box.width and box.height else None for box in boxes)
    fills = (colours.find_fill([shape]) for shape in shapes)
    backgrounds = find_backgrounds(zip(fills, sized, strict=True), page, ())
    for shape, background in zip(shapes, backgrounds, strict=True):
        for inner in shape.iter("sp"):
            fill = background if inner is shape else colours.find_fill([inner]) or None
            _remove(inner, fill, colours, left_out)


def _remove(
    shape: Element, background: str | None, colours: _Colours, left_out: LeftOutCounts
) -> None:
    for paragraph in shape.iter("p"):
        for run in [part for part in paragraph if part.tag in ("r", "fld")]:
            colour = colours.read(find_child(run, "rPr", "solidFill"))
            if colour is not None and colour == background:
                paragraph.remove(run)
                left_out.add("hidden passage", BACKGROUND, bool("".join(run.itertext()).strip()))


def _list_shapes(part: Element) -> Iterator[Element]:
    shapes = find_child(part, "cSld", "spTree")
    return (shape for shape in (() if shapes is None else shapes) if shape.tag in _SHAPES)


def _placeholder(shape: Element) -> Element | None:
    return find_child(shape, "nvSpPr", "nvPr", "ph")


def _list_inherited(shape: Element, parts: Sequence[Element]) -> Iterator[Element]:
    """Yield the placeholders of the layout and of the master from which one inherits."""
    own = _placeholder(shape)
    for part in parts if own is not None else ():
        others = ((other, _placeholder(other)) for other in part.iter("sp"))
        yield from islice((other for other, at in others if _is_base(at, own, part.tag)), 1)


def _is_base(stated: Element | None, own: Element | None, part: str) -> bool:
    if stated is None or own is None:
        return False
    if part == "sldLayout":
        return stated.get("idx", "0") == own.get("idx", "0")
    kinds = [element.get("type", "obj") for element in (stated, own)]
    return len({_KINDS.get(kind, kind) for kind in kinds}) == 1
