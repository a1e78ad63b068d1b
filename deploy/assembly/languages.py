"""Makes what tells languages; the detector's model is kept unpacked in the data folder."""

from collections.abc import Callable

from config.settings import Settings
from knowledge.language.detector import ScriptAndNgramDetector
from knowledge.language.port import Detector


def make_detector(settings: Settings) -> Detector:
    """Return the detector of this process; to unpack its model anew would take half a second."""
    return ScriptAndNgramDetector(kept_in=settings.refdesk_data / "language")


def language_of(settings: Settings, detector: Detector) -> Callable[[str], str]:
    """Return what tells the language of a text, or the default language where nothing tells."""
    return lambda text: detector.detect(text).language or settings.default_language
