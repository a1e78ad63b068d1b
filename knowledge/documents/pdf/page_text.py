"""Takes the text of a page of a PDF with its places: segments of lines, their size and typeface.

Text that runs up, down or upside down on a page is read as if the page were turned for it, so its
places are those that a reader sees.
"""

import ctypes
import math
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from knowledge.documents.pdf.drawn_strokes import Stroke, take_strokes, turn_strokes
from knowledge.documents.pdf.turned_text import (
    Box,
    Size,
    TextDirection,
    find_turn,
    turn_box,
    turn_point,
    turn_size,
)

if TYPE_CHECKING:
    from pypdfium2 import PdfPage, PdfTextPage

_GAP_OF_CELLS = 1.2
"""How many times its size may lie between two words of one segment."""
_GAP_WITHOUT_SPACE = 0.9
"""The same where no space is drawn between them: cells are drawn one by one."""
_GAP_OF_WORDS = 0.2
_BASELINE = 0.45
_HYPHEN = 2
_LONGEST_NAME = 200
_MOST_CHARACTERS = 200_000
_MOST_RULES = 5_000
_MOST_STROKES = 20_000
_LEAST_GAP_OF_CELLS = 0.5
_BOLD = ("bold", "black", "heavy", "semibold", "demi")
_CODE = ("courier", "mono", "consol", "menlo", "typewriter", "cmtt")


@dataclass(slots=True)
class Segment:
    """Words on one baseline without a wide gap; places are points from the lower left corner."""

    text: str
    left: float
    right: float
    base: float
    size: float
    is_bold: bool = False
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class DrawnRule:
    """A horizontal line that is drawn on a page."""

    left: float
    right: float
    base: float


@dataclass(slots=True)
class PageText:
    """What a page shows; `has_pictures` says whether a page without text may be a scan."""

    width: float
    height: float
    segments: list[Segment] = field(default_factory=list)
    rules: list[DrawnRule] = field(default_factory=list)
    strokes: list[Stroke] = field(default_factory=list)
    has_pictures: bool = False


@dataclass(frozen=True, slots=True)
class _Typeface:
    size: float
    is_bold: bool
    is_code: bool
    turn: TextDirection = TextDirection.NONE


def take_text(page: "PdfPage", text_page: "PdfTextPage") -> list[PageText]:
    """Return the segments and rules of a page in the order in which they are drawn.

    There is one text for each direction in which text runs, the one of most letters first.
    """
    size = page.get_size() if page.get_rotation() in (0, 180) else page.get_size()[::-1]
    objects = _take_objects(page)
    by_turn: dict[TextDirection, list[Segment]] = {}
    for turn, segment in _take_segments(text_page, size, _CellEdges(objects.lines, size)):
        by_turn.setdefault(turn, []).append(segment)
    turns = sorted(by_turn, key=lambda turn: -sum(len(one.text) for one in by_turn[turn]))
    taken = [
        PageText(*turn_size(turn, size), segments=by_turn.get(turn, []))
        for turn in turns or [TextDirection.NONE]
    ]
    first = turns[0] if turns else TextDirection.NONE
    taken[0].has_pictures = objects.has_pictures
    taken[0].rules = _list_rules(objects.boxes, first, size)
    taken[0].strokes = turn_strokes(objects.lines, first, size)
    return taken


def _take_segments(
    text_page: "PdfTextPage", size: Size, edges_of_cells: "_CellEdges"
) -> Iterator[tuple[TextDirection, Segment]]:
    from pypdfium2 import raw

    origin = (ctypes.c_double(), ctypes.c_double())
    box = raw.FS_RECTF()
    typefaces: dict[int | None, _Typeface] = {}
    current: Segment | None = None
    turn = TextDirection.NONE
    has_space = has_drawn_space = False
    for index in range(min(text_page.count_chars(), _MOST_CHARACTERS)):
        code = raw.FPDFText_GetUnicode(text_page, index)
        if (code <= 32 and code != _HYPHEN) or code == 0xA0:
            has_space = True
            has_drawn_space |= raw.FPDFText_IsGenerated(text_page, index) == 0
            continue
        if not raw.FPDFText_GetCharOrigin(text_page, index, *origin):
            continue
        typeface = _find_typeface(raw, text_page, index, typefaces)
        left, base, right = _find_place(raw, text_page, index, typeface.turn, size, origin, box)
        shown = "-" if code == _HYPHEN else _show(code)
        widest = _GAP_OF_CELLS if has_drawn_space else _GAP_WITHOUT_SPACE
        if (
            current is not None
            and _continues(
                current, left, base, typeface, widest, is_turned=typeface.turn is not turn
            )
            and not edges_of_cells.part(current, left, typeface.turn)
        ):
            gap = left - current.right
            if has_space or gap > _GAP_OF_WORDS * current.size:
                current.text += " "
            current.text += shown
            current.right = max(current.right, right)
            current.is_bold = current.is_bold and typeface.is_bold
            current.is_code = current.is_code and typeface.is_code
            current.size = max(current.size, typeface.size)
        else:
            if current is not None:
                yield turn, current
            turn = typeface.turn
            current = Segment(
                shown, left, right, base, typeface.size, typeface.is_bold, typeface.is_code
            )
        has_space = has_drawn_space = False
    if current is not None:
        yield turn, current


