"""Extracts the pictures of PDF pages, and finds the text next to them."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pypdfium2 import PdfImage, PdfiumError, PdfPage

from knowledge.documents.page import Block, BlockKind, LeftOutCounts, Picture
from knowledge.documents.pdf.page_layout import LaidOutPage
from knowledge.documents.pdf.page_objects import Box, list_objects
from knowledge.documents.pdf.text_lines import Line
from knowledge.documents.pictures import (
    BEYOND_LIMITS,
    LARGEST_PICTURE,
    LONGEST_CAPTION,
    MOST_PICTURES,
    encode,
    write_png,
)

_LEAST_SIDE = 36.0
"""Minimum size in points; a smaller picture is a symbol rather than a figure."""
_LARGEST_SHARE = 0.9
"""Maximum share of the page; a larger picture is a background."""
_LARGEST_AREA = 6_000_000
_FURTHEST_CAPTION = 3.0
"""Maximum distance between a picture and the line below it, in font sizes."""
_NUMBERED_CAPTION = re.compile(
    r"[^\W\d_]{1,20}\.?[ \u00a0]{0,2}[0-9]{1,3}(?:[.-][0-9]{1,3})?[ \u00a0]?[:.\u2013\u2014-]"
)
"""Such as `Figure 3:`, in any language. Without a number, the end of a caption cannot be
determined.
"""
_MOST_PAGES_OF_ONE = 2
"""Maximum number of pages of one picture; a picture on more pages is a logo or similar."""


@dataclass(frozen=True, slots=True)
class PagePicture:
    """A picture on a page, with its box in points from the lower left corner."""

    page: int
    data: str
    box: Box


def take_pictures(page: PdfPage, number: int, left_out: LeftOutCounts) -> Iterator[PagePicture]:
    """Yield the figures of a page that can be shown, at most `MOST_PICTURES`; count the others."""
    largest = _LARGEST_SHARE * math.prod(page.get_size())
    left_to_take = MOST_PICTURES
    for drawn, matrix in list_objects(page):
        box = left, bottom, right, top = matrix.on_rect(*drawn.get_bounds())
        size = right - left, top - bottom
        if not isinstance(drawn, PdfImage) or min(size) < _LEAST_SIDE or math.prod(size) >= largest:
            continue
        left_to_take -= 1
        try:
            data = _extract(drawn) if left_to_take >= 0 else None
        except PdfiumError:
            left_out.add("picture", "damaged", name=f"page {number}")
            continue
        if data is None:
            left_out.add("picture", BEYOND_LIMITS, name=f"page {number}")
        else:
            yield PagePicture(number, encode(data), box)


def insert_pictures(
    blocks: Sequence[Block], pages: Sequence[LaidOutPage], taken: Sequence[PagePicture]
) -> Iterator[Block]:
    """Yield the blocks with the pictures of their pages.

    A picture belongs to the block of the line below it if that line is its numbered caption, and to
    the block of the line above it if not. Pictures repeated on many pages are left out.
    """
    counts = Counter(data for data, _ in {(picture.data, picture.page) for picture in taken})
    lines = {page.number: page.lines for page in pages}
    by_place: dict[int, list[Picture]] = {}
    for picture in taken:
        if counts[picture.data] <= _MOST_PAGES_OF_ONE:
            at, caption = _place(picture, blocks, lines.get(picture.page, []))
            by_place.setdefault(at, []).append(Picture(caption, data=picture.data))
    for at, block in enumerate(blocks):
        pictures = tuple(by_place.get(at, ()))
        yield replace(block, pictures=(*block.pictures, *pictures)) if pictures else block


def _extract(drawn: PdfImage) -> bytes | None:
    """Return a picture as JPEG if it is stored as JPEG, or as PNG; None if it is too large.

    Raises `PdfiumError` if it is damaged.
    """
    columns, rows = drawn.get_px_size()
    if columns * rows > _LARGEST_AREA:
        return None
    # The rendering of a damaged picture is empty.
    drawn.get_bitmap(render=False)
    if drawn.get_filters() == ["DCTDecode"]:
        written = bytes(drawn.get_data())
        return written if len(written) <= LARGEST_PICTURE else None
    pixels = drawn.get_bitmap(render=True).to_numpy()
    colours = pixels[:, :, 2::-1] if pixels.ndim == 3 and pixels.shape[2] >= 3 else pixels
    return write_png(colours.reshape(colours.shape[0], colours.shape[1], -1))


def _place(picture: PagePicture, blocks: Sequence[Block], lines: Sequence[Line]) -> tuple[int, str]:
    """Return the index of the block to which a picture belongs, and its caption."""
    own = [at for at, block in enumerate(blocks) if block.anchor == f"page={picture.page}"]
    left, bottom, right, top = picture.box
    beside = [
        line for line in lines
        if min(one.left for one in line.segments) < right
        and left < max(one.right for one in line.segments)
    ]  # fmt: skip
    below = [line for line in beside if line.base < bottom + line.size / 2]
    nearest = max(below, key=lambda line: line.base, default=None)
    if nearest is not None and bottom - nearest.base <= _FURTHEST_CAPTION * nearest.size:
        for at in own:
            text = blocks[at].text
            is_short = blocks[at].kind is BlockKind.TEXT and len(text) <= LONGEST_CAPTION
            if is_short and text.startswith(nearest.text) and _NUMBERED_CAPTION.match(text):
                return at, text
    above = [line for line in beside if line.base >= top - line.size]
    last = min(above, key=lambda line: line.base, default=None)
    for at in reversed(own):
        if last is not None and last.text in blocks[at].text:
            return at, ""
    return (own[0] if own else -1), ""
