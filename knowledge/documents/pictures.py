"""Collects the pictures of a document: embedded ones, and files beside the page.

The type of a picture is determined by its first bytes, never by its name. Drawings with scripts
(SVG) are not supported. Pictures smaller than a figure, such as icons, and those beyond the limits
are left out.
"""

import base64
import hashlib
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from knowledge.documents.decoding import clean_text
from knowledge.documents.page import (
    Block,
    BlockKind,
    LeftOutCounts,
    Page,
    Picture,
    PictureFile,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LARGEST_PICTURE = 2 * 1024 * 1024
MOST_PICTURES = 50
"""Maximum number of pictures of one document that are kept."""
MOST_BYTES = 12 * 1024 * 1024
"""Maximum size of all pictures of one document, in bytes."""
LONGEST_CAPTION = 200
_NAME_OF_A_FILE = re.compile(r"[^\s]{1,300}\.(?:png|jpe?g|gif|webp)", re.IGNORECASE)
_LEAST_SIDE, _LARGEST_AREA = 48, 40_000_000
_ID_CHARACTERS = 32
BEYOND_LIMITS = "the document has too many pictures, or too large ones"
_NOT_PRESENT = "no readable file among the documents"
_SIGNS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg",
          b"GIF87a": "image/gif", b"GIF89a": "image/gif"}  # fmt: skip
_UNKNOWN_FORMAT = "the format is not supported"


@dataclass(slots=True)
class _Collection:
    """The pictures of a page collected so far; `left_out` counts those that cannot be shown.

    Pictures that are too small for a figure are decoration, and so are those in the URLs of pages
    of an unknown format without a caption; neither are counted.
    """

    beside: Mapping[str, bytes]
    files: dict[str, PictureFile] = field(default_factory=dict)
    bytes_left: int = MOST_BYTES
    left_out: LeftOutCounts = field(default_factory=LeftOutCounts)

    def take(self, picture: Picture) -> Picture | None:
        """Return the picture with its id; None if it is not kept."""
        data = decode(picture.data) if picture.data else self.beside.get(picture.address)
        media_type = None if data is None else recognise_type(data)
        if data is None or media_type is None:
            address = "" if picture.address.startswith("data:") else picture.address
            name = " ".join((picture.caption or address)[:LONGEST_CAPTION].split())
            reason = _NOT_PRESENT if address and data is None else _UNKNOWN_FORMAT
            if name or picture.fault:
                self.left_out.add("picture", picture.fault or reason, name=name)
            return None
        if not _is_figure(data, media_type):
            return None
        name = hashlib.sha256(data).hexdigest()[:_ID_CHARACTERS]
        if name not in self.files:
            is_within = len(data) <= min(LARGEST_PICTURE, self.bytes_left)
            if not is_within or len(self.files) >= MOST_PICTURES:
                self.left_out.add("picture", BEYOND_LIMITS)
                return None
            self.bytes_left -= len(data)
            self.files[name] = PictureFile(name, media_type, encode(data))
        caption = " ".join(clean_text(picture.caption[: 4 * LONGEST_CAPTION]).split())
        is_name = _NAME_OF_A_FILE.fullmatch(caption) is not None
        return Picture(caption="" if is_name else caption[:LONGEST_CAPTION], id=name)


def hold_picture(data: bytes, caption: str) -> Picture:
    """Return a picture inside a file, which is counted as left out if it cannot be shown."""
    if recognise_type(data) is None:
        return Picture(caption, fault=_UNKNOWN_FORMAT)
    return Picture(caption, data=encode(data))


def encode(data: bytes) -> str:
    """Return bytes in the encoding used in blocks."""
    return base64.b64encode(data).decode()


def collect_pictures(page: Page, beside: Mapping[str, bytes]) -> Page:
    """Return the page with the files of its pictures, without blocks that contain only a picture.

    Such pictures are added to the text before them in their section or, if there is none, to the
    text after them.
    """
    if not any(block.pictures for block in page.blocks):
        return page
    collection = _Collection(beside)
    collection.left_out.take(page.left_out)
    blocks: list[Block] = []
    waiting: tuple[Picture, ...] = ()
    for block in page.blocks:
        taken = (collection.take(picture) for picture in block.pictures)
        own = tuple(picture for picture in taken if picture is not None)
        if block.kind is BlockKind.HEADING:
            blocks += _stand_alone(waiting)
            blocks.append(replace(block, pictures=()))
            waiting = own
        elif block.text:
            blocks.append(replace(block, pictures=(*waiting, *own)))
            waiting = ()
        elif blocks and blocks[-1].kind is not BlockKind.HEADING:
            blocks[-1] = replace(blocks[-1], pictures=(*blocks[-1].pictures, *own))
        else:
            waiting = (*waiting, *own)
    blocks += _stand_alone(waiting)
    return replace(
        page,
        blocks=tuple(blocks),
        files=tuple(collection.files.values()),
        left_out=collection.left_out.list(),
    )


def write_png(pixels: "NDArray[np.uint8]") -> bytes:
    """Return rows of pixels as PNG: one value each is grey, three are red, green and blue."""
    rows, columns, values = pixels.shape
    kind = {1: 0, 3: 2}[values]
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack("!IIBBBBB", columns, rows, 8, kind, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack("!I", len(body)) + name + body + struct.pack("!I", zlib.crc32(name + body))
        for name, body in parts
    )


def recognise_type(data: bytes) -> str | None:
    """Return the media type of a picture, determined by its first bytes; None if it is not
    supported.
    """
    is_webp = data.startswith(b"RIFF") and data[8:12] == b"WEBP"
    known = (kind for sign, kind in _SIGNS.items() if data.startswith(sign))
    return "image/webp" if is_webp else next(known, None)


def measure(data: bytes, media_type: str) -> tuple[int, int]:
    """Return the width and height in pixels; zeros for a damaged picture."""
    if media_type == "image/png":
        return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    if media_type == "image/gif":
        return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    if media_type == "image/webp":
        return _measure_webp(data)
    return _measure_jpeg(data)


def decode(data: str) -> bytes | None:
    """Return the bytes of a picture; None for invalid base64."""
    try:
        return base64.b64decode(data)
    except ValueError:
        return None


def _stand_alone(pictures: tuple[Picture, ...]) -> Iterator[Block]:
    """Yield a block for the pictures of a section without text, which would otherwise be
    unreachable.

    If they have no captions, the block has no text and serves readers that look into its pictures.
    """
    captions = " ".join(f"![{picture.caption}]" for picture in pictures if picture.caption)
    if pictures:
        yield Block(BlockKind.TEXT, captions, pictures=pictures)


def _is_figure(data: bytes, media_type: str) -> bool:
    width, height = measure(data, media_type)
    return min(width, height) >= _LEAST_SIDE and width * height <= _LARGEST_AREA


def _measure_webp(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    sizes = int.from_bytes(data[26:30], "little")
    return sizes & 0x3FFF, sizes >> 16 & 0x3FFF


def _measure_jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        mark = data[at + 1]
        if 0xC0 <= mark <= 0xCF and mark not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7])
        at += 1 if mark == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4])
    return 0, 0
