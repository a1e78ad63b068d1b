"""Recognises the text of pages that are pictures (OCR), by rapidocr of the extra `ocr`.

Its models come with it; nothing is fetched. Loading it needs about 1 GB: with less, the pages are
named as pictures, with the setting to change.
"""

import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from knowledge.documents.decoding import clean_text

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

_SCALE = 2.2
"""Pixels for each point of a page: 160 for an inch."""
_LARGEST_SIDE = 2000
_LEAST_CONFIDENCE = 0.5
_SECONDS_LEFT = 6.0
"""Of the processor: with less, the next page could end the process that reads."""


@dataclass(frozen=True, slots=True)
class RecognisedText:
    """A text in a picture; `top` and `height` say where its line is, in pixels."""

    text: str
    left: float
    top: float
    height: float


Recognise = Callable[[Any], Sequence[RecognisedText]]
"""Returns the texts of a picture (of Pillow)."""


TOO_LITTLE_MEMORY = "recognising their text needs more memory; set INGESTION_FILE_MEMORY_MB=2000"


def load_recogniser() -> Recognise | str:
    """Return what recognises text, or why nothing does."""
    if find_spec("rapidocr") is None:
        return "to have their text recognised, install the extra refdesk[ocr]"
    try:
        return _load_rapidocr()
    except (ImportError, MemoryError, RuntimeError):
        return TOO_LITTLE_MEMORY


def _load_rapidocr() -> Recognise:
    import numpy as np
    from rapidocr import RapidOCR

    threads = ("intra_op_num_threads", "inter_op_num_threads")
    engine = RapidOCR(params={f"EngineConfig.onnxruntime.{name}": 1 for name in threads})

    def recognise(picture: Any) -> Sequence[RecognisedText]:
        # The library declares a union of four results; a whole run returns the last of them.
        found: Any = engine(np.asarray(picture.convert("RGB")))
        if found.boxes is None or found.txts is None:
            return ()
        return [
            RecognisedText(
                clean_text(text),
                left=float(min(corner[0] for corner in box)),
                top=float(min(corner[1] for corner in box)),
                height=float(max(corner[1] for corner in box) - min(c[1] for c in box)),
            )
            for box, text, confidence in zip(found.boxes, found.txts, found.scores, strict=True)
            if confidence >= _LEAST_CONFIDENCE
        ]

    return recognise


def recognise_page(page: "PdfPage", recognise: Recognise) -> tuple[str, str]:
    """Return the lines of a page that is a picture, and the reason where there are none."""
    scale = min(_SCALE, _LARGEST_SIDE / max(page.get_size()))
    try:
        picture = page.render(scale=scale).to_pil()
    except MemoryError:
        return "", TOO_LITTLE_MEMORY
    return recognise_picture(picture, recognise)


def recognise_picture(picture: Any, recognise: Recognise) -> tuple[str, str]:
    """Return the lines of a picture (of Pillow), and the reason where there are none."""
    try:
        text = join_lines(recognise(picture))
    except MemoryError:
        return "", TOO_LITTLE_MEMORY
    except Exception as error:  # noqa: BLE001 - the runtime of the models has no class of its own
        # A failed allocation of the runtime is one of its errors: only its text says so.
        return "", f"recognising it failed ({type(error).__name__}); {TOO_LITTLE_MEMORY}"
    return text, "" if text else "no text was recognised in them"


def join_lines(texts: Sequence[RecognisedText]) -> str:
    """Return texts as lines from the top: those beside each other are one line."""
    lines: list[list[RecognisedText]] = []
    for text in sorted(texts, key=lambda one: one.top + one.height / 2):
        middle = text.top + text.height / 2
        last = lines[-1][0] if lines else None
        if last is not None and last.top <= middle <= last.top + last.height:
            lines[-1].append(text)
        else:
            lines.append([text])
    ordered = (sorted(line, key=lambda one: one.left) for line in lines)
    return "\n".join(" ".join(one.text for one in line) for line in ordered)


def has_time() -> bool:
    """Return whether the process that reads may take the processor for another page."""
    soft, _ = resource.getrlimit(resource.RLIMIT_CPU)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return soft == resource.RLIM_INFINITY or soft - used.ru_utime - used.ru_stime > _SECONDS_LEFT
