"""Takes what a page draws besides its text: lines, pictures, and where anything is visible.

Positions are points from the lower left corner of the shown part of the page, before it is turned.
"""

import ctypes
import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypdfium2 import PdfMatrix, PdfObject, PdfPage

Box = tuple[float, float, float, float]
"""Left, bottom, right and top."""
Size = tuple[float, float]
PathPoint = tuple[float, float]
THICKEST = 3.0
"""Maximum thickness of a line in points; a thicker filled box is not a line."""
_STRAIGHT = 0.7
_MOST_POINTS = 4_000
"""Maximum number of points of a path; a path with more is a drawing."""
_MOST_BOXES = 5_000
_MOST_LINES = 20_000
_DEEPEST_DRAWING = 4
_MOST_COVERS = 2_000
_MOST_ANNOTATIONS = 5_000
_LARGEST_BOX = 6
_SIDES = 4
_LAST = 1_000_000
_PIXELS = 1.5
"""Pixels per point of the rendering that shows what is visible."""
_MOST_PIXELS = 6_000_000


@dataclass(slots=True)
class PageObjects:
    """The boxes of the paths of a page, their straight lines, its texts and pictures.

    `covers` are opaque boxes, each with the number of texts that are drawn before it. `strikes` are
    lines of annotations that strike text out.
    """

    boxes: list[Box] = field(default_factory=list)
    lines: list[Box] = field(default_factory=list)
    texts: "list[PdfObject]" = field(default_factory=list)
    pictures: list[Box] = field(default_factory=list)
    covers: list[tuple[int, Box]] = field(default_factory=list)
    strikes: list[Box] = field(default_factory=list)


class VisiblePlaces:
    """The places of a page where something is visible, according to a rendering without pictures.

    The place of a picture counts as visible: invisible text there is the recognised text of a scan.
    """

    def __init__(self, page: "PdfPage", objects: PageObjects) -> None:
        from pypdfium2 import raw

        self._pictures = objects.pictures
        self._covers = objects.covers
        # Letters that are the clipping path of a box are drawn by it.
        self._numbers = {
            find_address(text.raw): at
            for at, text in enumerate(objects.texts)
            if raw.FPDFTextObj_GetTextRenderMode(text.raw) < raw.FPDF_TEXTRENDERMODE_FILL_CLIP
        }
        width, self._height = find_size(page)
        self._is_empty = min(width, self._height) < 1
        if not self._is_empty:
            self._scale = min(_PIXELS, math.sqrt(_MOST_PIXELS / (width * self._height)))
            self._colours = _render(page, self._scale)

    def show(self, box: Box, text: int | None) -> bool:
        """Return whether a word of a text, by its address, may be visible in a box.

        Nothing opaque is drawn over it, and the box has several colours, or a picture is there.
        """
        if self._is_empty:
            # Programs show such a page in another size.
            return True
        first = bisect_right(self._covers, self._numbers.get(text, _LAST), key=lambda one: one[0])
        if any(_contains(cover, box) for _, cover in self._covers[first:]):
            return False
        left, bottom, right, top = box
        columns = slice(max(int(left * self._scale), 0), max(int(right * self._scale) + 1, 0))
        upper, lower = ((self._height - edge) * self._scale for edge in (top, bottom))
        seen = self._colours[max(int(upper), 0) : max(int(lower) + 1, 0), columns]
        return bool(seen.size and (seen != seen[0, 0]).any()) or any(
            one[0] < right and left < one[2] and one[1] < top and bottom < one[3]
            for one in self._pictures
        )


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
            objects.texts.append(drawn)
        elif drawn.type == raw.FPDF_PAGEOBJ_PATH:
            if len(objects.boxes) < _MOST_BOXES:
                objects.boxes.append(matrix.on_rect(*drawn.get_bounds()))
            if len(objects.lines) < _MOST_LINES:
                objects.lines.extend(_take_lines(raw, drawn, matrix))
            if len(objects.covers) < _MOST_COVERS and _is_opaque(raw, drawn):
                objects.covers.append((len(objects.texts), objects.boxes[-1]))
    objects.strikes = list(_take_strikes(raw, page))
    return objects


def find_address(drawn: Any) -> int | None:
    """Return the address of an object, which identifies it on its page."""
    return ctypes.cast(drawn, ctypes.c_void_p).value if drawn else None


def is_hidden(raw: Any, annotation: Any) -> bool:
    """Return whether a page does not show an annotation."""
    hidden: int = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
    return bool(raw.FPDFAnnot_GetFlags(annotation) & hidden)


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
    return bitmap.to_numpy().view("uint32")[:, :, 0]


def _is_opaque(raw: Any, drawn: "PdfObject") -> bool:
    """Return whether a path is a filled box, all of which is drawn and hides what is behind it."""
    fill, stroked = ctypes.c_int(), ctypes.c_int()
    raw.FPDFPath_GetDrawMode(drawn.raw, fill, stroked)
    is_clipped = raw.FPDFClipPath_CountPaths(raw.FPDFPageObj_GetClipPath(drawn.raw)) > 0
    if not fill.value or is_clipped or raw.FPDFPageObj_HasTransparency(drawn.raw):
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


def _contains(box: Box, other: Box) -> bool:
    return box[0] <= other[0] and box[1] <= other[1] and other[2] <= box[2] and other[3] <= box[3]


def _take_lines(raw: Any, drawn: "PdfObject", matrix: "PdfMatrix") -> list[Box]:
    """Return the straight horizontal and vertical lines of a path, as boxes without an area."""
    fill, stroked = ctypes.c_int(), ctypes.c_int()
    if not raw.FPDFPath_GetDrawMode(drawn.raw, fill, stroked):
        return []
    if not fill.value and not stroked.value:
        return []
    left, bottom, right, top = matrix.on_rect(*drawn.get_bounds())
    if right - left <= THICKEST or top - bottom <= THICKEST:
        x, y = (left + right) / 2, (bottom + top) / 2
        if right - left > top - bottom:
            return [(left, y, right, y)]
        return [(x, bottom, x, top)]
    if not stroked.value:
        return []
    return list(_find_straight(raw, drawn.raw, drawn.get_matrix().multiply(matrix)))


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
