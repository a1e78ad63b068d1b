"""Extracts the text of a PDF page with positions: segments, typefaces, and drawn lines.

Text that runs up, down or upside down is read as if the page were turned, so positions are those
that a reader of this text sees.
"""

import ctypes
import math
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from knowledge.documents.notation import Script, Span, join_spans, strike
from knowledge.documents.pdf.page_objects import (
    Box,
    Fill,
    Size,
    VisiblePlaces,
    find_address,
    find_size,
    shift_page,
    take_objects,
)
from knowledge.documents.pdf.reading_direction import (
    Piece,
    begins_right,
    is_right_to_left,
    put_in_order,
)
from knowledge.documents.pdf.tags import Tag, read_tags

if TYPE_CHECKING:
    from pypdfium2 import PdfMatrix, PdfObject, PdfPage, PdfTextPage

_GAP_OF_CELLS = 1.2
"""Maximum gap between two words of one segment, in font sizes."""
_GAP_WITHOUT_SPACE = 0.9
"""The same if no space is drawn between them, because table cells are drawn one by one."""
_GAP_OF_PARTS = 0.45
"""From this width on, a gap may separate two cells if the rows around it agree; a space is
narrower."""
_GAP_OF_CODE_PARTS = 0.75
_GAP_OF_WORDS = 0.2
_LEAST_SPACE = 0.15
"""Minimum width of a space that is drawn in a line with right-to-left text."""
_BASELINE = 0.45
_SMALLEST_SCRIPT, _LARGEST_SCRIPT = 0.45, 0.85
"""Size of superscript and subscript text, relative to the text before it."""
_LARGEST_RAISED, _CLEAR_RISE = 0.95, 0.25
"""The same if its baseline is clearly another one: browsers round sizes."""
_LEAST_RISE, _HIGHEST_RISE = 0.08, 0.6
_LONGEST_MARK = 5
"""Maximum number of letters of superscript text in front of a word."""
_LEAST_SCRIPT, _HIGHEST_SCRIPT, _RAISED_MIDDLE, _LOWERED_MIDDLE = 0.2, 0.5, 0.48, 0.12
"""Height and middle of the raised and lowered digits of a font, in sizes of its other digits."""
_SIGNS = "+-\u2212\u2013"
_SCRIPT, _DIGIT_MIDDLE = 0.6, 0.33
_MIDDLE = (0.15, 0.45)
"""Vertical range of a strikethrough line, in font sizes above the baseline."""
_ENDS = (0.05, 0.5)
"""How far inside and outside of letters, in font sizes, the line that strikes them out may end."""
_LEAST_STRUCK, _LEAST_STRUCK_ROW = 0.2, 0.08
"""Minimum share of a line that is over letters if it ends far outside of them, unlike in charts;
and of a line through a label and other cells.
"""
_LEAST_LETTERS = 5
_MOST_STRIKES = 100
"""Maximum number of lines through the letters of a text; more are a drawing."""
_IN_NEXT = 0.1
"""How far, in font sizes, this line may reach into the next letter."""
_LEAST_SPACED = 5
_WIDER = 1.4
"""How many times wider than usual the space between words is if the letters are spaced out."""
_TEX_BULLET = 0x88
"""The character that PDFium returns for the bullet in TeX's symbol font, which has no character
names.
"""
_HYPHEN = 2
_SPACE_GLYPH = 3
"""The number of the space in TrueType fonts, if nothing else is stated."""
_UNREADABLE = "\ufffd"
_TILTED = 15
"""Minimum angle in degrees between text and the nearest side of the page if it is drawn askew."""
_HEIGHT = (-0.2, 0.75)
"""From where to where letters reach, in font sizes above the baseline."""
_LEAST_SHIFT = 0.15
"""Minimum distance between a letter and the same letter after it, in font sizes."""
_SAME_SHAPE = 0.02
"""Maximum difference in points between the edges of two shapes of a letter."""
_LONGEST_NAME = 200
_MOST_CHARACTERS = 200_000
_MOST_PARTS = 60
_LEAST_GAP_OF_CELLS = 0.5
_ACCENTS = dict(
    zip(
        "`\xb4^\u02c6~\u02dc\xaf\u02d8\u02d9\xa8\u02da\u02dd\u02c7\xb8\u02db",
        "\u0300\u0301\u0302\u0302\u0303\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327\u0328",
        strict=True,
    )
)
"""The combining character of each accent."""
_LAM, _ALEFS = "\u0644", "\u0622\u0623\u0625\u0627"
_CHINESE = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_DOWNWARDS = 270
_WIDEST_CELL = 1.3
"""Maximum width of the letters at one place of vertical text, such as `10`, in font sizes."""
_PITCH_OF_CELLS = 0.4, 2.3
"""How far below each other the letters of vertical text are, in font sizes, with spaces."""
_FURTHEST_ASIDE = 0.5
_CELL, _CELL_BASE = 0.88, 0.1
"""The height of the upper edge of a Chinese letter above the baseline, in font sizes."""
_BOLD = ("bold", "black", "heavy", "semibold", "demi")
_CODE = (
    "courier", "mono", "consol", "menlo", "typewriter", "cmtt", "codepro", "firacode", "cascadia",
    "monaco", "iosevka",
)  # fmt: skip
_SHORTEST = 3.0


