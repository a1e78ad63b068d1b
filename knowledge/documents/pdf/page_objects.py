"""Takes what a page draws besides its text: lines, filled boxes, pictures.

Positions are points from the lower left corner of the shown part of the page, before it is turned.
"""

import ctypes
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pypdfium2 import PdfMatrix, PdfObject, PdfPage, raw

Box = tuple[float, float, float, float]
"""Left, bottom, right and top."""
Size = tuple[float, float]
PathPoint = tuple[float, float]
PlacedText = tuple[PdfObject, PdfMatrix]
"""A drawn text with the matrix that turns its coordinates into those of the page."""
THICKEST = 3.0
"""Maximum thickness of a line in points; a thicker filled box is not a line."""
_BROADEST = 6.0
"""Maximum width of a stroke in points; the background of a text may be drawn as a line."""
_STRAIGHT = 0.7
_MOST_POINTS = 4_000
"""Maximum number of points of a path; a path with more is a drawing."""
_MOST_BOXES = 5_000
_MOST_LINES = 20_000
DEEPEST_DRAWING = 4
_MOST_FILLS = 2_000
_LARGEST_BOX = 6
_SIDES = 4
_OPAQUE = 255


@dataclass(frozen=True, slots=True)
class Fill:
    """A filled path: how many texts and lines are drawn before it, its box, and its colour if it
    has one.
    """

    at: int
    box: Box
    colour: int | None
    is_opaque: bool
    lines: int = 0


@dataclass(slots=True)
class PageObjects:
    """The boxes of the paths of a page, their straight lines, its texts and pictures."""

    boxes: list[Box] = field(default_factory=list)
    lines: list[Box] = field(default_factory=list)
    texts: list[PlacedText] = field(default_factory=list)
    pictures: list[Box] = field(default_factory=list)
    fills: list[Fill] = field(default_factory=list)


def find_size(page: PdfPage) -> Size:
    """Return the width and height of a page in points, before it is turned."""
    width, height = page.get_size()
    return (width, height) if page.get_rotation() in (0, 180) else (height, width)


def shift_page(page: PdfPage) -> PdfMatrix:
    """Return the matrix that moves the shown part of a page to the lower left corner."""
    left, bottom, *_ = page.get_bbox()
    return PdfMatrix().translate(-left, -bottom)


def list_objects(page: PdfPage) -> Iterator[tuple[PdfObject, PdfMatrix]]:
    """Yield the objects of a page and of the drawings on it.

    The matrix turns the coordinates of the object into those of the page.
    """
    matrices: dict[int | None, PdfMatrix] = {None: shift_page(page)}
    for drawn in page.get_objects(max_depth=DEEPEST_DRAWING):
        outer = drawn.container
        matrix = matrices[None if outer is None else find_address(outer.raw)]
        if drawn.type == raw.FPDF_PAGEOBJ_FORM:
            matrices[find_address(drawn.raw)] = drawn.get_matrix().multiply(matrix)
        else:
            yield drawn, matrix


def take_objects(page: PdfPage) -> PageObjects:
    """Return the objects of a page; of too many paths, the first ones."""
    objects = PageObjects()
    for drawn, matrix in list_objects(page):
        if drawn.type == raw.FPDF_PAGEOBJ_IMAGE:
            objects.pictures.append(matrix.on_rect(*drawn.get_bounds()))
        elif drawn.type == raw.FPDF_PAGEOBJ_TEXT:
            objects.texts.append((drawn, matrix))
        elif drawn.type == raw.FPDF_PAGEOBJ_SHADING:
            box = matrix.on_rect(*drawn.get_bounds())
            objects.fills.append(Fill(len(objects.texts), box, None, is_opaque=False))
        elif drawn.type == raw.FPDF_PAGEOBJ_PATH:
            _add_path(objects, drawn, matrix)
    return objects


def find_address(drawn: Any) -> int | None:
    """Return the address of an object, which identifies it on its page; None of a null pointer."""
    return ctypes.c_void_p.from_buffer(drawn).value


def find_colour(drawn: PdfObject, *, is_stroked: bool = False) -> tuple[int | None, int]:
    """Return the colour of an object, None for a pattern, and its opacity from 0 to 255."""
    red, green, blue, opacity = (ctypes.c_uint() for _ in range(4))
    find = raw.FPDFPageObj_GetStrokeColor if is_stroked else raw.FPDFPageObj_GetFillColor
    if not find(drawn.raw, red, green, blue, opacity):
        return None, _OPAQUE
    return red.value << 16 | green.value << 8 | blue.value, opacity.value


def list_clips(drawn: PdfObject, matrix: PdfMatrix) -> Iterator[Box]:
    """Yield the boxes of the paths that clip an object."""
    clips = raw.FPDFPageObj_GetClipPath(drawn.raw)
    for path in range(raw.FPDFClipPath_CountPaths(clips)):
        count = min(raw.FPDFClipPath_CountPathSegments(clips, path), _MOST_POINTS)
        segments = (raw.FPDFClipPath_GetPathSegment(clips, path, at) for at in range(count))
        yield find_bounds(segments, matrix) or (0.0, 0.0, 0.0, 0.0)


