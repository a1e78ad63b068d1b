"""Recognises text in pictures (OCR), for scanned pages and pictures in documents; requires the
extra `ocr`.

The extra includes the models; nothing is downloaded. Loading them needs about 1 GB of memory: with
less, the pages are reported as pictures, with the setting to change.
"""

import base64
import io
import resource
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from knowledge.documents.decoding import clean_text
from knowledge.documents.page import (
    Block,
    BlockKind,
    LeftOutCounts,
    Page,
    Picture,
    PictureFile,
    write_count,
)
from knowledge.documents.pictures import measure

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

_SCALE = 2.2
"""Pixels per point of a page, equivalent to 160 dpi."""
_LARGEST_SIDE = 2000
_LEAST_CONFIDENCE = 0.5
_LEAST_MEMORY = 1_500_000_000
"""Minimum memory limit of a process, in bytes, with which the models are loaded."""
_SECONDS_LEFT = 6.0
"""Minimum remaining processor time in seconds; with less, the next page could end the reader
process.
"""


@dataclass(frozen=True, slots=True)
class RecognisedText:
    """Text in a picture; `top` and `height` are the position of its line, in pixels."""

    text: str
    left: float
    top: float
    height: float


Recognise = Callable[[Any], Sequence[RecognisedText]]
"""Returns the texts in a picture (a Pillow image)."""

TOO_LITTLE_MEMORY = "recognising their text needs more memory; set INGESTION_FILE_MEMORY_MB=2000"
_LEAST_SIDE = 100
"""Minimum size in pixels; smaller pictures have no readable text."""
_LEAST_WORDS = 2
_LONGEST_REASON = 200
DAMAGED_PICTURE = (OSError, SyntaxError, ValueError, TypeError, LookupError, OverflowError)
"""Exceptions that Pillow raises for damaged data, besides `DecompressionBombError`."""
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
_NO_TEXT = "no text was recognised"
_NO_TIME = "there was no time left to recognise text; raise INGESTION_FILE_SECONDS"
_DAMAGED = "the picture is damaged, or of a kind that cannot be opened here"


class _PictureReading:
    """Recognises each picture of a page once; counts pictures that were read or left out."""

    def __init__(
        self, files: dict[str, PictureFile], recognise: Recognise, *, is_outside: bool
    ) -> None:
        self._is_outside = is_outside
        self._files = files
        self._recognise = recognise
        self._number = 0
        self._read = 0
        self.left_out = LeftOutCounts()

    def insert(self, blocks: Sequence[Block]) -> Iterator[Block]:
        """Yield the blocks, with the recognised texts of each section's pictures at its end."""
        level, section = 0, None
        waiting: list[tuple[Picture, str | None]] = []
        for block in blocks:
            if block.kind is BlockKind.HEADING:
                yield from self._write(waiting, level)
                waiting, level, section = [], block.level, block.anchor
            yield block
            waiting += ((picture, block.anchor or section) for picture in block.pictures)
        yield from self._write(waiting, level)

    def _write(self, shown: Sequence[tuple[Picture, str | None]], level: int) -> Iterator[Block]:
        for picture, anchor in shown:
            file = self._files.pop(picture.id, None)
            text = "" if file is None else self._recognise_file(file)
            if len(text.split()) < _LEAST_WORDS:
                continue
            self._number += 1
            name = f"Picture {self._number}"
            heading = f"{name}: {picture.caption}" if picture.caption else name
            is_page = anchor is not None and anchor.startswith("page=")
            place = anchor if is_page or self._is_outside else f"picture-{self._number}"
            yield Block(BlockKind.HEADING, heading, min(level + 1, 6), place)
            yield Block(BlockKind.TEXT, text, pictures=(picture,))

    def _recognise_file(self, file: PictureFile) -> str:
        text, reason = _recognise_stored(file, self._recognise) if has_time() else ("", _NO_TIME)
        self._read += bool(text)
        if not text and reason != _NO_TEXT:
            self.left_out.add("picture text", reason)
        return text

    def warnings(self) -> tuple[str, ...]:
        """Return a note about the recognised text."""
        if not self._read:
            return ()
        pictures = write_count(self._read, "picture")
        return (f"the text of {pictures} was recognised and may have mistakes",)


@cache
def load_recogniser() -> Recognise | str:
    """Return the text recogniser of this process, or the reason why there is none."""
    if find_spec("rapidocr") is None:
        return "to have their text recognised, install the extra refdesk[ocr]"
    if not _has_memory():
        return TOO_LITTLE_MEMORY
    try:
        return _load_rapidocr()
    except MemoryError:
        return TOO_LITTLE_MEMORY
    except (ImportError, RuntimeError) as error:
        return f"the text recognition could not be loaded ({_describe(error)})"


