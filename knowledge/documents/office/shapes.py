"""The shapes of slides and sheets: their places, their order, and what is behind the text of each.

What is behind a text is the fill of its shape, or else the background of the slide. Text of an
unknown colour, or on something unknown such as a picture, is kept.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, repeat
from typing import NamedTuple
from unicodedata import bidirectional
from xml.etree.ElementTree import Element

from knowledge.documents.office.zipped_xml import BACKGROUND, find_child, find_first, to_length
from knowledge.documents.page import LeftOutCounts

MOST_SHAPES = 1000
"""Maximum number of shapes of a slide whose places are compared."""
TITLES = frozenset({"title", "ctrTitle"})
"""The kinds of placeholders that contain the title of a slide."""
FALSE = ("0", "false")
_FILLS = ("noFill", "solidFill", "gradFill", "blipFill", "pattFill", "grpFill")
_SHAPES = frozenset({"sp", "pic", "graphicFrame", "grpSp"})
_VALUES = {"srgbClr": "val", "sysClr": "lastClr"}
_FIRST_OF_THEME = "1001"
_WHITE = "FFFFFF"
_TEXTS = frozenset({"sp", "frame", "custom-shape", "rect", "ellipse"})
_WITH_CONTENT = frozenset({"pic", "graphicFrame", "frame"})
"""Shapes that show something even if they contain no text."""
_MOST_OF_A_SHAPE = 0.8
_LARGEST_STEP = 0.25
"""The greatest difference between the tops of shapes in a row, as a part of their height."""
_MOST_UNEVEN = 2
NOTES = "Notes:"
"""The line above the notes of a slide, which a presentation does not show."""
_NOT_ORDERED = "shapes that form no rows or cards are in the order of the file"
_MAY_BE_CARDS = "shapes nearer to those below than beside them are read row by row"
_NAMES_ON_SHEETS = {"bg1": "lt1", "tx1": "dk1", "bg2": "lt2", "tx2": "dk2"}
_KINDS = {"ctrTitle": "title", "subTitle": "body", "obj": "body"}
"""Placeholders of slides, with those of their masters."""


class Box(NamedTuple):
    """The place and the size of a shape, in the unit of its file."""

    left: float
    top: float
    width: float
    height: float

    def find_shared(self, other: "Box") -> float:
        """Return the area that two boxes share."""
        right = min(self.left + self.width, other.left + other.width)
        bottom = min(self.top + self.height, other.top + other.height)
        width, height = right - max(self.left, other.left), bottom - max(self.top, other.top)
        return max(0.0, width) * max(0.0, height)


_NOWHERE = Box(0, 0, 0, 0)


class _Placed(NamedTuple):
    """A shape, its position in the file, and its box."""

    at: int
    shape: Element
    box: Box


_Row = Sequence[_Placed]


class Layout:
    """What slides inherit from a layout and its master, which `parts` contains in this order.

    `shown` are the parts whose shapes the slides show, and `filled` the places of these shapes.
    """

    def __init__(self, parts: Sequence[Element], theme: Element | None) -> None:
        self.parts = parts
        self.theme = theme
        is_alone = bool(parts) and parts[0].get("showMasterSp") in FALSE
        self.shown = parts[:1] if is_alone else parts
        colours = _Colours(parts, theme)
        self.filled = [
            find_box([shape])
            for part in self.shown
            for shape in _list_shapes(part)
            if find_placeholder(shape) is None and colours.find_fill([shape]) != ""
        ]
        self._placeholders = [
            {
                _name_placeholder(stated, part): shape
                for shape in reversed(list(part.iter("sp")))
                if (stated := find_placeholder(shape)) is not None
            }
            for part in parts
        ]

    def trace(self, shape: Element) -> list[Element]:
        """Return a shape, and the placeholders of layout and master from which it inherits."""
        stated = find_placeholder(shape)
        if stated is None:
            return [shape]
        parts = zip(self._placeholders, self.parts, strict=True)
        named = (known.get(_name_placeholder(stated, part)) for known, part in parts)
        return [shape, *(other for other in named if other is not None)]

    def list_styles(self, shape: Element) -> Iterator[Element]:
        """Yield the list styles that a shape inherits, the nearest one first."""
        for other in self.trace(shape)[1:]:
            yield from other.findall("txBody/lstStyle")
        stated = find_placeholder(shape)
        if stated is not None:
            kind = "title" if stated.get("type") in TITLES else "body"
            yield from (
                style for part in self.parts for style in part.findall(f"txStyles/{kind}Style")
            )


class _Colours:
    """The colours of a slide in hexadecimal digits, by its theme and the map of its master."""

    def __init__(self, parts: Sequence[Element], theme: Element | None) -> None:
        self._scheme = find_child(theme, "themeElements", "clrScheme")
        self._fills = find_child(theme, "themeElements", "fmtScheme", "bgFillStyleLst")
        paths = ("clrMapOvr/overrideClrMapping", "clrMap")
        maps = (stated.attrib for path in paths for part in parts for stated in part.findall(path))
        self._names = next(maps, _NAMES_ON_SHEETS)
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
        background = next((bg for part in self._parts for bg in part.findall("cSld/bg")), None)
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


def order_shapes(
    shapes: Iterable[Element],
    find_box: Callable[[Element], Box | None],
    left_out: LeftOutCounts,
    name: str,
) -> list[Element]:
    """Return shapes in the order of their file, but those that form a grid row by row, or card by
    card.

    A shape is followed by those that lie on it. The shapes of a row have about the same top. Cards
    consist of rows in the same columns that differ, such as headings above numbers. A single row
    is only sorted if its shapes follow each other, because others may belong to them. An order that
    contradicts the places is counted with the `name` of the slide, and so are rows that may be
    cards.
    """
    placed = [_Placed(at, shape, find_box(shape) or _NOWHERE) for at, shape in enumerate(shapes)]
    if len(placed) > MOST_SHAPES:
        left_out.add("reading order", _NOT_ORDERED, name=name)
        return [one.shape for one in placed]
    members = _find_members(placed)
    grids: list[list[_Row]] = []
    waiting = _order_grids(members.pop(None, []), members, grids)[::-1]
    ordered: list[_Placed] = []
    while waiting:
        ordered.append(waiting.pop())
        inner = _order_column(members.get(ordered[-1].at, []))
        waiting += _order_grids(inner, members, grids)[::-1]
    if any(map(_may_be_cards, grids)):
        left_out.add("reading order", _MAY_BE_CARDS, name=name)
    texts = [one for one in ordered if one.box.height and one.shape.tag in _TEXTS]
    texts = [one for one in texts if _has_content(one.shape)]
    if any(map(_contradicts, texts, texts[1:])):
        left_out.add("reading order", _NOT_ORDERED, name=name)
    return [one.shape for one in ordered]


def find_box(chain: Iterable[Element]) -> Box | None:
    """Return the box of a shape of a slide, or of those from which it inherits, or None."""
    for shape in chain:
        frame = find_first(shape, "spPr/xfrm", "grpSpPr/xfrm", "xfrm")
        place, size = find_child(frame, "off"), find_child(frame, "ext")
        if place is not None and size is not None:
            lengths = (place.get("x"), place.get("y"), size.get("cx"), size.get("cy"))
            box = Box(*map(to_length, lengths))
            # Programs that state the place of a shape only by cells write a box without a size.
            return box if box.width and box.height else None
    return None


def find_placeholder(shape: Element) -> Element | None:
    """Return the element that makes a shape a placeholder, or None."""
    return find_child(next(shape.iter("nvPr"), None), "ph")


def find_backgrounds(
    shapes: Iterable[tuple[str | None, Box | None]], page: str | None, below: Iterable[Box | None]
) -> list[str | None]:
    """Return the colour behind the text of each shape, or None if it is not known.

    `shapes` are in the order in which they are drawn: the fill of each, empty for none and None
    for an unknown one, and its place. `page` is the colour of the page, and `below` are the places
    of what else is on it. All colours are unknown if there are too many shapes to compare them.
    """
    covered, places = list(below), list(shapes)
    if len(covered) + len(places) > MOST_SHAPES:
        return [None] * len(places)
    backgrounds: list[str | None] = []
    for fill, box in places:
        if fill == "":
            is_free = not any(_overlap(box, other) for other in covered)
            backgrounds.append(page if is_free else None)
        else:
            backgrounds.append(fill)
            covered.append(box)
    return backgrounds


def remove_invisible_text(slide: Element, layout: Layout, left_out: LeftOutCounts) -> None:
    """Remove the runs of a slide that have the colour of their background, and count them."""
    colours = _Colours([slide, *layout.parts], layout.theme)
    chains = [layout.trace(shape) for shape in _list_shapes(slide)]
    _remove_invisible(chains, colours.find_page(), layout.filled, colours, left_out)


def remove_invisible_text_on_sheet(
    drawing: Element, page: str | None, theme: Element | None, left_out: LeftOutCounts
) -> None:
    """Remove the runs of the shapes on a sheet that have the colour of their background.

    `page` is the colour of its cells, or None if it is not known.
    """
    chains = [[shape] for anchor in drawing for shape in anchor if shape.tag in _SHAPES]
    _remove_invisible(chains, page, (), _Colours((), theme), left_out)


def _overlap(one: Box | None, other: Box | None) -> bool:
    """Return whether two shapes may overlap; one whose box is not known may be anywhere."""
    return one is None or other is None or one.find_shared(other) > 0


def _find_members(placed: Sequence[_Placed]) -> dict[int | None, list[_Placed]]:
    """Return the shapes that lie on each shape, and below None those that lie on none."""
    by_size = sorted(placed, key=lambda one: one.box.width * one.box.height)
    members: dict[int | None, list[_Placed]] = {}
    for one in placed:
        below = (other.at for other in by_size if _lies_on(one, other))
        members.setdefault(next(below, None), []).append(one)
    return members


def _lies_on(one: _Placed, other: _Placed) -> bool:
    """Return whether most of a shape is in front of another one, which is larger."""
    area = one.box.width * one.box.height
    is_in_front = one.at > other.at and area < other.box.width * other.box.height
    return is_in_front and one.box.find_shared(other.box) > _MOST_OF_A_SHAPE * area


def _contradicts(one: _Placed, following: _Placed) -> bool:
    """Return whether a shape is before another one in lines and in columns, but read after it."""
    before, after = following.box, one.box
    is_above = before.top + before.height <= after.top
    is_below = before.top >= after.top + after.height
    is_left = before.left + before.width <= after.left
    is_right = before.left >= after.left + after.width
    return (is_above and not is_right) or (is_left and not is_below)


def _has_content(shape: Element) -> bool:
    return shape.tag in _WITH_CONTENT or bool("".join(shape.itertext()).strip())


def _order_grids(
    placed: Sequence[_Placed],
    members: Mapping[int | None, Sequence[_Placed]],
    grids: list[list[_Row]],
) -> list[_Placed]:
    """Return shapes with each grid in its order, at its places; add the grids to `grids`."""
    ordered = list(placed)
    slots = {one.at: slot for slot, one in enumerate(ordered)}
    in_rows = (one for one in ordered if one.at in members or _has_content(one.shape))
    for grid in _list_grids(_list_rows(in_rows)):
        grids.append(grid)
        own = sorted(slots[one.at] for row in grid for one in row)
        if len(grid) == 1 and own[-1] - own[0] >= len(own):
            continue
        period = _find_period(grid)
        places = sorted(
            (at // period, column, at, one)
            for at, row in enumerate(grid)
            for column, one in enumerate(row)
        )
        for slot, (*_, one) in zip(own, places, strict=True):
            ordered[slot] = one
    return ordered


def _order_column(placed: list[_Placed]) -> list[_Placed]:
    """Return shapes from top to bottom if each is below the one before it."""
    column = sorted(placed, key=lambda one: one.box.top)
    boxes = [one.box for one in column]
    is_column = all(one.top + one.height <= other.top for one, other in pairwise(boxes))
    return column if is_column else placed


def _list_rows(placed: Iterable[_Placed]) -> Iterator[_Row]:
    """Yield the rows of several shapes from top to bottom, each in the direction of its text."""
    rows: list[list[_Placed]] = []
    for one in sorted((one for one in placed if one.box.height), key=lambda one: one.box.top):
        row = next((row for row in rows if _is_level(row[0].box, one.box)), None)
        if row is None:
            rows.append([one])
        else:
            row.append(one)
    for row in rows:
        text = "".join(letter for one in row for letter in one.shape.itertext())
        is_right_to_left = bidirectional(next(filter(str.isalpha, text), "a")) != "L"
        row.sort(key=lambda one: one.box.left, reverse=is_right_to_left)
    return (row for row in rows if len(row) > 1)


def _is_level(box: Box, other: Box) -> bool:
    smaller, larger = sorted((box.height, other.height))
    is_near = abs(box.top - other.top) <= _LARGEST_STEP * smaller
    return is_near and larger <= _MOST_UNEVEN * smaller


def _list_grids(rows: Iterable[_Row]) -> Iterator[list[_Row]]:
    """Yield rows from top to bottom by grids: of one height, or in the same columns."""
    grid: list[_Row] = []
    for row in rows:
        if grid and not (_find_height(row) == _find_height(grid[-1]) or _is_below(row, grid[-1])):
            yield grid
            grid = []
        grid.append(row)
    if grid:
        yield grid


def _find_height(row: _Row) -> float:
    return max(one.box.height for one in row)


def _may_be_cards(grid: Sequence[_Row]) -> bool:
    """Return whether texts of rows are nearer to those below; labels beside values are rows."""
    kinds = [{_begins_with_digit(placed.shape) for placed in row} for row in grid]
    if _find_period(grid) > 1 or len(grid) < 2 or {True, False} in kinds:
        return False
    boxes = [[one.box for one in sorted(row, key=lambda one: one.box.left)] for row in grid]
    down = (two[0].top - one[0].top - one[0].height for one, two in pairwise(boxes))
    across = (two.left - one.left - one.width for row in boxes for one, two in pairwise(row))
    return 2 * max(0.0, min(down)) < min(across)


def _find_period(grid: Sequence[_Row]) -> int:
    """Return the number of rows of each card of a grid; 1 if it is read row by row."""
    heights = list(map(_find_height, grid))
    kinds = [{_begins_with_digit(placed.shape) for placed in row} for row in grid]
    has_values_only = {True} in kinds and {False} in kinds and {True, False} not in kinds
    if not has_values_only and any(above == below for above, below in pairwise(heights)):
        return 1
    rows = list(zip(heights, kinds if has_values_only else repeat(None), strict=False))
    return next(at for at in range(1, len(rows) + 1) if rows[at:] == rows[:-at])


def _is_below(row: _Row, above: _Row) -> bool:
    """Return whether the shapes of a row are below those of another one."""
    middles = (
        (upper.box, lower.box.left + lower.box.width / 2)
        for upper, lower in zip(above, row, strict=False)
    )
    return len(row) == len(above) and all(
        box.left <= middle <= box.left + box.width for box, middle in middles
    )


def _begins_with_digit(shape: Element) -> bool:
    return next(filter(str.isalnum, "".join(shape.itertext())), "").isdigit()


def _remove_invisible(
    chains: Sequence[Sequence[Element]],
    page: str | None,
    below: Iterable[Box | None],
    colours: _Colours,
    left_out: LeftOutCounts,
) -> None:
    places = ((colours.find_fill(chain), find_box(chain)) for chain in chains)
    backgrounds = find_backgrounds(places, page, below)
    for (shape, *_), background in zip(chains, backgrounds, strict=True):
        for inner in shape.iter("sp"):
            fill = background if inner is shape else colours.find_fill([inner]) or None
            _remove(inner, fill, colours, left_out)
        for cell in shape.iter("tc"):
            _remove(cell, colours.read_fill(cell.find("tcPr")) or None, colours, left_out)


def _remove(
    shape: Element, background: str | None, colours: _Colours, left_out: LeftOutCounts
) -> None:
    for paragraph in shape.iter("p"):
        for run in [part for part in paragraph if part.tag in ("r", "fld")]:
            colour = colours.read(find_child(run, "rPr", "solidFill"))
            if colour is not None and colour == background:
                paragraph.remove(run)
                left_out.add("hidden passage", BACKGROUND, bool("".join(run.itertext()).strip()))


def _name_placeholder(stated: Element, part: Element) -> str:
    """Return what the placeholders of a layout or a master have in common with their heirs."""
    name, default = ("idx", "0") if part.tag == "sldLayout" else ("type", "obj")
    kind = stated.get(name, default)
    return _KINDS.get(kind, kind)


def _list_shapes(part: Element) -> Iterator[Element]:
    return (shape for shape in part.findall("cSld/spTree/*") if shape.tag in _SHAPES)
