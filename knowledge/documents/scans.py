"""Reads a picture that is a document by itself: its text is recognised, page by page."""

import io
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

from knowledge.documents.errors import PicturesError, WrongFormatError
from knowledge.documents.page import Block, BlockKind, LeftOutCounts, Page
from knowledge.documents.recognition import (
    DAMAGED_PICTURE,
    Recognise,
    has_time,
    load_recogniser,
    recognise_picture,
)

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_PAGES = 200
_FORMATS = ("PNG", "JPEG", "TIFF")
_LARGEST_AREA = 60_000_000
_NO_TIME = "there was no time left to recognise text: INGESTION_FILE_SECONDS"
_DAMAGED = "the data is damaged"
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
    for number, picture in enumerate(_open(data), start=1):
        text, reason = _recognise(picture, recogniser)
        if text:
            blocks.append(Block(BlockKind.TEXT, text, anchor=f"page={number}"))
        else:
            reasons.append(reason)
            left_out.add("picture", reason, name=f"page {number}")
    if not blocks:
        if set(reasons) <= {_DAMAGED}:
            raise _wrong_format()
        raise PicturesError(f"it is a picture; {reasons[-1]}")
    note = "its text was recognised in pictures and may have mistakes"
    return Page(source, "", tuple(blocks), warnings=(note,), left_out=left_out.list())


def _recognise(picture: "Image | str", recognise: Recognise) -> tuple[str, str]:
    """Return the text of a picture, and the reason if there is none."""
    if isinstance(picture, str):
        return "", picture
    return recognise_picture(picture, recognise) if has_time() else ("", _NO_TIME)


def _open(data: bytes) -> "Iterator[Image | str]":
    """Yield each picture of a file, or why it cannot be read."""
    from PIL import Image

    damaged = (*DAMAGED_PICTURE, Image.DecompressionBombError)
    try:
        opened = Image.open(io.BytesIO(data), formats=_FORMATS)
    except damaged as error:
        raise _wrong_format() from error
    with opened:
        for number in count():
            try:
                opened.seek(number)
            except EOFError:
                return
            except damaged:
                # The pictures behind it cannot be found either.
                yield _DAMAGED
                return
            if number >= MOST_PAGES:
                yield _TOO_MANY
                return
            yield _load(opened, damaged)


def _load(picture: "Image", damaged: tuple[type[Exception], ...]) -> "Image | str":
    if picture.width * picture.height > _LARGEST_AREA:
        return _TOO_LARGE
    try:
        picture.load()
    except damaged:
        return _DAMAGED
    return picture


def _wrong_format() -> WrongFormatError:
    return WrongFormatError(
        f"expected a picture ({', '.join(_FORMATS)}), found a damaged file or another format"
    )
