"""Reads a picture that is given as a document: its text is recognised, page by page."""

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from knowledge.documents.errors import PicturesError, WrongFormatError
from knowledge.documents.page import Block, BlockKind, Page
from knowledge.documents.recognition import (
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
_NO_TIME = "there was no time left to recognise their text: INGESTION_FILE_SECONDS"


def read(data: bytes, source: str, recognise: Recognise | None = None) -> Page:
    """Return the page; each picture of a file of several has the place `page=3`.

    Raises `PicturesError` where nothing is recognised, `WrongFormatError` for other files.
    """
    found = load_recogniser() if recognise is None else recognise
    if isinstance(found, str):
        raise PicturesError(f"it is a picture; {found}")
    blocks: list[Block] = []
    unread = 0
    reason = ""
    for number, picture in enumerate(_open(data), start=1):
        text, reason = recognise_picture(picture, found) if has_time() else ("", _NO_TIME)
        if text:
            blocks.append(Block(BlockKind.TEXT, text, anchor=f"page={number}"))
        unread += not text
    if not blocks:
        raise PicturesError(f"it is a picture; {reason}")
    notes = ["its text was recognised in pictures and may have mistakes"]
    if unread:
        notes.append(f"{unread} of its pictures are without text; {reason}")
    return Page(source, "", tuple(blocks), warnings=tuple(notes))


def _open(data: bytes) -> "Iterator[Image]":
    """Yield the pictures of a file, at most `MOST_PAGES`."""
    from PIL import Image, ImageSequence, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as opened:
            for number, picture in enumerate(ImageSequence.Iterator(opened)):
                if number >= MOST_PAGES or picture.width * picture.height > _LARGEST_AREA:
                    return
                picture.load()
                yield picture
    except (UnidentifiedImageError, OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise WrongFormatError(
            f"expected a picture ({', '.join(_FORMATS)}), found a damaged or another one"
        ) from error