def recognise_page(page: "PdfPage", recognise: Recognise) -> tuple[str, str]:
    """Return the lines of a page that is a picture, and the reason if there are none."""
    scale = min(_SCALE, _LARGEST_SIDE / max(page.get_size()))
    try:
        picture = page.render(scale=scale).to_pil()
    except MemoryError:
        return "", TOO_LITTLE_MEMORY
    return recognise_picture(picture, recognise)


def recognise_picture(picture: Any, recognise: Recognise) -> tuple[str, str]:
    """Return the lines of a picture (a Pillow image), and the reason if there are none."""
    try:
        text = join_lines(recognise(picture))
    except MemoryError:
        return "", TOO_LITTLE_MEMORY
    except Exception as error:  # noqa: BLE001 - the runtime of the models has no class of its own
        # A failed allocation of the runtime is one of its errors, recognisable only by its text.
        return "", f"the text recognition failed ({_describe(error)})"
    return text, "" if text else _NO_TEXT


def join_lines(texts: Sequence[RecognisedText]) -> str:
    """Return texts as lines from top to bottom; adjacent texts form one line."""
    lines: list[list[RecognisedText]] = []
    for text in sorted(texts, key=lambda one: one.top + one.height / 2):
        middle = text.top + text.height / 2
        last = lines[-1][0] if lines else None
        if last is not None and last.top <= middle <= last.top + last.height:
            lines[-1].append(text)
        else:
            lines.append([text])
    ordered = (sorted(line, key=lambda one: one.left) for line in lines)
    return "\n".join(" ".join(recognised_text.text for recognised_text in line) for line in ordered)


def has_time() -> bool:
    """Return whether enough processor time is left for the reader process to read another page."""
    soft, _ = resource.getrlimit(resource.RLIMIT_CPU)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return soft == resource.RLIM_INFINITY or soft - used.ru_utime - used.ru_stime > _SECONDS_LEFT


def read_pictures(
    page: Page, recognise: Recognise | None = None, *, is_outside: bool = False
) -> Page:
    """Return the page with the texts of its pictures, each below the section that shows it.

    The text is a separate section, so that it is cited as the content of a picture. `is_outside`:
    citations link to another server, which knows only the anchor of the section. Without the extra,
    the page is returned unchanged.
    """
    files = {file.id: file for file in page.files if _is_large(file)}
    if not files or (recognise is None and find_spec("rapidocr") is None):
        return page
    recogniser = load_recogniser() if recognise is None else recognise
    if isinstance(recogniser, str):
        return replace(page, warnings=(*page.warnings, f"it has pictures; {recogniser}"))
    reading = _PictureReading(files, recogniser, is_outside=is_outside)
    blocks = tuple(reading.insert(page.blocks))
    return replace(
        page,
        blocks=blocks,
        warnings=(*page.warnings, *reading.warnings()),
        left_out=(*page.left_out, *reading.left_out.list()),
    )


def _recognise_stored(file: PictureFile, recognise: Recognise) -> tuple[str, str]:
    """Return the lines of a picture of a page, and the reason if there are none.

    A damaged picture is still shown, because a browser may be able to decode it.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(base64.b64decode(file.data)), formats=_FORMATS) as opened:
            opened.load()
            return recognise_picture(opened, recognise)
    except (*DAMAGED_PICTURE, Image.DecompressionBombError):
        return "", _DAMAGED


def _has_memory() -> bool:
    """Return whether enough memory is available for the models: a process that fails to load them
    cannot read more files.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return soft == resource.RLIM_INFINITY or soft >= _LEAST_MEMORY


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(clean_text(str(error)).split())[:_LONGEST_REASON]}"


def _load_rapidocr() -> Recognise:
    import numpy as np
    from rapidocr import RapidOCR

    threads = ("intra_op_num_threads", "inter_op_num_threads")
    engine = RapidOCR(params={f"EngineConfig.onnxruntime.{name}": 1 for name in threads})

    def recognise(picture: Any) -> Sequence[RecognisedText]:
        # The library declares a union of four results; a whole run returns the last of them.
        result: Any = engine(np.asarray(picture.convert("RGB")))
        if result.boxes is None or result.txts is None:
            return ()
        return [
            RecognisedText(
                clean_text(text),
                left=float(min(corner[0] for corner in box)),
                top=float(min(corner[1] for corner in box)),
                height=float(max(corner[1] for corner in box) - min(c[1] for c in box)),
            )
            for box, text, confidence in zip(result.boxes, result.txts, result.scores, strict=True)
            if confidence >= _LEAST_CONFIDENCE
        ]

    return recognise


def _is_large(file: PictureFile) -> bool:
    return min(measure(base64.b64decode(file.data), file.media_type)) >= _LEAST_SIDE
