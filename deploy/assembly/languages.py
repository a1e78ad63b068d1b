"""Creates the language detector, and what reads the languages of the documents."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from config.settings import Settings
from knowledge.language.corpus_languages import CorpusLanguages
from knowledge.language.detector import ScriptAndNgramDetector
from knowledge.language.langdetect import FencedLangdetect, SecondOpinion
from knowledge.language.port import Detector
from knowledge.language.scripts import CANDIDATES

if TYPE_CHECKING:
    from knowledge.index.port import Index
    from knowledge.open_index import OpenIndex


def make_detector(settings: Settings) -> Detector:
    """Return the detector of this process; the stored model saves half a second of unpacking."""
    first = ScriptAndNgramDetector(kept_in=settings.refdesk_data / "language")
    return SecondOpinion(first, FencedLangdetect(candidates=CANDIDATES))


def language_of(settings: Settings, detector: Detector) -> Callable[[str], str]:
    """Return a function that returns a text's language, or the default if it is unclear."""
    return lambda text: detector.detect(text).language or settings.default_language


def read_corpus_languages(
    settings: Settings, knowledge: "OpenIndex | None", stack: AsyncExitStack
) -> CorpusLanguages:
    """Return what counts the documents of an assistant by language.

    A process that has not opened the index opens the one on `QDRANT_URL`, and closes it with
    `stack`.
    """

    async def open_on_server() -> "Index":
        from deploy.assembly.knowledge import make_embedder, open_index

        index = await open_index(settings, make_embedder(settings))
        stack.push_async_callback(index.close)
        return index

    return CorpusLanguages(
        None if knowledge is None else knowledge.index,
        None if settings.qdrant_url is None else open_on_server,
    )