@dataclass(slots=True)
class Segment:
    """Words on one baseline without a wide gap; positions are points from the lower left corner.

    `parts` are the words on both sides of its wider gaps, if it has any. `words` are the left and
    right ends of its words.
    """

    text: str
    left: float
    right: float
    base: float
    size: float
    is_bold: bool = False
    is_code: bool = False
    tag: Tag | None = None
    parts: "list[Segment]" = field(default_factory=list)
    words: list[tuple[float, float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DrawnRule:
    """A horizontal line that is drawn on a page."""

    left: float
    right: float
    base: float


@dataclass(frozen=True, slots=True)
class Stroke:
    """A straight line, in points from the lower left corner; `at` is its position across its
    direction.

    A horizontal line goes from left to right, a vertical one from bottom to top.
    """

    is_vertical: bool
    at: float
    start: float
    end: float


@dataclass(slots=True)
class PageText:
    """The content of a page in one direction; `has_pictures`: without text, it may be a scan.

    The file does not state the meaning of its unreadable letters, which are U+FFFD in words. Text
    that `is_tilted` is drawn askew, such as a watermark or the labels of a chart.
    """

    width: float
    height: float
    segments: list[Segment] = field(default_factory=list)
    rules: list[DrawnRule] = field(default_factory=list)
    strokes: list[Stroke] = field(default_factory=list)
    has_pictures: bool = False
    hidden_words: int = 0
    unreadable_letters: int = 0
    is_tilted: bool = False


@dataclass(frozen=True, slots=True)
class _Typeface:
    size: float
    is_bold: bool
    is_code: bool
    turn: int = 0
    tag: Tag | None = None


@dataclass(frozen=True, slots=True)
class _Glyph:
    text: str
    left: float
    right: float
    base: float
    typeface: _Typeface
    has_space: bool
    has_drawn_space: bool
    drawn: int | None
    """The address of the drawn text that the glyph belongs to."""
    middle: float = 0.0
    height: float = 0.0
    """Of digits and signs, with the middle above the baseline, in font sizes."""

    def shrink(self) -> "_Glyph":
        """Return a glyph whose size and baseline are those of a digit with its height."""
        face = replace(self.typeface, size=_SCRIPT * self.typeface.size)
        base = self.base + (self.middle - _SCRIPT * _DIGIT_MIDDLE) * self.typeface.size
        return replace(self, typeface=face, base=base)

    @property
    def widest_gap(self) -> float:
        """Maximum distance between a glyph and the word before it, in font sizes."""
        return _GAP_OF_CELLS if self.has_drawn_space else _GAP_WITHOUT_SPACE

    def make_segment(self) -> Segment:
        face = self.typeface
        return Segment(
            self.text, self.left, self.right, self.base, face.size, face.is_bold, face.is_code,
            face.tag,
        )  # fmt: skip


@dataclass(slots=True)
class _Word:
    """A word or sign on a page with right-to-left text; `end` is where its last glyph ends.

    `number` counts the words in PDFium's order.
    """

    segment: Segment
    turn: int
    is_reversed: bool
    number: int
    glyphs: list[_Glyph]
    end: int = 1


@dataclass(slots=True)
class _Words:
    """Words beside each other, and their edges."""

    words: list[_Word]
    left: float
    right: float


class _Positions:
    """Finds the positions of characters on a page as a reader of their text sees them."""

    def __init__(self, page: "PdfPage", text_page: "PdfTextPage") -> None:
        from pypdfium2 import raw

        self._raw = raw
        self._page = page
        self._text_page = text_page
        self._matrices: dict[int, PdfMatrix] = {}
        self._point = ctypes.c_double(), ctypes.c_double()
        self._loose = raw.FS_RECTF()
        self._edges = tuple(ctypes.c_double() for _ in range(4))

    def find(self, index: int, turn: int) -> tuple[float, float, float]:
        """Return the left end, the baseline and the right end of a character.

        For turned characters, PDFium provides only the tight box.
        """
        matrix = self._find_matrix(turn)
        self._raw.FPDFText_GetCharOrigin(self._text_page, index, *self._point)
        x, y = self._point
        if turn:
            left, base = matrix.on_point(x.value, y.value)
            return left, base, self.find_box(index, turn)[2]
        self._raw.FPDFText_GetLooseCharBox(self._text_page, index, self._loose)
        return x.value + matrix.e, y.value + matrix.f, self._loose.right + matrix.e

    def find_box(self, index: int, turn: int) -> Box:
        """Return the tight box of a character."""
        self._raw.FPDFText_GetCharBox(self._text_page, index, *self._edges)
        left, right, bottom, top = (edge.value for edge in self._edges)
        box: Box = self._find_matrix(turn).on_rect(left, bottom, right, top)
        return box

    def _find_matrix(self, turn: int) -> "PdfMatrix":
        if turn not in self._matrices:
            turned = turn_page(turn, find_size(self._page))
            self._matrices[turn] = shift_page(self._page).multiply(turned)
        return self._matrices[turn]


class _CellEdges:
    """The lines of a page that separate adjacent cells or strike text out."""

    def __init__(self, lines: list[Box], size: Size) -> None:
        self._lines = lines
        self._size = size
        self._sorted: dict[tuple[int, bool], list[Stroke]] = {}

    def part(self, current: Segment, left: float, turn: int) -> bool:
        """Return whether a line separates a segment from a character that begins at `left`."""
        if left - current.right < _LEAST_GAP_OF_CELLS:
            return False
        upright = self._list_strokes(turn, is_vertical=True)
        middle = current.base + current.size * 0.3
        first = bisect_left(upright, current.right - 1, key=lambda one: one.at)
        for stroke in upright[first:]:
            if stroke.at > left + 1:
                return False
            if stroke.start <= middle <= stroke.end:
                return True
        return False

    def list_strikes(self, segment: Segment, glyphs: Sequence[_Glyph], turn: int) -> list[Stroke]:
        """Return the lines that strike out glyphs of a segment."""
        level = self._list_level(segment, turn)
        return [stroke for stroke in level if _strikes_out(stroke, glyphs)]

    def strike_lines(
        self, segments: Sequence[Segment], turn: int, fills: Sequence[Fill]
    ) -> set[Stroke]:
        """Mark segments that are struck out by lines that begin and end far outside of them.

        Such a line is at the middle of all segments that it meets, which are not labels of a chart,
        and no box hides it, such as that of a title. The lines are returned.
        """
        found = set()
        long = {
            stroke
            for segment in segments
            for stroke in self._list_level(segment, turn)
            if stroke.start <= segment.left and segment.right <= stroke.end
        }
        matrix = turn_page(turn, self._size)
        boxes = [(matrix.on_rect(*fill.box), fill.lines) for fill in fills if long]
        drawn = {
            stroke: number
            for number, line in enumerate(self._lines if long else ())
            for stroke in turn_strokes([line], turn, self._size)
        }
        heights = {round(stroke.at) for stroke in long}
        level = self._list_strokes(turn, is_vertical=False) if long else []
        for parts in _join_level([one for one in level if round(one.at) in heights]):
            line = replace(parts[0], end=max(part.end for part in parts))
            met = [one for one in segments if _meets(line, one)]
            last = max(drawn[part] for part in parts)
            is_hidden = any(
                left <= one.left < right and bottom <= line.at <= top
                for (left, bottom, right, top), lines in boxes
                if last < lines
                for one in met
            )
            if not is_hidden and _strikes_line(line, met):
                found.update(parts)
                for segment in (*met, *chain.from_iterable(one.parts for one in met)):
                    segment.text = strike(segment.text.replace("~~", ""))
        return found

    def _list_level(self, segment: Segment, turn: int) -> list[Stroke]:
        """Return the horizontal lines at the middle of a segment; none of a drawing."""
        level = self._list_strokes(turn, is_vertical=False)
        lowest, highest = (segment.base + share * segment.size for share in _MIDDLE)
        first = bisect_left(level, lowest, key=lambda one: one.at)
        last = bisect_right(level, highest, key=lambda one: one.at)
        return level[first:last] if last - first <= _MOST_STRIKES else []

    def _list_strokes(self, turn: int, *, is_vertical: bool) -> list[Stroke]:
        key = (turn, is_vertical)
        if key not in self._sorted:
            strokes = turn_strokes(self._lines, turn, self._size)
            own = (stroke for stroke in strokes if stroke.is_vertical is is_vertical)
            self._sorted[key] = sorted(own, key=lambda one: one.at)
        return self._sorted[key]


def take_text(page: "PdfPage", text_page: "PdfTextPage") -> list[PageText]:
    """Return the segments and rules of a page in drawing order.

    There is one `PageText` per text direction, the one with the most letters first.
    """
    size = find_size(page)
    objects = take_objects(page)
    by_turn: dict[int, list[Segment]] = {}
    texts = [drawn for drawn, _ in objects.texts]
    taken_glyphs = _join_accents(_take_glyphs(page, text_page))
    glyphs = _restore_repeated(_place_scripts(taken_glyphs), texts)
    hidden: list[_Glyph] = []
    unreadable: list[_Glyph] = []
    text = text_page.get_text_range()
    if _CHINESE.search(text):
        glyphs = _turn_vertical(list(glyphs), size)
    shown = _keep_visible(glyphs, VisiblePlaces(page, objects), size, hidden, unreadable)
    edges_of_cells = _CellEdges(objects.lines + objects.strikes, size)
    segments = (
        _join_words(shown, edges_of_cells, is_page_reversed=begins_right(text))
        if is_right_to_left(text)
        else _join_glyphs(shown, edges_of_cells)
    )
    for turn, segment in segments:
        by_turn.setdefault(turn, []).append(segment)
    struck = {
        turn: edges_of_cells.strike_lines(segments, turn, objects.fills)
        for turn, segments in by_turn.items()
    }
    turns = sorted(by_turn, key=lambda turn: -sum(len(span.text) for span in by_turn[turn]))
    taken: list[PageText] = []
    for turn in turns or [0]:
        _, _, width, height = turn_page(turn, size).on_rect(0, 0, *size)
        taken.append(PageText(width, height, by_turn.get(turn, []), is_tilted=turn % 90 > 0))
    first = turns[0] if turns else 0
    taken[0].hidden_words = len(hidden)
    taken[0].unreadable_letters = len(unreadable)
    taken[0].has_pictures = bool(objects.pictures)
    taken[0].rules = _list_rules(objects.boxes, first, size)
    strokes = turn_strokes(objects.lines, first, size)
    taken[0].strokes = [stroke for stroke in strokes if stroke not in struck.get(first, ())]
    return taken


def turn_strokes(lines: list[Box], turn: int, size: Size) -> list[Stroke]:
    """Return lines as seen by a reader of text in a direction; short ones are left out."""
    strokes: list[Stroke] = []
    matrix = turn_page(turn, size)
    for line in lines:
        left, bottom, right, top = matrix.on_rect(*line)
        if right - left >= max(_SHORTEST, top - bottom):
            strokes.append(Stroke(False, bottom, left, right))
        elif top - bottom >= _SHORTEST:
            strokes.append(Stroke(True, left, bottom, top))
    return strokes


def find_turn(along: float, rise: float) -> int:
    """Return the direction (`along`, `rise`) of text in degrees counterclockwise.

    Text that is hardly tilted, such as that of a scan, counts as level or upright.
    """
    degrees = math.degrees(math.atan2(rise, along))
    upright = 90 * round(degrees / 90)
    return (upright if abs(degrees - upright) < _TILTED else 5 * round(degrees / 5)) % 360


def turn_page(turn: int, size: Size) -> "PdfMatrix":
    """Return the matrix that turns positions on a page of `size` points for a reader of the text.

    The text runs at `turn` degrees, see `find_turn`.
    """
    from pypdfium2 import PdfMatrix

    turned = PdfMatrix().rotate(turn)
    left, bottom, *_ = turned.on_rect(0, 0, *size)
    return turned.translate(-left, -bottom)


def cut_segment(segment: Segment, gutters: Sequence[tuple[float, float]]) -> list[Segment]:
    """Split a segment at each gutter in a gap between its parts, and return the pieces."""
    pieces: list[Segment] = []
    for part in segment.parts or [segment]:
        before = pieces[-1] if pieces else None
        if before is None or any(
            before.right - 1 < right and left < part.left + 1 for left, right in gutters
        ):
            pieces.append(replace(part, parts=[]))
        else:
            before.text = f"{before.text} {part.text}"
            before.right = max(before.right, part.right)
    return pieces if len(pieces) > 1 else [segment]


def _take_glyphs(page: "PdfPage", text_page: "PdfTextPage") -> Iterator[_Glyph]:
    """Yield the characters of a page in PDFium's order; spaces are an attribute of the next one."""
    from pypdfium2 import raw

    positions = _Positions(page, text_page)
    tags = read_tags(page)
    typefaces: dict[int | None, _Typeface] = {}
    unreadable = _find_unreadable_fonts(text_page)
    has_space = has_drawn_space = False
    high = 0
    before: tuple[int, float] | None = None
    for index in range(min(text_page.count_chars(), _MOST_CHARACTERS)):
        code = raw.FPDFText_GetUnicode(text_page, index)
        if 0xD800 <= code < 0xDC00:
            # PDFium has the letters of formulas as two halves, both at the place of the letter.
            high = code
            continue
        is_pair = high and 0xDC00 <= code < 0xE000
        if is_pair:
            code = 0x10000 + ((high - 0xD800) << 10) + code - 0xDC00
        high = 0
        is_unreadable = not code or (
            bool(unreadable) and _find_font(text_page, index) in unreadable
        )
        if not is_unreadable and ((code <= 32 and code != _HYPHEN) or code == 0xA0):
            has_space = True
            has_drawn_space |= raw.FPDFText_IsGenerated(text_page, index) == 0
            continue
        drawn = raw.FPDFText_GetTextObject(text_page, index)
        address = find_address(drawn)
        if address not in typefaces:
            typefaces[address] = _read_typeface(raw, text_page, index, drawn, tags)
        typeface = typefaces[address]
        left, base, right = positions.find(index, typeface.turn)
        if is_pair and before == (code, left):
            # Word states the letters of formulas twice.
            continue
        before = code, left
        sign = "-" if code == _HYPHEN else _show(code)
        shown = _UNREADABLE if is_unreadable else sign
        glyph = _Glyph(shown, left, right, base, typeface, has_space, has_drawn_space, address)
        if shown.isdecimal() or shown in _SIGNS:
            _, bottom, _, top = positions.find_box(index, typeface.turn)
            middle = ((bottom + top) / 2 - base) / typeface.size
            glyph = replace(glyph, middle=middle, height=(top - bottom) / typeface.size)
        yield glyph
        has_space = has_drawn_space = False


def _find_unreadable_fonts(text_page: "PdfTextPage") -> set[int | None]:
    """Return the fonts whose codes are no letters: some of them would be control characters."""
    from pypdfium2 import raw

    fonts = {
        _find_font(text_page, index)
        for index in range(min(text_page.count_chars(), _MOST_CHARACTERS))
        if raw.FPDFText_GetUnicode(text_page, index) < 32
    }
    return fonts - {None}


def _find_font(text_page: "PdfTextPage", index: int) -> int | None:
    """Return the address of the font that does not state the meaning of a character, or None."""
    from pypdfium2 import raw

    is_stated = raw.FPDFText_HasUnicodeMapError(text_page, index) != 1
    if is_stated or raw.FPDFText_GetUnicode(text_page, index) == _SPACE_GLYPH:
        return None
    return find_address(raw.FPDFTextObj_GetFont(raw.FPDFText_GetTextObject(text_page, index)))


def _join_accents(glyphs: Iterator[_Glyph]) -> Iterator[_Glyph]:
    """Yield glyphs; an accent that is drawn over or under a letter, as in TeX, is part of it."""
    held: _Glyph | None = None
    for glyph in glyphs:
        joined = held and (_add_accent(held, glyph) or _add_accent(glyph, held))
        if held is not None and joined:
            spaces = held.has_space, held.has_drawn_space
            held = replace(joined, has_space=spaces[0], has_drawn_space=spaces[1])
            continue
        if held is not None:
            yield held
        held = glyph
    if held is not None:
        yield held


def _add_accent(accent: _Glyph, letter: _Glyph) -> _Glyph | None:
    mark = _ACCENTS.get(accent.text)
    if mark is None or not letter.left <= (accent.left + accent.right) / 2 <= letter.right:
        return None
    text = unicodedata.normalize("NFC", letter.text.replace("\u0131", "i") + mark)
    is_letter = len(text) == 1 and accent.typeface.turn == letter.typeface.turn
    return replace(letter, text=text) if is_letter else None


def _place_scripts(glyphs: Iterator[_Glyph]) -> Iterator[_Glyph]:
    """Yield glyphs; digits that a font has as raised or lowered, and their signs, are smaller."""
    sign: _Glyph | None = None
    for glyph in glyphs:
        is_script = (
            glyph.text.isdecimal()
            and _LEAST_SCRIPT < glyph.height < _HIGHEST_SCRIPT
            and not _LOWERED_MIDDLE < glyph.middle < _RAISED_MIDDLE
        )
        if sign is not None:
            is_part = is_script and min(sign.middle, glyph.middle) > _RAISED_MIDDLE
            yield sign.shrink() if is_part else sign
        sign = glyph if glyph.text in _SIGNS else None
        if sign is None:
            yield glyph.shrink() if is_script else glyph
    if sign is not None:
        yield sign


def _turn_vertical(glyphs: Sequence[_Glyph], size: Size) -> Iterator[_Glyph]:
    """Yield glyphs; those of Chinese or Japanese text in columns run down the page, if most do.

    PDFium has them in their order, but as upright ones. One or more upright glyphs in the place of
    a letter, such as the digits of a day, are below the one before them.
    """
    cells: list[list[_Glyph]] = []
    for glyph in glyphs:
        last = cells[-1][-1] if cells else None
        if last is not None and glyph.base == last.base and -1 < glyph.left - last.right < 1:
            cells[-1].append(glyph)
        else:
            cells.append([glyph])
    links = [_is_below(one, other) for one, other in pairwise(cells)]
    linked = [above or below for above, below in pairwise((False, *links, False))]
    chinese = [any(map(_CHINESE.match, (glyph.text for glyph in cell))) for cell in cells]
    of_columns = sum(map(all, zip(linked, chinese, strict=True)))
    is_vertical = 2 * of_columns > sum(bool(_CHINESE.match(glyph.text)) for glyph in glyphs)
    matrix = turn_page(_DOWNWARDS, size)
    for cell, is_linked, is_chinese in zip(cells, linked, chinese, strict=True):
        face = cell[0].typeface
        width = cell[-1].right - cell[0].left
        if (
            not is_vertical
            or face.turn
            or not (is_linked or is_chinese)
            or (width > _WIDEST_CELL * face.size)
        ):
            yield from cell
            continue
        middle = (cell[0].left + cell[-1].right) / 2
        left, base = matrix.on_point(
            middle - (0.5 - _CELL_BASE) * face.size, cell[0].base + _CELL * face.size
        )
        for glyph in cell:
            yield replace(
                glyph,
                left=left,
                right=left + face.size,
                base=base,
                typeface=replace(face, turn=_DOWNWARDS),
                has_space=False,
                has_drawn_space=True,
            )


def _is_below(cell: Sequence[_Glyph], other: Sequence[_Glyph]) -> bool:
    """Return whether upright glyphs are below others as letters of vertical text are."""
    size = other[0].typeface.size
    if any(
        one[0].typeface.turn or one[-1].right - one[0].left > _WIDEST_CELL * size
        for one in (cell, other)
    ):
        return False
    lowest, highest = (share * size for share in _PITCH_OF_CELLS)
    aside = cell[0].left + cell[-1].right - other[0].left - other[-1].right
    return (
        lowest < cell[0].base - other[0].base < highest and abs(aside) / 2 < _FURTHEST_ASIDE * size
    )


def _keep_visible(
    glyphs: Iterator[_Glyph],
    places: VisiblePlaces,
    size: Size,
    hidden: list[_Glyph],
    unreadable: list[_Glyph],
) -> Iterator[_Glyph]:
    """Yield the glyphs of visible words, and add the first glyphs of the others to `hidden`.

    Words without a readable letter are left out; all unreadable letters are added to `unreadable`.
    """
    word: list[_Glyph] = []
    for glyph in chain(glyphs, [None]):
        if word and (glyph is None or glyph.has_space or glyph.base != word[0].base):
            if _is_visible(word, places, size):
                own = [one for one in word if one.text == _UNREADABLE]
                unreadable += own
                yield from word if len(own) < len(word) else ()
            else:
                hidden.append(word[0])
            word = []
        if glyph is not None:
            word.append(glyph)


def _is_visible(word: Sequence[_Glyph], places: VisiblePlaces, size: Size) -> bool:
    first, face = word[0], word[0].typeface
    if face.turn % 90:
        return True
    lowest, highest = (first.base + share * face.size for share in _HEIGHT)
    left, right = min(glyph.left for glyph in word), max(glyph.right for glyph in word)
    box = left, lowest, right, highest
    if face.turn:
        turned = turn_page(face.turn, size).on_rect(0, 0, *size)
        box = turn_page(-face.turn, turned[2:]).on_rect(*box)
    return places.show(box, first.drawn)


def _restore_repeated(glyphs: Iterator[_Glyph], texts: "Sequence[PdfObject]") -> Iterator[_Glyph]:
    """Yield glyphs, and those that PDFium omits because the same letter is drawn just before them.

    PDFium takes them for a shadow that makes the letter bold. A shadow is hardly moved; the second
    letter of "off" is.
    """
    taken = list(glyphs)
    counts = Counter(glyph.drawn for glyph in taken)
    omitted = {
        find_address(before.raw): _find_shift(before, drawn)
        for before, drawn in pairwise(texts)
        if find_address(drawn.raw) not in counts and counts[find_address(before.raw)] == 1
    }
    is_restored = False
    for glyph in taken:
        # PDFium adds a space in the place of the omitted letter.
        yield replace(glyph, has_space=glyph.has_drawn_space) if is_restored else glyph
        shift = omitted.get(glyph.drawn, 0.0)
        size, turn = glyph.typeface.size, glyph.typeface.turn
        is_restored = turn == 0 and _LEAST_SHIFT * size < shift < size
        if is_restored:
            yield replace(
                glyph, left=glyph.left + shift, right=glyph.right + shift,
                has_space=False, has_drawn_space=False,
            )  # fmt: skip


def _find_shift(before: "PdfObject", drawn: "PdfObject") -> float:
    """Return how far a text is to the right of another one of the same shape; 0 without one."""
    one, other = before.get_bounds(), drawn.get_bounds()
    left, bottom, right, top = (end - start for start, end in zip(one, other, strict=True))
    is_same = max(abs(bottom), abs(top), abs(right - left)) < _SAME_SHAPE
    return left if is_same and other[0] < other[2] and other[1] < other[3] else 0.0


def _join_glyphs(
    glyphs: Iterator[_Glyph], edges_of_cells: "_CellEdges"
) -> Iterator[tuple[int, Segment]]:
    current: Segment | None = None
    turn = 0
    held: list[_Glyph] = []
    for glyph in glyphs:
        if (
            current is not None
            and glyph.typeface.turn == turn
            and glyph.typeface.tag is current.tag
            and _continues(current, held[-1], glyph)
            and not edges_of_cells.part(current, glyph.left, turn)
        ):
            held.append(glyph)
            _extend(current, glyph)
            continue
        if current is not None:
            yield turn, _finish(current, held, edges_of_cells.list_strikes(current, held, turn))
        turn, current, held = glyph.typeface.turn, glyph.make_segment(), [glyph]
    if current is not None:
        yield turn, _finish(current, held, edges_of_cells.list_strikes(current, held, turn))


def _finish(segment: Segment, glyphs: Sequence[_Glyph], strikes: Sequence[Stroke]) -> Segment:
    """Set the text and the parts of a segment."""
    glyphs = _put_in_order(glyphs)
    parts: list[list[_Glyph]] = []
    right = segment.left
    for glyph in glyphs:
        is_number = bool(parts) and parts[-1][-1].text.isdecimal()
        is_spaced = segment.is_code and not (is_number and glyph.text.isdecimal())
        widest = (_GAP_OF_CODE_PARTS if is_spaced else _GAP_OF_PARTS) * segment.size
        if not parts or glyph.left - right > widest:
            parts.append([])
        parts[-1].append(glyph)
        right = max(right, glyph.right)
    _write_text(segment, glyphs, strikes)
    if 1 < len(parts) <= _MOST_PARTS:
        for own in parts:
            part = own[0].make_segment()
            for glyph in own[1:]:
                _extend(part, glyph)
            segment.parts.append(_write_text(part, own, strikes))
    return segment


def _put_in_order(glyphs: Sequence[_Glyph]) -> Sequence[_Glyph]:
    """Return glyphs from left to right if some are drawn later, in a gap between others."""
    ordered = sorted(glyphs, key=lambda one: one.left)
    if ordered == glyphs or any(
        one.left < other.left < (one.left + one.right) / 2 for one, other in pairwise(ordered)
    ):
        return glyphs
    # PDFium adds a space where a glyph is not behind the one before it.
    is_behind = {id(other): one for one, other in pairwise(glyphs)}
    return [ordered[0], *(
        other if is_behind.get(id(other)) is one
        else replace(other, has_space=other.has_drawn_space)
        for one, other in pairwise(ordered)
    )]  # fmt: skip


def _strikes_out(line: Stroke, glyphs: Sequence[_Glyph]) -> bool:
    """Return whether a line is at the middle of letters, and begins and ends where they do.

    The bar of a fraction is between the lines of its letters, and the line of a drawing ends
    anywhere, such as in a letter. A sign without letters and digits is part of a drawing.
    """
    struck = [glyph for glyph in glyphs if line.start <= (glyph.left + glyph.right) / 2 <= line.end]
    if not struck or not any(glyph.text.isalnum() for glyph in glyphs):
        return False
    lowest, highest = (share * struck[0].typeface.size for share in _MIDDLE)
    near, far = (share * struck[0].typeface.size for share in _ENDS)
    level = sum(lowest <= line.at - glyph.base <= highest for glyph in struck)
    inner = _IN_NEXT * struck[0].typeface.size
    touched = sum(
        line.start + inner < glyph.right and glyph.left < line.end - inner for glyph in glyphs
    )
    return (
        2 * level > len(struck)
        and touched == len(struck)
        and -near <= min(glyph.left for glyph in struck) - line.start <= far
        and -near <= line.end - max(glyph.right for glyph in struck) <= far
    )


def _join_level(strokes: Sequence[Stroke]) -> list[list[Stroke]]:
    """Return groups of horizontal lines that continue each other; at most so many as strike out."""
    groups: list[list[Stroke]] = []
    for stroke in sorted(strokes, key=lambda one: (round(one.at), one.start)):
        last = groups[-1][-1] if groups else None
        if last and round(last.at) == round(stroke.at) and stroke.start <= last.end + 2:
            groups[-1].append(stroke)
        else:
            groups.append([stroke])
    return groups[:_MOST_STRIKES]


def _meets(line: Stroke, segment: Segment) -> bool:
    lowest, highest = (segment.base + share * segment.size for share in _HEIGHT)
    is_across = segment.left < line.end - 1 and line.start + 1 < segment.right
    return is_across and lowest < line.at < highest


def _strikes_line(line: Stroke, met: Sequence[Segment]) -> bool:
    """Return whether a line is at the middle of all segments that it meets, and covers them all."""
    lowest, highest = _MIDDLE
    has_label = len(met) > 1 and any(any(map(str.isalpha, one.text)) for one in met)
    least = (_LEAST_STRUCK_ROW if has_label else _LEAST_STRUCK) * (line.end - line.start)
    return (
        all(
            line.start - 1 <= one.left
            and one.right <= line.end + 1
            and lowest <= (line.at - one.base) / one.size <= highest
            for one in met
        )
        and sum(one.right - one.left for one in met) >= least
        and sum(map(str.isalnum, "".join(one.text for one in met))) >= _LEAST_LETTERS
    )


def _find_script(current: Segment, glyph: _Glyph) -> Script:
    """Return whether a glyph is superscript or subscript; a drop cap is neither."""
    rise = (glyph.base - current.base) / current.size
    if not _is_smaller(glyph.typeface.size / current.size, rise) or abs(rise) < _LEAST_RISE:
        return Script.LINE
    return Script.RAISED if rise > 0 else Script.LOWERED


def _is_smaller(share: float, rise: float) -> bool:
    largest = _LARGEST_RAISED if abs(rise) >= _CLEAR_RISE else _LARGEST_SCRIPT
    return _SMALLEST_SCRIPT <= share <= largest


def _write_text(segment: Segment, glyphs: Sequence[_Glyph], strikes: Sequence[Stroke]) -> Segment:
    """Set the text of a segment; letters that are spaced out are joined to words."""
    first = glyphs[0]
    line = Segment("", first.left, first.right, first.base, first.typeface.size)
    body = next((one for one in glyphs if one.typeface.size != line.size), first)
    line.base, line.size = body.base, body.typeface.size
    is_mark = body in glyphs[: _LONGEST_MARK + 1] and _find_script(line, first) is Script.RAISED
    if not is_mark:
        line.base, line.size = first.base, first.typeface.size
    spans: list[Span] = []
    gaps: list[float] = []
    for glyph in glyphs:
        gap = glyph.left - line.right
        script = _find_script(line, glyph)
        middle = (glyph.left + glyph.right) / 2
        is_struck = any(strike.start <= middle <= strike.end for strike in strikes)
        # PDFium adds a space where the baseline changes.
        is_same = not spans or script is spans[-1].script
        has_space = glyph.has_space if is_same else glyph.has_drawn_space
        if spans and (has_space or gap > _GAP_OF_WORDS * line.size):
            gaps.append(gap)
            spans.append(Span(" ", Script.LINE, is_struck and spans[-1].is_struck))
            segment.words.append((glyph.left, glyph.right))
        elif not spans:
            segment.words = [(glyph.left, glyph.right)]
        segment.words[-1] = segment.words[-1][0], glyph.right
        spans.append(Span(glyph.text, script, is_struck))
        _extend(line, glyph)
    segment.text = join_spans(spans)
    words = segment.text.split(" ")
    if len(words) >= _LEAST_SPACED and all(len(word) == 1 for word in words):
        widest = _WIDER * median(gaps)
        spaced = "".join(
            f"{'  ' if gap > widest else ' '}{word}"
            for gap, word in zip([widest, *gaps], words, strict=False)
        ).strip()
        segment.text = " ".join(map(_join_letters, spaced.split("  ")))
    return segment


def _join_letters(spaced: str) -> str:
    """Return spaced-out letters as a word; numbers and lists of letters are unchanged."""
    word = spaced.replace(" ", "")
    is_word = word in (word.upper(), word.lower(), word.capitalize())
    return word if is_word and not any(map(str.isdecimal, word)) else spaced


def _extend(segment: Segment, glyph: _Glyph) -> None:
    segment.left = min(segment.left, glyph.left)
    segment.right = max(segment.right, glyph.right)
    segment.is_bold = segment.is_bold and glyph.typeface.is_bold
    segment.is_code = segment.is_code and glyph.typeface.is_code
    size = glyph.typeface.size
    if segment.size < size and _is_smaller(segment.size / size, (segment.base - glyph.base) / size):
        # The text so far is the superscript in front of a letter, such as a mass number.
        segment.base = glyph.base
    segment.size = max(segment.size, size)


def _join_words(
    glyphs: Iterator[_Glyph], edges_of_cells: "_CellEdges", *, is_page_reversed: bool
) -> Iterator[tuple[int, Segment]]:
    """Yield the segments of a page with right-to-left text.

    A number or Latin word in such a line is to the left of the preceding word, but runs to the
    right. The words are therefore put in order when their positions are known.
    """
    lines = (_Words([word], word.segment.left, word.segment.right) for word in _take_words(glyphs))
    for line in _join_near(_join_near(lines, edges_of_cells), edges_of_cells):
        yield (
            line.words[0].turn,
            _join_pieces(line.words, edges_of_cells, is_page_reversed=is_page_reversed),
        )


def _join_near(lines: Iterable[_Words], edges_of_cells: "_CellEdges") -> Iterator[_Words]:
    """Yield words that are beside each other on either side, and follow each other in the file."""
    held: _Words | None = None
    for line in lines:
        if held is None or not _is_near(held, line, edges_of_cells):
            if held is not None:
                yield held
            held = line
        else:
            held.words += line.words
            held.left, held.right = min(held.left, line.left), max(held.right, line.right)
    if held is not None:
        yield held


def _join_pieces(
    words: Iterable[_Word], edges_of_cells: "_CellEdges", *, is_page_reversed: bool
) -> Segment:
    words = sorted(words, key=lambda one: one.segment.left + one.segment.right)
    segments = [word.segment for word in words]
    size = max(segment.size for segment in segments)
    pieces = []
    for before, word in zip((None, *words), words, strict=False):
        own = word.segment
        gap = own.left - before.segment.right if before is not None else 0.0
        later = max(before or word, word, key=lambda one: one.number)
        least = _LEAST_SPACE if later.glyphs[0].has_drawn_space else _GAP_OF_WORDS
        has_space = gap > least * size
        is_struck = bool(edges_of_cells.list_strikes(own, word.glyphs, word.turn))
        pieces.append(Piece(own.text, has_space, is_struck))
    spans: list[Span] = []
    for piece, has_space in put_in_order(pieces, is_page_reversed=is_page_reversed):
        is_within = bool(spans) and spans[-1].is_struck and piece.is_struck
        spans += [Span(" ", is_struck=is_within)] if has_space else []
        spans.append(Span(piece.text, is_struck=piece.is_struck))
    return replace(
        segments[0], text=join_spans(spans), size=size,
        right=max(segment.right for segment in segments),
        left=min(segment.left for segment in segments),
        is_bold=all(segment.is_bold for segment in segments),
        is_code=all(segment.is_code for segment in segments),
    )  # fmt: skip


def _take_words(glyphs: Iterator[_Glyph]) -> Iterator[_Word]:
    word: _Word | None = None
    last: _Glyph | None = None
    marks, number = "", 0
    for glyph in glyphs:
        if word is None or last is None or not _is_in_word(word, last, glyph):
            if word is not None:
                word.segment.text += marks
                yield word
            is_reversed = is_right_to_left(glyph.text)
            number += 1
            turn = glyph.typeface.turn
            word = _Word(glyph.make_segment(), turn, is_reversed, number, [glyph])
            last, marks = glyph, ""
        elif not unicodedata.combining(glyph.text[0]):
            _insert(word, last, replace(glyph, text=glyph.text + marks))
            last, marks = glyph, ""
        elif last.left <= (glyph.left + glyph.right) / 2 <= last.right:
            _insert(word, glyph, glyph)
        else:
            # The mark of the next letter.
            marks += glyph.text
    if word is not None:
        word.segment.text += marks
        yield word


def _insert(word: _Word, last: _Glyph, glyph: _Glyph) -> None:
    """Insert a glyph into a word, behind the last one or, if it is seen before it, at the start."""
    text = word.segment.text
    word.glyphs.append(glyph)
    if unicodedata.combining(glyph.text[0]):
        at = word.end
    elif glyph.left == last.left and glyph.text == _LAM and last.text in _ALEFS:
        # PDFium may reverse the ligature of lam and alef; the other way round there is none.
        at = word.end - len(last.text)
    else:
        # A file may have the letters in the order in which they are seen.
        is_visual = glyph.left + glyph.right > last.left + last.right
        at = 0 if word.is_reversed and is_visual else len(text)
    word.end = at + len(glyph.text)
    word.glyphs.append(glyph)
    word.segment.text = f"{text[:at]}{glyph.text}{text[at:]}"
    _extend(word.segment, glyph)


def _is_in_word(word: _Word, last: _Glyph, glyph: _Glyph) -> bool:
    if glyph.typeface.turn != word.turn:
        return False
    if word.is_reversed and unicodedata.combining(glyph.text[0]):
        return True
    if glyph.has_space:
        return False
    gap = max(glyph.left - last.right, last.left - glyph.right)
    size = max(word.segment.size, glyph.typeface.size)
    is_near = abs(glyph.base - last.base) <= _BASELINE * size and gap <= _GAP_OF_WORDS * size
    is_word = last.text.isalnum() and glyph.text.isalnum()
    return is_near and is_word and is_right_to_left(glyph.text) is word.is_reversed


def _is_near(held: _Words, line: _Words, edges_of_cells: "_CellEdges") -> bool:
    one, word = held.words[0], line.words[0]
    size = max(one.segment.size, word.segment.size)
    if (
        word.turn != one.turn
        or one.segment.tag is not word.segment.tag
        or abs(one.segment.base - word.segment.base) > _BASELINE * size
    ):
        return False
    left, right = sorted((held, line), key=lambda words: words.left)
    # A number is beside the sign that follows it, both of them between other words.
    last = held.words[-1].segment
    gaps = (right.left - left.right, line.left - last.right, last.left - line.right)
    is_beside = any(-size < gap < word.glyphs[0].widest_gap * size for gap in gaps)
    own = replace(one.segment, right=left.right)
    return is_beside and not edges_of_cells.part(own, right.left, word.turn)


def _continues(current: Segment, last: _Glyph, glyph: _Glyph) -> bool:
    if (glyph.left, glyph.base) == (last.left, last.base):
        # PDFium has the letters of a ligature at its place.
        return True
    if glyph.typeface.is_code and not current.is_code and current.text.isdecimal():
        # The number of a line of code, which has places of its own.
        return False
    smaller, size = sorted((current.size, glyph.typeface.size))
    rise = (glyph.base - current.base) / size
    if abs(rise) > (_HIGHEST_RISE if _is_smaller(smaller / size, rise) else _BASELINE):
        return False
    return -size < glyph.left - current.right < glyph.widest_gap * size


def _show(code: int) -> str:
    if code == _TEX_BULLET:
        return "\u2022"
    sign = chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
    is_form = 0xFB00 <= code <= 0xFDFF or 0xFE10 <= code <= 0xFE48 or 0xFE70 <= code <= 0xFEFC
    return unicodedata.normalize("NFKC", sign).strip() if is_form else sign


def _read_typeface(
    raw: Any, text_page: "PdfTextPage", index: int, drawn: Any, tags: Mapping[int, Tag]
) -> _Typeface:
    """Return the typeface of a drawn text, one glyph of which has the index."""
    if not drawn:
        return _Typeface(10.0, False, False)
    size, matrix = ctypes.c_float(), raw.FS_MATRIX()
    raw.FPDFTextObj_GetFontSize(drawn, size)
    raw.FPDFText_GetMatrix(text_page, index, matrix)
    scaled = size.value * math.hypot(matrix.c, matrix.d)
    font = raw.FPDFTextObj_GetFont(drawn)
    buffer = ctypes.create_string_buffer(_LONGEST_NAME)
    length = raw.FPDFFont_GetBaseFontName(font, buffer, _LONGEST_NAME) if font else 0
    name = buffer.value.decode("utf-8", "replace").lower() if 0 < length <= _LONGEST_NAME else ""
    return _Typeface(
        size=round(max(min(abs(scaled), 500.0), 1.0) * 2) / 2,
        is_bold=any(word in name for word in _BOLD),
        is_code=any(word in name for word in _CODE),
        # A negative size turns the letters, too.
        turn=find_turn(matrix.a * size.value, matrix.b * size.value),
        tag=tags.get(raw.FPDFPageObj_GetMarkedContentID(drawn)) if tags else None,
    )


def _list_rules(boxes: list[Box], turn: int, size: Size) -> list[DrawnRule]:
    """Return the horizontal edges of paths."""
    rules: list[DrawnRule] = []
    matrix = turn_page(turn, size)
    for box in boxes:
        left, bottom, right, top = matrix.on_rect(*box)
        if right - left > 20:
            rules.append(DrawnRule(left, right, top))
            if top - bottom > 3:
                rules.append(DrawnRule(left, right, bottom))
    return rules
