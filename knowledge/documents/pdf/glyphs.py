"""Takes the glyphs of a PDF page in PDFium's order: letters, their positions and typefaces.

The positions are those that a reader of the text sees, see `turn_page`.
"""

import ctypes
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from pypdfium2 import PdfiumError, PdfMatrix, PdfObject, PdfPage, PdfTextPage, raw

from knowledge.documents.pdf.page_objects import (
    Box,
    PlacedText,
    find_address,
    find_bounds,
    find_size,
    shift_page,
)
from knowledge.documents.pdf.page_text import Segment, find_turn, turn_page
from knowledge.documents.pdf.tags import Tag, read_tags

BASELINE = 0.45
"""Maximum distance between the baselines of a line, in font sizes."""
GAP_OF_WORDS = 0.2
HEIGHT = (-0.2, 0.75)
"""From where to where letters reach, in font sizes above the baseline."""
UNREADABLE = "\ufffd"
ROOT = "\u221a"
_GAP_OF_CELLS = 1.2
"""Maximum gap between two words of one segment, in font sizes."""
_GAP_WITHOUT_SPACE = 0.9
"""The same if no space is drawn between them, because table cells are drawn one by one."""
_LEAST_SCRIPT, _HIGHEST_SCRIPT, _RAISED_MIDDLE, _LOWERED_MIDDLE = 0.2, 0.5, 0.48, 0.12
"""Height and middle of the raised and lowered digits of a font, in sizes of its other digits."""
_SIGNS = "+-\u2212\u2013"
_SCRIPT, _DIGIT_MIDDLE = 0.6, 0.33
_TEX_BULLET = 0x88
"""The character that PDFium returns for the bullet in TeX's symbol font, which has no character
names.
"""
_HYPHEN = 2
_SPACE_GLYPH = 3
"""The number of the space in TrueType fonts, if nothing else is stated."""
_LEAST_DRAWN = 0.1
"""Minimum width and height in points of a glyph that is not a space."""
_NO_BREAK_SPACE = 0xA0
_LARGEST_HALF = 0xFFFF
_NON_JOINER = "\u200c"
_LEAST_SHIFT = 0.15
"""Minimum distance between a letter and the same letter after it, in font sizes."""
_SAME_SHAPE = 0.02
"""Maximum difference in points between the edges of two shapes of a letter."""
_DOUBTFUL = f"{UNREADABLE}\u21b5"
"""Letters that may be ligatures; macOS states a return sign as the meaning of that of TeX fonts."""
_NAMED = re.compile(rb"dup[ ]+(\d{1,3})[ ]*/([A-Za-z_]{1,30})[ ]+put")
"""The number and name of a character in the program of a Type 1 font."""
_LIGATURES = "\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06"
_MOST_CHARACTERS = 200_000
_ACCENTS = dict(
    zip(
        "`\xb4^\u02c6~\u02dc\xaf\u02d8\u02d9\xa8\u02da\u02dd\u02c7\xb8\u02db",
        "\u0300\u0301\u0302\u0302\u0303\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327\u0328",
        strict=True,
    )
)
"""The combining character of each accent."""
_FURTHEST_ACCENT, _MOST_ACCENTS = 150, 5_000
"""How many glyphs from its letter PDFium has an accent, and maximum number of those of a page."""
_LOWEST_ACCENT, _HIGHEST_ACCENT = -0.1, 0.5
"""Baseline of an accent above that of its letter, in font sizes; TeX raises those of capitals."""
_WITHOUT_DOTS = str.maketrans("\u0131\u0237", "ij")
_BOLD = ("bold", "black", "heavy", "semibold", "demi")
_CODE = (
    "courier", "mono", "consol", "menlo", "typewriter", "cmtt", "codepro", "firacode", "cascadia",
    "monaco", "iosevka",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Typeface:
    """The appearance of glyphs: size in points, direction in degrees, and the block of the text."""

    size: float
    is_bold: bool
    is_code: bool
    turn: int = 0
    tag: Tag | None = None


@dataclass(slots=True)
class Glyph:
    """A letter or ligature, or a word of a page with right-to-left text.

    A space precedes it in the file (`has_drawn_space`), or PDFium adds one. `drawn` is the address
    of the drawn text that it belongs to. Digits, signs and roots have their `height`, and their
    `middle` above the baseline, in font sizes.
    """

    text: str
    left: float
    right: float
    base: float
    typeface: Typeface
    has_space: bool
    has_drawn_space: bool
    drawn: int | None
    middle: float = 0.0
    height: float = 0.0

    def shrink(self) -> None:
        """Set the size and the baseline to those of a digit with the height of the glyph."""
        self.base += (self.middle - _SCRIPT * _DIGIT_MIDDLE) * self.typeface.size
        self.typeface = replace(self.typeface, size=_SCRIPT * self.typeface.size)

    @property
    def top(self) -> float:
        """The upper end above the baseline, in font sizes."""
        return self.middle + self.height / 2

    @property
    def widest_gap(self) -> float:
        """Maximum distance between a glyph and the word before it, in font sizes."""
        return _GAP_OF_CELLS if self.has_drawn_space else _GAP_WITHOUT_SPACE

    def make_segment(self) -> Segment:
        """Return a segment that consists of the glyph."""
        face = self.typeface
        return Segment(
            self.text, self.left, self.right, self.base, face.size, face.is_bold, face.is_code,
            face.tag,
        )  # fmt: skip


class _Positions:
    """Turns the positions of characters into those that a reader of their text sees."""

    def __init__(self, page: PdfPage, texts: Sequence[PlacedText]) -> None:
        self._size, self._shift = find_size(page), shift_page(page)
        self._matrices: dict[tuple[int, int | None], PdfMatrix] = {}
        self._inner = {
            find_address(drawn.raw): (drawn.get_matrix().get()[4:], matrix)
            for drawn, matrix in texts
            if drawn.container is not None
        }

    def find_matrix(
        self, address: int | None, turn: int, origin: tuple[float, float]
    ) -> tuple[PdfMatrix, bool]:
        """Return the matrix for a character of a drawn text, and whether PDFium misplaces it.

        PDFium has letters that stand for others (ActualText) in their place in a drawing, and not
        on the page.
        """
        own, placed = self._inner.get(address, (None, self._shift))
        is_misplaced = own == origin and placed.on_point(*origin) != self._shift.on_point(*origin)
        key = turn, address if is_misplaced else None
        if key not in self._matrices:
            matrix = placed if is_misplaced else self._shift
            self._matrices[key] = matrix.multiply(turn_page(turn, self._size))
        return self._matrices[key], is_misplaced


def take_glyphs(page: PdfPage, text_page: PdfTextPage, texts: Sequence[PlacedText]) -> list[Glyph]:
    """Return the glyphs of a page with the drawn `texts`; spaces are an attribute of the next one.

    A letter without a meaning in the file is U+FFFD.
    """
    glyphs = _join_accents(list(_read_glyphs(page, text_page, texts)))
    _place_scripts(glyphs)
    glyphs = _restore_repeated(glyphs, [drawn for drawn, _ in texts])
    for before, glyph in pairwise(glyphs):
        if before.text[-1:] == glyph.text == "~" and not glyph.typeface.is_code:
            # Two of them would be the mark of struck-out text.
            glyph.text = f"{_NON_JOINER}~"
    return glyphs


def _read_glyphs(
    page: PdfPage, text_page: PdfTextPage, texts: Sequence[PlacedText]
) -> Iterator[Glyph]:
    positions, tags = _Positions(page, texts), read_tags(page)
    typefaces: dict[int | None, Typeface] = {}
    fonts: dict[int | None, tuple[dict[int, str], dict[str, Box]]] = {}
    codes = _read_codes(text_page)
    unreadable = _list_unreadable(text_page, codes)
    has_space = has_drawn_space = is_misplaced = False
    before: tuple[int, float] | None = None
    for index, code in enumerate(codes):
        if 0xD800 <= code < 0xDC00:
            continue
        is_unreadable = not code or index in unreadable
        if not is_unreadable and (
            (code <= ord(" ") and code != _HYPHEN) or code == _NO_BREAK_SPACE
        ):
            has_space = True
            has_drawn_space |= raw.FPDFText_IsGenerated(text_page, index) == 0
            continue
        address = find_address(raw.FPDFText_GetTextObject(text_page, index))
        if address not in typefaces:
            typefaces[address] = _read_typeface(text_page, index, tags)
        face = typefaces[address]
        origin, was_misplaced = _find_origin(text_page, index), is_misplaced
        matrix, is_misplaced = positions.find_matrix(address, face.turn, origin)
        left, base = matrix.on_point(*origin)
        _, _, right, _ = matrix.on_rect(*text_page.get_charbox(index, loose=True))
        if code > _LARGEST_HALF and before == (code, left):
            # Word states the letters of formulas twice.
            continue
        before = code, left
        shown = UNREADABLE if is_unreadable else _show(code)
        if shown in _DOUBTFUL:
            shown = _find_letters(text_page, index, code, fonts) or shown
        # PDFium adds spaces between the letters of turned text, as if each were a line.
        is_apart = bool(face.turn) or is_misplaced or was_misplaced
        is_spaced = has_drawn_space if is_apart else has_space
        glyph = Glyph(shown, left, right, base, face, is_spaced, has_drawn_space, address)
        if shown.isdecimal() or shown in (*_SIGNS, ROOT):
            _, bottom, _, top = matrix.on_rect(*text_page.get_charbox(index))
            glyph.middle = ((bottom + top) / 2 - base) / face.size
            glyph.height = (top - bottom) / face.size
        yield glyph
        has_space = has_drawn_space = False


def _read_codes(text_page: PdfTextPage) -> list[int]:
    """Return the code points of the characters of a page.

    PDFium has the letters of formulas as two halves (surrogates), both at the place of the letter:
    the second one is returned as the whole letter.
    """
    characters = range(min(text_page.count_chars(), _MOST_CHARACTERS))
    codes: list[int] = [raw.FPDFText_GetUnicode(text_page, index) for index in characters]
    for at, (high, low) in enumerate(pairwise(codes)):
        if 0xD800 <= high < 0xDC00 <= low < 0xE000:
            codes[at + 1] = 0x10000 + ((high - 0xD800) << 10) + low - 0xDC00
    return codes


def _find_origin(text_page: PdfTextPage, index: int) -> tuple[float, float]:
    x, y = ctypes.c_double(), ctypes.c_double()
    raw.FPDFText_GetCharOrigin(text_page, index, x, y)
    return x.value, y.value


def _list_unreadable(text_page: PdfTextPage, codes: Sequence[int]) -> set[int]:
    """Return the indexes of the characters whose meaning the file does not state.

    PDFium returns their codes. These are no letters if some of their font would be control
    characters, or if the file states the meaning of most others of the font.
    """
    stated: Counter[int | None] = Counter()
    unstated: dict[int | None, list[int]] = {}
    numbered: set[int | None] = {None}
    for index, (code, font) in enumerate(zip(codes, _list_fonts(text_page), strict=False)):
        if raw.FPDFText_HasUnicodeMapError(text_page, index) != 1:
            stated[font] += 1
            continue
        numbered.update([font] if code < ord(" ") else ())
        if code != _SPACE_GLYPH or _is_drawn(text_page, index):
            unstated.setdefault(font, []).append(index)
    unreadable: set[int] = set()
    for font, indexes in unstated.items():
        if font in numbered:
            unreadable.update(indexes if font else ())
        elif len(indexes) < stated[font]:
            unreadable.update(at for at in indexes if codes[at] not in (ord(" "), _NO_BREAK_SPACE))
    return unreadable


def _list_fonts(text_page: PdfTextPage) -> Iterator[int | None]:
    """Yield the address of the font of each character."""
    fonts: dict[int | None, int | None] = {}
    for index in range(text_page.count_chars()):
        drawn = raw.FPDFText_GetTextObject(text_page, index)
        if (address := find_address(drawn)) not in fonts:
            fonts[address] = find_address(raw.FPDFTextObj_GetFont(drawn))
        yield fonts[address]


def _is_drawn(text_page: PdfTextPage, index: int) -> bool:
    left, bottom, right, top = text_page.get_charbox(index)
    return bool(min(right - left, top - bottom) > _LEAST_DRAWN)


def _find_letters(
    text_page: PdfTextPage,
    index: int,
    code: int,
    fonts: dict[int | None, tuple[dict[int, str], dict[str, Box]]],
) -> str:
    """Return the letters of a character without a stated meaning, or with a false one.

    They are those that its name in the font states, or the ligature of the font with the same box.
    Returns "" if there is none. `fonts` contains both for the fonts seen before.
    """
    drawn, matrix = text_page.get_textobj(index), raw.FS_MATRIX()
    if drawn is None:
        return ""
    font = drawn.get_font().raw
    address = find_address(font)
    if address not in fonts:
        boxes = {one: box for one in _LIGATURES if (box := _measure(font, one))}
        fonts[address] = _read_names(font), boxes
    names, boxes = fonts[address]
    if code in names:
        return names[code]
    raw.FPDFText_GetMatrix(text_page, index, matrix)
    size, (x, y) = drawn.get_font_size(), _find_origin(text_page, index)
    turned = PdfMatrix(*(size * part for part in (matrix.a, matrix.b, matrix.c, matrix.d)))
    left, bottom, right, top = text_page.get_charbox(index)
    own = left - x, bottom - y, right - x, top - y
    for ligature, box in boxes.items():
        placed = turned.on_rect(*box)
        if all(abs(one - other) < _SAME_SHAPE for one, other in zip(own, placed, strict=True)):
            return _show(ord(ligature))
    return ""


def _read_names(font: Any) -> dict[int, str]:
    """Return the letters that the program of a Type 1 font names, by their numbers; not by 0, which
    may be any character.

    A ligature has the names of its letters, such as `f_i` (Adobe Glyph List specification).
    """
    size = ctypes.c_size_t()
    raw.FPDFFont_GetFontData(font, None, 0, size)
    program = (ctypes.c_uint8 * size.value)()
    raw.FPDFFont_GetFontData(font, program, size.value, size)
    named: dict[int, str] = {}
    for number, name in _NAMED.findall(bytes(program)):
        parts = name.decode().split("_")
        if int(number) and all(len(part) == 1 for part in parts):
            named[int(number)] = "".join(parts)
    return named


def _measure(font: Any, letter: str) -> Box | None:
    """Return the box of a letter of a font, in font sizes from its origin."""
    path = raw.FPDFFont_GetGlyphPath(font, ord(letter), 1.0)
    count = raw.FPDFGlyphPath_CountGlyphSegments(path)
    segments = (raw.FPDFGlyphPath_GetGlyphPathSegment(path, at) for at in range(count))
    return find_bounds(segments, PdfMatrix())


def _show(code: int) -> str:
    if code in (_HYPHEN, _TEX_BULLET):
        return "-" if code == _HYPHEN else "\u2022"
    sign = chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else UNREADABLE
    is_form = 0xFB00 <= code <= 0xFDFF or 0xFE10 <= code <= 0xFE48 or 0xFE70 <= code <= 0xFEFC
    return unicodedata.normalize("NFKC", sign).strip() if is_form else sign


def _read_typeface(text_page: PdfTextPage, index: int, tags: Mapping[int, Tag]) -> Typeface:
    """Return the typeface of a drawn text, one glyph of which has the index."""
    drawn = text_page.get_textobj(index)
    if drawn is None:
        return Typeface(10.0, False, False)
    size, matrix = drawn.get_font_size(), raw.FS_MATRIX()
    raw.FPDFText_GetMatrix(text_page, index, matrix)
    try:
        name = drawn.get_font().get_base_name().lower()
    except PdfiumError:
        name = ""
    return Typeface(
        size=round(max(min(abs(size * math.hypot(matrix.c, matrix.d)), 500.0), 1.0) * 2) / 2,
        is_bold=any(word in name for word in _BOLD),
        is_code=any(word in name for word in _CODE),
        # A negative size turns the letters, too.
        turn=find_turn(matrix.a * size, matrix.b * size),
        tag=tags.get(raw.FPDFPageObj_GetMarkedContentID(drawn)) if tags else None,
    )


def _join_accents(glyphs: list[Glyph]) -> list[Glyph]:
    """Return glyphs; an accent that is drawn over or under a letter, as in TeX, is part of it.

    PDFium has the accent of a capital, which is higher, behind the line.
    """
    accents = [at for at, glyph in enumerate(glyphs) if glyph.text in _ACCENTS]
    joined: set[int] = set()
    for at in accents[:_MOST_ACCENTS]:
        accent = glyphs[at]
        beside = range(max(at - _FURTHEST_ACCENT, 0), min(at + _FURTHEST_ACCENT, len(glyphs)))
        own = ((one, _add_accent(accent, glyphs[one])) for one in beside)
        letter = next(((one, text) for one, text in own if text), None)
        if letter is None:
            continue
        glyphs[letter[0]].text = letter[1]
        joined.add(at)
        for following in glyphs[at + 1 : at + 2]:
            if letter[0] == at + 1:
                following.has_space = accent.has_space
                following.has_drawn_space = accent.has_drawn_space
            elif not accent.has_space:
                # PDFium adds a space behind an accent.
                following.has_space = following.has_drawn_space
    return [glyph for at, glyph in enumerate(glyphs) if at not in joined]


def _add_accent(accent: Glyph, letter: Glyph) -> str:
    """Return a letter with the accent that is drawn over or under it; "" if it is another one."""
    size = letter.typeface.size
    if (
        not letter.left <= (accent.left + accent.right) / 2 <= letter.right
        or not _LOWEST_ACCENT * size <= accent.base - letter.base <= _HIGHEST_ACCENT * size
        or accent.typeface.turn != letter.typeface.turn
    ):
        return ""
    text = letter.text.translate(_WITHOUT_DOTS) + _ACCENTS[accent.text]
    composed = unicodedata.normalize("NFC", text)
    return composed if len(composed) == 1 else ""


def _place_scripts(glyphs: Sequence[Glyph]) -> None:
    """Shrink the digits that a font has as raised or lowered, and the signs before raised ones."""
    for before, glyph in zip((None, *glyphs), glyphs, strict=False):
        if (
            glyph.text.isdecimal()
            and _LEAST_SCRIPT < glyph.height < _HIGHEST_SCRIPT
            and not _LOWERED_MIDDLE < glyph.middle < _RAISED_MIDDLE
        ):
            is_raised = before is not None and min(before.middle, glyph.middle) > _RAISED_MIDDLE
            if before is not None and is_raised and before.text in _SIGNS:
                before.shrink()
            glyph.shrink()


def _restore_repeated(glyphs: Sequence[Glyph], texts: Sequence[PdfObject]) -> list[Glyph]:
    """Return glyphs, and those that PDFium omits because the same letter is drawn just before them.

    PDFium takes them for a shadow that makes the letter bold. A shadow is hardly moved; the second
    letter of "off" is.
    """
    counts = Counter(glyph.drawn for glyph in glyphs)
    addresses = [find_address(drawn.raw) for drawn in texts]
    omitted = {
        addresses[at]: _find_shift(before, drawn)
        for at, (before, drawn) in enumerate(pairwise(texts))
        if addresses[at + 1] not in counts and counts[addresses[at]] == 1
    }
    restored: list[Glyph] = []
    is_restored = False
    for glyph in glyphs:
        if is_restored:
            # PDFium adds a space in the place of the omitted letter.
            glyph.has_space = glyph.has_drawn_space
        restored.append(glyph)
        shift, size = omitted.get(glyph.drawn, 0.0), glyph.typeface.size
        is_restored = glyph.typeface.turn == 0 and _LEAST_SHIFT * size < shift < size
        if is_restored:
            left, right = glyph.left + shift, glyph.right + shift
            copy = replace(glyph, left=left, right=right, has_space=False, has_drawn_space=False)
            restored.append(copy)
    return restored


def _find_shift(before: PdfObject, drawn: PdfObject) -> float:
    """Return how far a text is to the right of another one of the same shape; 0 without one."""
    one, other = before.get_bounds(), drawn.get_bounds()
    left, bottom, right, top = (end - start for start, end in zip(one, other, strict=True))
    is_same = max(abs(bottom), abs(top), abs(right - left)) < _SAME_SHAPE
    return left if is_same and other[0] < other[2] and other[1] < other[3] else 0.0
