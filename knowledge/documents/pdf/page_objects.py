"""Takes what a page draws besides its text: lines, pictures, and where anything is visible.

Positions are points from the lower left corner of the shown part of the page, before it is turned.
"""

import ctypes
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypdfium2 import PdfMatrix, PdfObject, PdfPage

Box = tuple[float, float, float, float]
"""Left, bottom, right and top."""
Size = tuple[float, float]
PathPoint = tuple[float, float]
_PAPER = 0xFFFFFF
THICKEST = 3.0
"""Maximum thickness of a line in points; a thicker filled box is not a line."""
_BROADEST = 6.0
"""Maximum width of a stroke in points; the background of a text may be drawn as a line."""
_STRAIGHT = 0.7
_MOST_POINTS = 4_000
"""Maximum number of points of a path; a path with more is a drawing."""
_MOST_BOXES = 5_000
_MOST_LINES = 20_000
_DEEPEST_DRAWING = 4
_MOST_FILLS = 2_000
_MOST_ANNOTATIONS = 5_000
_LARGEST_BOX = 6
_BESIDE = 1.0
_SIDES = 4
_LAST = 1_000_000
_OPAQUE = 255
_PIXELS = 1.5
"""Pixels per point of the rendering that shows what is visible."""
_MOST_PIXELS = 6_000_000
_LONGEST_MARK = 100


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
    """The boxes of the paths of a page, their straight lines, its texts and pictures.

    A text has the matrix that turns its coordinates into those of the page. `strikes` are lines of
    annotations that strike text out.
    """

    boxes: list[Box] = field(default_factory=list)
    lines: list[Box] = field(default_factory=list)
    texts: "list[tuple[PdfObject, PdfMatrix]]" = field(default_factory=list)
    pictures: list[Box] = field(default_factory=list)
    strikes: list[Box] = field(default_factory=list)
    fills: list[Fill] = field(default_factory=list)


class VisiblePlaces:
    """The places of a page where something is visible, according to a rendering without pictures.

    The place of a picture counts as visible: invisible text there is the recognised text of a scan.
    """

    def __init__(self, page: "PdfPage", objects: PageObjects) -> None:
        self._page = page
        self._fills = objects.fills
        self._filled = _list_edges([fill.box for fill in objects.fills])
        self._pictured = _list_edges(objects.pictures)
        # PDFium omits a text that is drawn again in the same place, such as above a box.
        places = [_round(matrix.on_rect(*drawn.get_bounds())) for drawn, matrix in objects.texts]
        last = {place: at for at, place in enumerate(places)}
        self._texts = {
            find_address(drawn.raw): _read_text(page, last[place], drawn, matrix)
            for place, (drawn, matrix) in zip(places, objects.texts, strict=True)
        }
        self._size = find_size(page)
        self._scale = min(_PIXELS, math.sqrt(_MOST_PIXELS / max(math.prod(self._size), 1)))

    def show(self, box: Box, text: int | None) -> bool:
        """Return whether a word of a text, by its address, may be visible in a box.

        A word is hidden by an opaque box that is drawn over it, or if it is outside of the box that
        clips it. It is also hidden if a rendering shows nothing in its place, and the file states
        why; PDFium cannot draw all fonts.
        """
        own = self._texts.get(text)
        if own is None or min(self._size) < 1:
            # Programs show such a page in another size.
            return True
        fills = [self._fills[at] for at in _find_overlapping(self._filled, box)]
        if any(fill.is_opaque and own.at < fill.at and _covers(fill.box, box) for fill in fills):
            return False
        if not all(_overlaps(clip, box) for clip in own.clips):
            # Another text may be in the place, such as the next cell of a sheet.
            return False
        is_hidden = (
            own.is_hidden
            or not all(_has_middle(edge, box) for edge in ((0, 0, *self._size), *own.clips))
            or any(own.at < fill.at and _has_middle(fill.box, box) for fill in fills)
        )
        is_alike = own.colour == _PAPER or any(fill.colour in (own.colour, None) for fill in fills)
        if not (is_hidden or is_alike) or _find_overlapping(self._pictured, box):
            return True
        left, bottom, right, top = box
        columns = slice(max(int(left * self._scale), 0), max(int(right * self._scale) + 1, 0))
        upper, lower = ((self._size[1] - edge) * self._scale for edge in (top, bottom))
        seen = self._colours[max(int(upper), 0) : max(int(lower) + 1, 0), columns]
        if seen.size and (seen != seen[0, 0]).any():
            return True
        return not (is_hidden or (seen.size and seen[0, 0] == own.colour))

    @cached_property
    def _colours(self) -> Any:
        return _render(self._page, self._scale)