def _find_place(
    raw: Any,
    text_page: "PdfTextPage",
    index: int,
    turn: TextDirection,
    size: tuple[float, float],
    origin: tuple[ctypes.c_double, ctypes.c_double],
    box: Any,
) -> tuple[float, float, float]:
    """Return the left end, the baseline and the right end of a character, upright.

    Of a turned one PDFium has only the tight box.
    """
    x, y = origin[0].value, origin[1].value
    if turn is TextDirection.NONE:
        raw.FPDFText_GetLooseCharBox(text_page, index, box)
        return x, y, box.right
    left, base = turn_point(turn, x, y, size)
    edges = [ctypes.c_double() for _ in range(4)]
    raw.FPDFText_GetCharBox(text_page, index, *edges)
    first, last, bottom, top = (edge.value for edge in edges)
    return left, base, turn_box(turn, (first, bottom, last, top), size)[2]


def _continues(
    current: Segment,
    left: float,
    base: float,
    typeface: _Typeface,
    widest: float,
    *,
    is_turned: bool,
) -> bool:
    size = max(current.size, typeface.size)
    if is_turned or abs(base - current.base) > _BASELINE * size:
        return False
    return -size < left - current.right < widest * size


def _show(code: int) -> str:
    sign = chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
    return unicodedata.normalize("NFKC", sign) if 0xFB00 <= code <= 0xFB06 else sign


def _find_typeface(
    raw: Any, text_page: "PdfTextPage", index: int, known: dict[int | None, _Typeface]
) -> _Typeface:
    drawn = raw.FPDFText_GetTextObject(text_page, index)
    key = ctypes.cast(drawn, ctypes.c_void_p).value if drawn else None
    if key not in known:
        placed = raw.FS_MATRIX()
        raw.FPDFText_GetMatrix(text_page, index, placed)
        turn = find_turn(placed.a, placed.b)
        known[key] = _read_typeface(raw, drawn, turn) if drawn else _Typeface(10.0, False, False)
    return known[key]


def _read_typeface(raw: Any, drawn: Any, turn: TextDirection) -> _Typeface:
    size, matrix = ctypes.c_float(), raw.FS_MATRIX()
    raw.FPDFTextObj_GetFontSize(drawn, size)
    raw.FPDFPageObj_GetMatrix(drawn, matrix)
    scaled = size.value * math.hypot(matrix.c, matrix.d)
    font = raw.FPDFTextObj_GetFont(drawn)
    buffer = ctypes.create_string_buffer(_LONGEST_NAME)
    length = raw.FPDFFont_GetBaseFontName(font, buffer, _LONGEST_NAME) if font else 0
    name = buffer.value.decode("utf-8", "replace").lower() if 0 < length <= _LONGEST_NAME else ""
    return _Typeface(
        size=round(max(min(abs(scaled), 500.0), 1.0) * 2) / 2,
        is_bold=any(word in name for word in _BOLD),
        is_code=any(word in name for word in _CODE),
        turn=turn,
    )


@dataclass(slots=True)
class _Objects:
    """The drawing of a page: the places of its paths, their straight lines, and pictures."""

    boxes: list[Box] = field(default_factory=list)
    lines: list[Box] = field(default_factory=list)
    has_pictures: bool = False


class _CellEdges:
    """The vertical lines that end a segment: cells may stand closer than words do."""

    def __init__(self, lines: list[Box], size: Size) -> None:
        self._lines = lines
        self._size = size
        self._by_turn: dict[TextDirection, list[Stroke]] = {}

    def part(self, current: Segment, left: float, turn: TextDirection) -> bool:
        """Return whether a line stands between a segment and a character that begins at `left`."""
        if left - current.right < _LEAST_GAP_OF_CELLS:
            return False
        if turn not in self._by_turn:
            strokes = turn_strokes(self._lines, turn, self._size)
            own = (one for one in strokes if one.is_vertical)
            self._by_turn[turn] = sorted(own, key=lambda one: one.at)
        upright = self._by_turn[turn]
        middle = current.base + current.size * 0.3
        first = bisect_left(upright, current.right - 1, key=lambda one: one.at)
        for stroke in upright[first:]:
            if stroke.at > left + 1:
                return False
            if stroke.start <= middle <= stroke.end:
                return True
        return False


def _take_objects(page: "PdfPage") -> _Objects:
    from pypdfium2 import raw

    found = _Objects()
    for drawn in page.get_objects(max_depth=4):
        if drawn.type == raw.FPDF_PAGEOBJ_IMAGE:
            found.has_pictures = True
        elif drawn.type == raw.FPDF_PAGEOBJ_PATH:
            if len(found.boxes) < _MOST_RULES:
                found.boxes.append(drawn.get_bounds())
            if len(found.lines) < _MOST_STROKES:
                found.lines.extend(take_strokes(drawn))
    return found


def _list_rules(boxes: list[Box], turn: TextDirection, size: Size) -> list[DrawnRule]:
    """Return the horizontal edges of paths."""
    rules: list[DrawnRule] = []
    for box in boxes:
        left, bottom, right, top = turn_box(turn, box, size)
        if right - left > 20:
            rules.append(DrawnRule(left, right, top))
            if top - bottom > 3:
                rules.append(DrawnRule(left, right, bottom))
    return rules
