"""Takes the straight lines that are drawn on a page of a PDF: the edges of boxes are lines too."""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from knowledge.documents.pdf.turned_text import Box, Size, TextDirection, turn_box

if TYPE_CHECKING:
    from pypdfium2 import PdfObject

THICKEST = 3.0
"""A filled box that is thinner, in points, is a line."""
_SHORTEST = 3.0
_STRAIGHT = 0.7
_MOST_POINTS = 4_000
"""Points of one path; a path of more is a drawing."""

PathPoint = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Stroke:
    """A straight line, in points from the lower left corner: `at` is its place across its course.

    A horizontal one goes from its left end to its right end, a vertical one upwards.
    """

    is_vertical: bool
    at: float
    start: float
    end: float


def take_strokes(drawn: "PdfObject") -> list[Box]:
    """Return the straight horizontal and vertical lines of a path, as boxes without an area."""
    from pypdfium2 import raw

    fill, stroked = ctypes.c_int(), ctypes.c_int()
    if not raw.FPDFPath_GetDrawMode(drawn.raw, fill, stroked):
        return []
    if not fill.value and not stroked.value:
        return []
    left, bottom, right, top = drawn.get_bounds()
    if right - left <= THICKEST or top - bottom <= THICKEST:
        x, y = (left + right) / 2, (bottom + top) / 2
        if right - left > top - bottom:
            return [(left, y, right, y)]
        return [(x, bottom, x, top)]
    if not stroked.value:
        return []
    matrix = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(drawn.raw, matrix)
    return list(_find_straight(raw, drawn.raw, matrix))


def turn_strokes(lines: list[Box], turn: TextDirection, size: Size) -> list[Stroke]:
    """Return lines as a reader of text in a direction sees them; short ones are left out."""
    found: list[Stroke] = []
    for line in lines:
        left, bottom, right, top = turn_box(turn, line, size)
        if right - left >= max(_SHORTEST, top - bottom):
            found.append(Stroke(False, bottom, left, right))
        elif top - bottom >= _SHORTEST:
            found.append(Stroke(True, left, bottom, top))
    return found


def _find_straight(raw: Any, path: Any, matrix: Any) -> Iterator[Box]:
    first: PathPoint = (0.0, 0.0)
    before: PathPoint = (0.0, 0.0)
    x, y = ctypes.c_float(), ctypes.c_float()
    for index in range(min(raw.FPDFPath_CountSegments(path), _MOST_POINTS)):
        segment = raw.FPDFPath_GetPathSegment(path, index)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point = (
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
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
