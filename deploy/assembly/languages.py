"""Creates the language detector, and reads the languages of the documents."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import structlog

from config.settings import Settings
from knowledge.errors import KnowledgeError
from knowledge.language.detector import ScriptAndNgramDetector
from knowledge.language.langdetect import FencedLangdetect, SecondOpinion
from knowledge.language.port import Detector
from knowledge.language.scripts import CANDIDATES

if TYPE_CHECKING:
    from deploy.assembly.knowledge import Knowledge
    from knowledge.index.port import Index

log = structlog.get_logger("knowledge")

FRESH_SECONDS = 60.0
"""How long the languages of the documents are used before they are read again."""


def make_detector(settings: Settings) -> Detector:
    """Return the detector of this process; the stored model saves half a second of unpacking."""
    first = ScriptAndNgramDetector(kept_in=settings.refdesk_data / "language")
    return SecondOpinion(first, FencedLangdetect(candidates=CANDIDATES))


def language_of(settings: Settings, detector: Detector) -> Callable[[str], str]:
    """Return a function that returns a text's language, or the default if it is unclear."""
    return lambda text: detector.detect(text).language or settings.default_language


MOST_COUNTS = 64
"""The most combinations of groups whose counts are kept."""


class CorpusLanguages:
    """Counts the documents of an assistant by language, at most once a minute.

    A process that has not opened the index opens the one on `QDRANT_URL` with the first question,
    and closes it with `stack`. Without that setting its languages are unknown.
    """

    def __init__(
        self,
        settings: Settings,
        knowledge: "Knowledge | None",
        stack: AsyncExitStack,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._index: Index | None = knowledge.index if knowledge is not None else None
        self._stack = stack
        self._clock = clock
        self._counts: dict[frozenset[str], Mapping[str, float]] = {}
        self._known: frozenset[str] = frozenset()
        self._revision: str | None = None
        self._due = float("-inf")
        self._reading = asyncio.Lock()

    async def read(self, groups: Collection[str] = ()) -> Mapping[str, float]:
        """Return the number of documents in each language that a person of these groups may read.

        It is empty where it is unknown. If the index does not answer, the last known numbers are
        used, and a warning is logged.
        """
        async with self._reading:
            is_due = self._clock() >= self._due
            if is_due:
                self._due = self._clock() + FRESH_SECONDS
            try:
                if is_due:
                    await self._refresh()
                return await self._count(self._known.intersection(groups))
            except KnowledgeError as error:
                log.warning("corpus_languages_not_read", error=str(error))
            return self._counts.get(self._known.intersection(groups), {})

    async def _refresh(self) -> None:
        if self._index is None and self._settings.qdrant_url is not None:
            from deploy.assembly.knowledge import make_embedder, open_index

            self._index = await open_index(self._settings, make_embedder(self._settings))
            self._stack.push_async_callback(self._index.close)
        if self._index is None:
            return
        revision = await self._index.revision()
        if revision != self._revision:
            self._known = await self._index.groups()
            self._counts = {}
            self._revision = revision

    async def _count(self, groups: frozenset[str]) -> Mapping[str, float]:
        if groups not in self._counts and self._index is not None:
            if len(self._counts) >= MOST_COUNTS:
                self._counts.clear()
            self._counts[groups] = await self._index.visible_to(groups).languages()
        return self._counts.get(groups, {})