def find_bounds(segments: Iterable[Any], matrix: PdfMatrix) -> Box | None:
    """Return the box around the points of a path after a transformation; None without points."""
    points = [_find_point(segment, matrix) for segment in segments]
    xs, ys = zip(*points, strict=True) if points else ((), ())
    return (min(xs), min(ys), max(xs), max(ys)) if points else None


def read_text(fill: Callable[[Any, int], int]) -> str:
    """Return a text of PDFium, which fills a buffer of a size in bytes, and returns the size."""
    # PDFium fills no buffer that is too small.
    size = fill(None, 0)
    buffer = ctypes.create_string_buffer(max(size, 2))
    fill(ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw[:size].decode("utf-16-le", "replace").rstrip("\0").strip()


def _add_path(objects: PageObjects, drawn: PdfObject, matrix: PdfMatrix) -> None:
    fill, stroked = ctypes.c_int(), ctypes.c_int()
    raw.FPDFPath_GetDrawMode(drawn.raw, fill, stroked)
    left, bottom, right, top = box = matrix.on_rect(*drawn.get_bounds())
    if (
        fill.value
        and min(right - left, top - bottom) > THICKEST
        and len(objects.fills) < _MOST_FILLS
    ):
        colour, _ = find_colour(drawn)
        is_opaque, lines = _is_opaque(drawn), len(objects.lines)
        objects.fills.append(Fill(len(objects.texts), box, colour, is_opaque, lines))
    if len(objects.boxes) < _MOST_BOXES:
        objects.boxes.append(box)
    is_drawn = (fill.value or stroked.value) and not _has_hole(drawn)
    if len(objects.lines) < _MOST_LINES and is_drawn:
        objects.lines.extend(_take_lines(drawn, matrix, box, is_stroked=bool(stroked.value)))


def _has_hole(drawn: PdfObject) -> bool:
    """Return whether an object is clipped by more than boxes, as a frame with a title in a gap."""
    clips = raw.FPDFPageObj_GetClipPath(drawn.raw)
    paths = range(raw.FPDFClipPath_CountPaths(clips))
    return any(raw.FPDFClipPath_CountPathSegments(clips, path) > _LARGEST_BOX for path in paths)


def _is_opaque(drawn: PdfObject) -> bool:
    """Return whether a path is a filled box, all of which is drawn and hides what is behind it."""
    is_clipped = raw.FPDFClipPath_CountPaths(raw.FPDFPageObj_GetClipPath(drawn.raw)) > 0
    if is_clipped or raw.FPDFPageObj_HasTransparency(drawn.raw):
        return False
    if raw.FPDFPath_CountSegments(drawn.raw) > _LARGEST_BOX:
        return False
    return len(list(_find_straight(drawn.raw, drawn.get_matrix()))) >= _SIDES


def _take_lines(drawn: PdfObject, matrix: PdfMatrix, box: Box, *, is_stroked: bool) -> list[Box]:
    """Return the straight horizontal and vertical lines of a path, as boxes without an area."""
    left, bottom, right, top = box
    if right - left <= THICKEST or top - bottom <= THICKEST:
        x, y = (left + right) / 2, (bottom + top) / 2
        if right - left > top - bottom:
            return [(left, y, right, y)]
        return [(x, bottom, x, top)]
    placed, width = drawn.get_matrix().multiply(matrix), ctypes.c_float()
    raw.FPDFPageObj_GetStrokeWidth(drawn.raw, width)
    if not is_stroked or width.value * math.hypot(placed.c, placed.d) > _BROADEST:
        return []
    return list(_find_straight(drawn.raw, placed))


def _find_straight(path: Any, matrix: PdfMatrix) -> Iterator[Box]:
    first = before = (0.0, 0.0)
    for index in range(min(raw.FPDFPath_CountSegments(path), _MOST_POINTS)):
        segment = raw.FPDFPath_GetPathSegment(path, index)
        point = _find_point(segment, matrix)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            first = point
        elif kind == raw.FPDF_SEGMENT_LINETO:
            yield from _keep_straight(before, point)
        if raw.FPDFPathSegment_GetClose(segment):
            yield from _keep_straight(point, first)
            point = first
        before = point


def _find_point(segment: Any, matrix: PdfMatrix) -> PathPoint:
    x, y = ctypes.c_float(), ctypes.c_float()
    raw.FPDFPathSegment_GetPoint(segment, x, y)
    point: PathPoint = matrix.on_point(x.value, y.value)
    return point


def _keep_straight(one: PathPoint, other: PathPoint) -> Iterator[Box]:
    (left, right), (bottom, top) = (sorted(ends) for ends in zip(one, other, strict=True))
    if right - left <= _STRAIGHT or top - bottom <= _STRAIGHT:
        yield left, bottom, right, top