@dataclass(frozen=True, slots=True)
class _Text:
    """A drawn text: the number of the last text in its place, its colour, the boxes that clip it,
    and whether all is hidden.
    """

    at: int
    colour: int | None
    clips: list[Box]
    is_hidden: bool


def find_size(page: "PdfPage") -> Size:
    """Return the width and height of a page in points, before it is turned."""
    width, height = page.get_size()
    return (width, height) if page.get_rotation() in (0, 180) else (height, width)


def shift_page(page: "PdfPage") -> "PdfMatrix":
    """Return the matrix that moves the shown part of a page to the lower left corner."""
    from pypdfium2 import PdfMatrix

    left, bottom, *_ = page.get_bbox()
    return PdfMatrix().translate(-left, -bottom)


def list_objects(page: "PdfPage") -> "Iterator[tuple[PdfObject, PdfMatrix]]":
    """Yield the objects of a page and of the drawings on it.

    The matrix turns the coordinates of the object into those of the page.
    """
    from pypdfium2 import raw

    matrices: dict[int | None, PdfMatrix] = {None: shift_page(page)}
    for drawn in page.get_objects(max_depth=_DEEPEST_DRAWING):
        outer = drawn.container
        matrix = matrices[None if outer is None else find_address(outer.raw)]
        if drawn.type == raw.FPDF_PAGEOBJ_FORM:
            matrices[find_address(drawn.raw)] = drawn.get_matrix().multiply(matrix)
        else:
            yield drawn, matrix


def take_objects(page: "PdfPage") -> PageObjects:
    """Return the objects of a page; of too many paths, the first ones."""
    from pypdfium2 import raw

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
            _add_path(raw, objects, drawn, matrix)
    objects.strikes = list(_take_strikes(raw, page))
    return objects


def find_address(drawn: Any) -> int | None:
    """Return the address of an object, which identifies it on its page."""
    return ctypes.cast(drawn, ctypes.c_void_p).value if drawn else None


def is_hidden(raw: Any, annotation: Any) -> bool:
    """Return whether a page does not show an annotation."""
    hidden: int = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
    return bool(raw.FPDFAnnot_GetFlags(annotation) & hidden)


def _round(box: Box) -> tuple[int, ...]:
    return tuple(map(round, box))


def _add_path(raw: Any, objects: PageObjects, drawn: "PdfObject", matrix: "PdfMatrix") -> None:
    fill, stroked = ctypes.c_int(), ctypes.c_int()
    raw.FPDFPath_GetDrawMode(drawn.raw, fill, stroked)
    left, bottom, right, top = box = matrix.on_rect(*drawn.get_bounds())
    if (
        fill.value
        and min(right - left, top - bottom) > THICKEST
        and len(objects.fills) < _MOST_FILLS
    ):
        colour, _ = _find_colour(raw, drawn)
        is_opaque, lines = _is_opaque(raw, drawn), len(objects.lines)
        objects.fills.append(Fill(len(objects.texts), box, colour, is_opaque, lines))
    if len(objects.boxes) < _MOST_BOXES:
        objects.boxes.append(box)
    is_drawn = (fill.value or stroked.value) and not _has_hole(raw, drawn)
    if len(objects.lines) < _MOST_LINES and is_drawn:
        objects.lines.extend(_take_lines(raw, drawn, matrix, box, is_stroked=bool(stroked.value)))


def _render(page: "PdfPage", scale: float) -> Any:
    """Return the colours of a page without its pictures, annotations and turn, by rows."""
    from pypdfium2 import raw

    objects = list(list_objects(page))
    pictures = [drawn.raw for drawn, _ in objects if drawn.type == raw.FPDF_PAGEOBJ_IMAGE]
    for picture in pictures:
        raw.FPDFPageObj_SetIsActive(picture, 0)
    bitmap = page.render(
        scale=scale, rotation=-page.get_rotation() % 360, may_draw_forms=False, draw_annots=False,
        prefer_bgrx=True,
    )  # fmt: skip
    for picture in pictures:
        raw.FPDFPageObj_SetIsActive(picture, 1)
    return bitmap.to_numpy().view("uint32")[:, :, 0] & 0xFFFFFF


