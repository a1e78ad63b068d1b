"""Finds out which words of a PDF page are visible, if need be by a rendering without pictures."""

import ctypes
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from pypdfium2 import PdfBitmap, PdfMatrix, PdfObject, PdfPage, raw

from knowledge.documents.pdf.glyphs import HEIGHT, UNREADABLE, Glyph
from knowledge.documents.pdf.page_objects import (
    DEEPEST_DRAWING,
    Box,
    PageObjects,
    find_address,
    find_colour,
    find_size,
    list_clips,
)
from knowledge.documents.pdf.page_text import turn_page

_PAPER = 0xFFFFFF
_BESIDE = 1.0
"""Space beside the letters of a word, in points."""
_LAST = 1_000_000
_PIXELS = 1.5
"""Pixels per point of the rendering that shows what is visible."""
_MOST_PIXELS = 6_000_000
_LONGEST_MARK = 100


class VisibleGlyphs:
    """Keeps the glyphs of a page that a reader sees, and counts the others.

    `hidden_words` are not visible. Words without a readable letter are left out, too;
    `unreadable_letters` are all letters without a meaning in the file. The place of a picture
    counts as visible: invisible text there is the recognised text of a scan.
    """

    def __init__(self, page: PdfPage, objects: PageObjects, glyphs: Iterable[Glyph]) -> None:
        self.hidden_words = 0
        self.unreadable_letters = 0
        self._page = page
        self._fills = objects.fills
        self._filled = _list_edges([fill.box for fill in objects.fills])
        self._pictured = _list_edges(objects.pictures)
        # PDFium omits the same text that is drawn again in the same place, such as above a box.
        read = {glyph.drawn for glyph in glyphs}
        places = [
            tuple(map(round, matrix.on_rect(*drawn.get_bounds())))
            for drawn, matrix in objects.texts
        ]
        addresses = [find_address(drawn.raw) for drawn, _ in objects.texts]
        pairs = enumerate(zip(places, addresses, strict=True))
        last = {place: at for at, (place, address) in pairs if address not in read}
        self._texts = {
            address: _read_text(page, max(at, last.get(place, at)), drawn, matrix)
            for at, (place, address, (drawn, matrix)) in enumerate(
                zip(places, addresses, objects.texts, strict=True)
            )
        }
        self._size = find_size(page)
        self._scale = min(_PIXELS, math.sqrt(_MOST_PIXELS / max(math.prod(self._size), 1)))

    def keep(self, glyphs: Iterable[Glyph]) -> Iterator[Glyph]:
        """Yield the glyphs of visible words with readable letters."""
        word: list[Glyph] = []
        for glyph in chain(glyphs, [None]):
            if word and (glyph is None or glyph.has_space or glyph.base != word[0].base):
                if self._shows(word):
                    unreadable = sum(one.text == UNREADABLE for one in word)
                    self.unreadable_letters += unreadable
                    yield from word if unreadable < len(word) else ()
                else:
                    self.hidden_words += 1
                word = []
            if glyph is not None:
                word.append(glyph)

    def _shows(self, word: Sequence[Glyph]) -> bool:
        """Return whether a word may be visible.

        A word is hidden by an opaque box that is drawn over it, or if it is outside of the box that
        clips it. It is also hidden if a rendering shows nothing in its place, and the file states
        why; PDFium cannot draw all fonts.
        """
        own = self._texts.get(word[0].drawn)
        if own is None or min(self._size) < 1 or word[0].typeface.turn % 90:
            # Programs show such a small page in another size.
            return True
        box = self._find_box(word)
        fills = [self._fills[at] for at in _find_overlapping(self._filled, box)]
        inner, outer = _grow(box, -_BESIDE), _grow(box, _BESIDE)
        if any(fill.is_opaque and own.at < fill.at and _covers(fill.box, inner) for fill in fills):
            return False
        if not all(_overlaps(clip, outer) for clip in own.clips):
            # Another text may be in the place, such as the next cell of a sheet.
            return False
        x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        middle = x, y, x, y
        is_hidden = (
            own.is_hidden
            or not all(_covers(edge, middle) for edge in ((0, 0, *self._size), *own.clips))
            or any(own.at < fill.at and _covers(fill.box, middle) for fill in fills)
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

    def _find_box(self, word: Sequence[Glyph]) -> Box:
        """Return the place of a word on the page before it is turned."""
        base, face = word[0].base, word[0].typeface
        left, right = min(glyph.left for glyph in word), max(glyph.right for glyph in word)
        box = left, base + HEIGHT[0] * face.size, right, base + HEIGHT[1] * face.size
        if not face.turn:
            return box
        turned = turn_page(face.turn, self._size).on_rect(0, 0, *self._size)
        back: Box = turn_page(-face.turn, turned[2:]).on_rect(*box)
        return back

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


def _render(page: PdfPage, scale: float) -> Any:
    """Return the colours of a page without its pictures, annotations and turn, by rows."""
    kinds = (raw.FPDF_PAGEOBJ_IMAGE,)
    pictures = [one.raw for one in page.get_objects(kinds, max_depth=DEEPEST_DRAWING)]
    for picture in pictures:
        raw.FPDFPageObj_SetIsActive(picture, 0)
    bitmap = page.render(
        scale=scale, rotation=-page.get_rotation() % 360, may_draw_forms=False, draw_annots=False,
        prefer_bgrx=True,
    )  # fmt: skip
    for picture in pictures:
        raw.FPDFPageObj_SetIsActive(picture, 1)
    return bitmap.to_numpy().view("uint32")[:, :, 0] & 0xFFFFFF


def _read_text(page: PdfPage, at: int, drawn: PdfObject, matrix: PdfMatrix) -> _Text:
    mode = raw.FPDFTextObj_GetTextRenderMode(drawn.raw)
    is_stroked = mode in (raw.FPDF_TEXTRENDERMODE_STROKE, raw.FPDF_TEXTRENDERMODE_STROKE_CLIP)
    colour, opacity = find_colour(drawn, is_stroked=is_stroked)
    return _Text(
        # Letters that are the clipping path of a box are drawn by it.
        at if mode < raw.FPDF_TEXTRENDERMODE_FILL_CLIP else _LAST,
        colour,
        list(list_clips(drawn, matrix)),
        mode == raw.FPDF_TEXTRENDERMODE_INVISIBLE
        or opacity == 0
        or _is_on_layer(drawn)
        or (drawn.container is not None and _is_drawn_alone(page, drawn)),
    )


def _is_on_layer(drawn: PdfObject) -> bool:
    """Return whether an object is optional content (ISO 32000-1, 8.11.3.2)."""
    name, length = (ctypes.c_ushort * _LONGEST_MARK)(), ctypes.c_ulong()
    for at in range(raw.FPDFPageObj_CountMarks(drawn.raw)):
        mark = raw.FPDFPageObj_GetMark(drawn.raw, at)
        raw.FPDFPageObjMark_GetName(mark, name, ctypes.sizeof(name), length)
        if bytes(name)[: length.value].decode("utf-16-le") == "OC\0":
            return True
    return False


def _is_drawn_alone(page: PdfPage, drawn: PdfObject) -> bool:
    """Return whether PDFium draws a text that is alone, without layers and drawings around it."""
    bitmap = raw.FPDFTextObj_GetRenderedBitmap(page.pdf.raw, page.raw, drawn.raw, 1.0)
    return bool(bitmap) and bool(PdfBitmap.from_raw(bitmap).to_numpy().any())


def _list_edges(boxes: Sequence[Box]) -> Any:
    """Return an array of all left edges of boxes, all bottom, right and top ones."""
    return np.array(boxes).reshape(-1, 4).T


def _find_overlapping(edges: Any, box: Box) -> list[int]:
    """Return the numbers of the boxes that overlap a box."""
    if not edges.size:
        return []
    left, bottom, right, top = edges
    overlaps = (left < box[2]) & (box[0] < right) & (bottom < box[3]) & (box[1] < top)
    numbers: list[int] = overlaps.nonzero()[0].tolist()
    return numbers


def _grow(box: Box, by: float) -> Box:
    return box[0] - by, box[1] - by, box[2] + by, box[3] + by


def _overlaps(box: Box, other: Box) -> bool:
    return box[0] < other[2] and box[1] < other[3] and other[0] < box[2] and other[1] < box[3]


def _covers(box: Box, other: Box) -> bool:
    return box[0] <= other[0] and box[1] <= other[1] and other[2] <= box[2] and other[3] <= box[3]
