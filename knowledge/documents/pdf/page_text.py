"""Takes the text of a page of a PDF with its places: segments of lines, their size and typeface."""

import ctypes
import math
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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
    has_pictures: bool = False


@dataclass(frozen=True, slots=True)
class _Typeface:
    size: float
    is_bold: bool
    is_code: bool


def take_text(page: "PdfPage", text_page: "PdfTextPage") -> PageText:
    """Return the segments and rules of a page in the order in which they are drawn."""
    width, height = page.get_size()
    taken = PageText(width, height, list(_take_segments(text_page)))
    _take_objects(page, taken)
    return taken


def _take_segments(text_page: "PdfTextPage") -> Iterator[Segment]:
    from pypdfium2 import raw

    x, y = ctypes.c_double(), ctypes.c_double()
    box = raw.FS_RECTF()
    typefaces: dict[int | None, _Typeface] = {}
    current: Segment | None = None
    has_space = has_drawn_space = False
    for index in range(min(text_page.count_chars(), _MOST_CHARACTERS)):
        code = raw.FPDFText_GetUnicode(text_page, index)
        if (code <= 32 and code != _HYPHEN) or code == 0xA0:
            has_space = True
            has_drawn_space |= raw.FPDFText_IsGenerated(text_page, index) == 0
            continue
        if not raw.FPDFText_GetCharOrigin(text_page, index, x, y):
            continue
        raw.FPDFText_GetLooseCharBox(text_page, index, box)
        typeface = _find_typeface(raw, text_page, index, typefaces)
        shown = "-" if code == _HYPHEN else _show(code)
        widest = _GAP_OF_CELLS if has_drawn_space else _GAP_WITHOUT_SPACE
        if current is not None and _continues(current, x.value, y.value, typeface, widest):
            gap = x.value - current.right
            if has_space or gap > _GAP_OF_WORDS * current.size:
                current.text += " "
            current.text += shown
            current.right = max(current.right, box.right)
            current.is_bold = current.is_bold and typeface.is_bold
            current.is_code = current.is_code and typeface.is_code
            current.size = max(current.size, typeface.size)
        else:
            if current is not None:
                yield current
            current = Segment(
                shown, x.value, box.right, y.value, typeface.size, typeface.is_bold,
                typeface.is_code,
            )  # fmt: skip
        has_space = has_drawn_space = False
    if current is not None:
        yield current


def _continues(
    current: Segment, left: float, base: float, typeface: _Typeface, widest: float
) -> bool:
    size = max(current.size, typeface.size)
    if abs(base - current.base) > _BASELINE * size:
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
        known[key] = _read_typeface(raw, drawn) if drawn else _Typeface(10.0, False, False)
    return known[key]


def _read_typeface(raw: Any, drawn: Any) -> _Typeface:
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
    )


def _take_objects(page: "PdfPage", taken: PageText) -> None:
    from pypdfium2 import raw

    for drawn in page.get_objects(max_depth=4):
        if drawn.type == raw.FPDF_PAGEOBJ_IMAGE:
            taken.has_pictures = True
        elif drawn.type == raw.FPDF_PAGEOBJ_PATH and len(taken.rules) < _MOST_RULES:
            left, bottom, right, top = drawn.get_bounds()
            if right - left > 20:
                taken.rules.append(DrawnRule(left, right, top))
                if top - bottom > 3:
                    taken.rules.append(DrawnRule(left, right, bottom))