def _read_text(page: "PdfPage", at: int, drawn: "PdfObject", matrix: "PdfMatrix") -> _Text:
    from pypdfium2 import raw

    mode = raw.FPDFTextObj_GetTextRenderMode(drawn.raw)
    is_stroked = mode in (raw.FPDF_TEXTRENDERMODE_STROKE, raw.FPDF_TEXTRENDERMODE_STROKE_CLIP)
    colour, opacity = _find_colour(raw, drawn, is_stroked=is_stroked)
    return _Text(
        # Letters that are the clipping path of a box are drawn by it.
        at if mode < raw.FPDF_TEXTRENDERMODE_FILL_CLIP else _LAST,
        colour,
        list(_list_clips(raw, drawn, matrix)),
        mode == raw.FPDF_TEXTRENDERMODE_INVISIBLE
        or opacity == 0
        or _is_on_layer(raw, drawn)
        or (drawn.container is not None and _is_drawn_alone(raw, page, drawn)),
    )


def _find_colour(
    raw: Any, drawn: "PdfObject", *, is_stroked: bool = False
) -> tuple[int | None, int]:
    """Return the colour of an object, None for a pattern, and its opacity from 0 to 255."""
    red, green, blue, opacity = (ctypes.c_uint() for _ in range(4))
    find = raw.FPDFPageObj_GetStrokeColor if is_stroked else raw.FPDFPageObj_GetFillColor
    if not find(drawn.raw, red, green, blue, opacity):
        return None, _OPAQUE
    return red.value << 16 | green.value << 8 | blue.value, opacity.value


def _list_clips(raw: Any, drawn: "PdfObject", matrix: "PdfMatrix") -> Iterator[Box]:
    """Yield the boxes of the paths that clip an object."""
    clips = raw.FPDFPageObj_GetClipPath(drawn.raw)
    x, y = ctypes.c_float(), ctypes.c_float()
    for path in range(raw.FPDFClipPath_CountPaths(clips)):
        points: list[PathPoint] = []
        for at in range(min(raw.FPDFClipPath_CountPathSegments(clips, path), _MOST_POINTS)):
            segment = raw.FPDFClipPath_GetPathSegment(clips, path, at)
            raw.FPDFPathSegment_GetPoint(segment, x, y)
            points.append(matrix.on_point(x.value, y.value))
        xs, ys = zip(*points, strict=True) if points else ((0.0,), (0.0,))
        yield min(xs), min(ys), max(xs), max(ys)


def _has_hole(raw: Any, drawn: "PdfObject") -> bool:
    """Return whether an object is clipped by more than boxes, as a frame with a title in a gap."""
    clips = raw.FPDFPageObj_GetClipPath(drawn.raw)
    paths = range(raw.FPDFClipPath_CountPaths(clips))
    return any(raw.FPDFClipPath_CountPathSegments(clips, path) > _LARGEST_BOX for path in paths)


def _is_on_layer(raw: Any, drawn: "PdfObject") -> bool:
    """Return whether an object is optional content (ISO 32000-1, 8.11.3.2)."""
    name, length = (ctypes.c_ushort * _LONGEST_MARK)(), ctypes.c_ulong()
    for at in range(raw.FPDFPageObj_CountMarks(drawn.raw)):
        mark = raw.FPDFPageObj_GetMark(drawn.raw, at)
        raw.FPDFPageObjMark_GetName(mark, name, ctypes.sizeof(name), length)
        if bytes(name)[: length.value].decode("utf-16-le") == "OC\0":
            return True
    return False


def _is_drawn_alone(raw: Any, page: "PdfPage", drawn: "PdfObject") -> bool:
    """Return whether PDFium draws a text that is alone, without layers and drawings around it."""
    from pypdfium2 import PdfBitmap

    bitmap = raw.FPDFTextObj_GetRenderedBitmap(page.pdf.raw, page.raw, drawn.raw, 1.0)
    return bool(bitmap) and bool(PdfBitmap.from_raw(bitmap).to_numpy().any())


