"""The places of shapes on slides: their reading order, and what is behind each of them."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple
from xml.etree.ElementTree import Element

from knowledge.documents.office.zipped_xml import find_child, find_first, to_length

MOST_SHAPES = 1000
"""Maximum number of shapes of a slide whose places are compared."""


class Box(NamedTuple):
    """The place and the size of a shape, in the unit of its file."""

    left: float
    top: float
    width: float
    height: float


def order_shapes(
    shapes: Iterable[Element], find_box: Callable[[Element], Box | None]
) -> list[Element]:
    """Return shapes in the order of their file, but those that form a grid row by row.

    A grid has at least two rows of at least two shapes. The shapes of a row have the same top, and
    all shapes have the same height.
    """
    ordered = list(shapes)
    places = [find_box(shape) for shape in ordered]
    rows = Counter((box.height, box.top) for box in places if box is not None and box.height)
    heights = Counter(height for (height, _), shapes_of_row in rows.items() if shapes_of_row > 1)
    for height in (height for height, rows_of_grid in heights.items() if rows_of_grid > 1):
        slots = {
            at: (box.top, box.left)
            for at, box in enumerate(places)
            if box is not None and box.height == height and rows[height, box.top] > 1
        }
        sorted_shapes = [ordered[at] for at in sorted(slots, key=lambda at: slots[at])]
        for slot, shape in zip(slots, sorted_shapes, strict=True):
            ordered[slot] = shape
    return ordered


def find_box(shape: Element) -> Box | None:
    """Return the box of a shape of a slide, or None if it does not state one."""
    frame = find_child(find_first(shape, "spPr", "grpSpPr"), "xfrm")
    frame = shape.find("xfrm") if frame is None else frame
    place, size = find_child(frame, "off"), find_child(frame, "ext")
    if place is None or size is None:
        return None
    lengths = (place.get("x"), place.get("y"), size.get("cx"), size.get("cy"))
    return Box(*map(to_length, lengths))


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


def _overlap(one: Box | None, other: Box | None) -> bool:
    """Return whether two shapes may overlap; one whose box is not known may be anywhere."""
    if one is None or other is None:
        return True
    return max(one.left, other.left) < min(one.left + one.width, other.left + other.width) and max(
        one.top, other.top
    ) < min(one.top + one.height, other.top + other.height)
