"""Creates the language detector."""

from collections.abc import Callable
from pathlib import Path

from knowledge.language.detector import ScriptAndNgramDetector
from knowledge.language.langdetect import FencedLangdetect, SecondOpinion
from knowledge.language.port import Detector
from knowledge.language.scripts import CANDIDATES


def make_detector(data_folder: Path) -> Detector:
    """Return the detector of this process; the stored model saves half a second of unpacking."""
    first = ScriptAndNgramDetector(kept_in=data_folder / "language")
    return SecondOpinion(first, FencedLangdetect(candidates=CANDIDATES))


def language_of(detector: Detector, default: str) -> Callable[[str], str]:
    """Return a function that returns a text's language, or the default if it is unclear."""
    return lambda text: detector.detect(text).language or default
