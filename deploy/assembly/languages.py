"""Creates the language detector, whose unpacked model is stored in the data folder."""

from collections.abc import Callable

from config.settings import Settings
from knowledge.language.detector import ScriptAndNgramDetector
from knowledge.language.port import Detector


def make_detector(settings: Settings) -> Detector:
    """Return the detector of this process; the stored model saves half a second of unpacking."""
    return ScriptAndNgramDetector(kept_in=settings.refdesk_data / "language")


def language_of(settings: Settings, detector: Detector) -> Callable[[str], str]:
    """Return a function that returns a text's language, or the default if it is unclear."""
    return lambda text: detector.detect(text).language or settings.default_language