def _is_opaque(raw: Any, drawn: "PdfObject") -> bool:
    """Return whether a path is a filled box, all of which is drawn and hides what is behind it."""
    is_clipped = raw.FPDFClipPath_CountPaths(raw.FPDFPageObj_GetClipPath(drawn.raw)) > 0
    if is_clipped or raw.FPDFPageObj_HasTransparency(drawn.raw):
        return False
    if raw.FPDFPath_CountSegments(drawn.raw) > _LARGEST_BOX:
        return False
    return len(list(_find_straight(raw, drawn.raw, drawn.get_matrix()))) >= _SIDES


def _take_strikes(raw: Any, page: "PdfPage") -> Iterator[Box]:
    """Yield the lines with which annotations strike text out."""
    shift = shift_page(page)
    quad = raw.FS_QUADPOINTSF()
    for at in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST_ANNOTATIONS)):
        annotation = raw.FPDFPage_GetAnnot(page, at)
        is_strike = raw.FPDFAnnot_GetSubtype(annotation) == raw.FPDF_ANNOT_STRIKEOUT
        if is_strike and not is_hidden(raw, annotation):
            for number in range(raw.FPDFAnnot_CountAttachmentPoints(annotation)):
                raw.FPDFAnnot_GetAttachmentPoints(annotation, number, quad)
                xs = quad.x1, quad.x2, quad.x3, quad.x4
                middle = (quad.y1 + quad.y2 + quad.y3 + quad.y4) / 4
                yield shift.on_rect(min(xs), middle, max(xs), middle)
        raw.FPDFPage_CloseAnnot(annotation)


def _list_edges(boxes: Sequence[Box]) -> Any:
    """Return an array of all left edges of boxes, all bottom, right and top ones."""
    import numpy as np

    return np.array(boxes).reshape(-1, 4).T


def _find_overlapping(edges: Any, box: Box) -> list[int]:
    """Return the numbers of the boxes that overlap a box."""
    left, bottom, right, top = edges
    overlaps = (left < box[2]) & (box[0] < right) & (bottom < box[3]) & (box[1] < top)
    numbers: list[int] = overlaps.nonzero()[0].tolist()
    return numbers


def _has_middle(box: Box, other: Box) -> bool:
    x, y = (other[0] + other[2]) / 2, (other[1] + other[3]) / 2
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


def _overlaps(box: Box, word: Box) -> bool:
    """Return whether a word is in a box, at least in part or beside its edge."""
    left, bottom, right, top = word
    return (
        box[0] < right + _BESIDE
        and box[1] < top + _BESIDE
        and left - _BESIDE < box[2]
        and bottom - _BESIDE < box[3]
    )


def _covers(box: Box, word: Box) -> bool:
    """Return whether a box covers a word; there is some space beside its letters."""
    left, bottom, right, top = word
    return (
        box[0] <= left + _BESIDE
        and box[1] <= bottom + _BESIDE
        and right - _BESIDE <= box[2]
        and top - _BESIDE <= box[3]
    )


def _take_lines(
    raw: Any, drawn: "PdfObject", matrix: "PdfMatrix", box: Box, *, is_stroked: bool
) -> list[Box]:
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
    return list(_find_straight(raw, drawn.raw, placed))


def _find_straight(raw: Any, path: Any, matrix: "PdfMatrix") -> Iterator[Box]:
    first: PathPoint = (0.0, 0.0)
    before: PathPoint = (0.0, 0.0)
    x, y = ctypes.c_float(), ctypes.c_float()
    for index in range(min(raw.FPDFPath_CountSegments(path), _MOST_POINTS)):
        segment = raw.FPDFPath_GetPathSegment(path, index)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point = matrix.on_point(x.value, y.value)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            first = point
        elif kind == raw.FPDF_SEGMENT_LINETO:
            yield from _keep_straight(before, point)
        if raw.FPDFPathSegment_GetClose(segment):
            yield from _keep_straight(point, first)
            point = first
        before = point


def _keep_straight(one: PathPoint, other: PathPoint) -> Iterator[Box]:
    (left, right), (bottom, top) = (sorted(ends) for ends in zip(one, other, strict=True))
    if right - left <= _STRAIGHT or top - bottom <= _STRAIGHT:
        yield left, bottom, right, top
