"""Reads a picture that is a document by itself: its text is recognised, page by page."""

import io
from collections.abc import Iterator
from itertools import count

from knowledge.documents.errors import PicturesError, WrongFormatError
from knowledge.documents.page import Block, BlockKind, LeftOutCounts, Page
from knowledge.documents.recognition import (
    DAMAGED,
    Recognise,
    list_decoding_errors,
    load_recogniser,
    recognise_picture,
)

MOST_PAGES = 200
_FORMATS = ("PNG", "JPEG", "TIFF")
_LARGEST_AREA = 60_000_000
_TOO_LARGE = f"it has more than {_LARGEST_AREA} pixels"
_TOO_MANY = f"only the first {MOST_PAGES} pages of a picture file are read"


def read(data: bytes, source: str, recognise: Recognise | None = None) -> Page:
    """Return the page; each picture of a multi-page file has an anchor such as `page=3`.

    A picture without text is listed in `left_out` with the reason. Raises `PicturesError` if no
    text is recognised, and `WrongFormatError` if no picture in the file can be decoded.
    """
    recogniser = load_recogniser() if recognise is None else recognise
    if isinstance(recogniser, str):
        raise PicturesError(f"it is a picture; {recogniser}")
    blocks: list[Block] = []
    left_out = LeftOutCounts()
    reasons: list[str] = []
    for number, (text, reason) in enumerate(_read_pictures(data, recogniser), start=1):
        if text:
            blocks.append(Block(BlockKind.TEXT, text, anchor=f"page={number}"))
        else:
            reasons.append(reason)
            left_out.add("picture", reason, name=f"page {number}")
    if not blocks and set(reasons) <= {DAMAGED}:
        formats = ", ".join(_FORMATS)
        raise WrongFormatError(
            f"expected a picture ({formats}), found a damaged file or another format"
        )
    if not blocks:
        raise PicturesError(f"it is a picture; {reasons[-1]}")
    note = "its text was recognised in pictures and may have mistakes"
    return Page(source, "", tuple(blocks), warnings=(note,), left_out=left_out.list())


def _read_pictures(data: bytes, recognise: Recognise) -> Iterator[tuple[str, str]]:
    """Yield the text of each picture of a file, and the reason if there is none."""
    from PIL import Image

    damaged = list_decoding_errors()
    try:
        opened = Image.open(io.BytesIO(data), formats=_FORMATS)
    except damaged:
        return
    with opened:
        for number in count():
            try:
                opened.seek(number)
            except EOFError:
                return
            except damaged:
                # The pictures behind it cannot be found either.
                yield "", DAMAGED
                return
            if number >= MOST_PAGES:
                yield "", _TOO_MANY
                return
            if opened.width * opened.height > _LARGEST_AREA:
                yield "", _TOO_LARGE
            else:
                yield recognise_picture(lambda: opened, recognise)
