"""Counts the documents of an assistant by language."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING

import structlog

from knowledge.errors import KnowledgeError

if TYPE_CHECKING:
    # It imports numpy, which a light worker does without.
    from knowledge.index.port import Index

log = structlog.get_logger("knowledge")

FRESH_SECONDS = 60.0
"""How long the languages of the documents are used before they are read again."""
MOST_COUNTS = 64
"""Maximum number of combinations of groups whose counts are cached."""
MOST_TRANSLATIONS = 3
"""Maximum number of document languages into which a question is translated."""
LEAST_SHARE = 0.02
"""Minimum share of the documents that must be in a language for a question to be translated into
it. Single pages are often assigned a wrong language, and people wait for every word of a
translation.
"""

ReadLanguages = Callable[[tuple[str, ...]], Awaitable[Mapping[str, float]]]
"""Returns the number of documents in each language that a person in these groups may read, or an
empty mapping if it is unknown.
"""


class CorpusLanguages:
    """Counts the documents of an assistant by language, at most once a minute.

    A process that has not opened the index reads the counts published by another one; see
    `count_by_group`.
    """

    def __init__(self, index: "Index", *, clock: Callable[[], float] = time.monotonic) -> None:
        self._index = index
        self._clock = clock
        self._counts: dict[frozenset[str], Mapping[str, float]] = {}
        self._known: frozenset[str] = frozenset()
        self._revision: str | None = None
        self._due = float("-inf")
        self._reading = asyncio.Lock()

    async def read(self, groups: Collection[str] = ()) -> Mapping[str, float]:
        """Return the number of documents in each language that a person in these groups may read.

        The result is empty if it is unknown. If the index does not respond, the last known numbers
        are used, and a warning is logged.
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

    async def count_by_group(self) -> Mapping[str, Mapping[str, float]]:
        """Return the counts for everybody, under an empty name, and for each group.

        If there are more than `MOST_COUNTS` groups, the rest are omitted. Raises `KnowledgeError`.
        """
        groups = sorted(await self._index.groups())[: MOST_COUNTS - 1]
        by_group = {group: await self._read(frozenset((group,))) for group in groups}
        return {"": await self._read(frozenset()), **by_group}

    async def _refresh(self) -> None:
        revision = await self._index.revision()
        if revision != self._revision:
            self._known = await self._index.groups()
            self._counts = {}
            self._revision = revision

    async def _count(self, groups: frozenset[str]) -> Mapping[str, float]:
        if groups not in self._counts:
            if len(self._counts) >= MOST_COUNTS:
                self._counts.clear()
            self._counts[groups] = await self._read(groups)
        return self._counts[groups]

    async def _read(self, groups: frozenset[str]) -> Mapping[str, float]:
        return await self._index.visible_to(groups).languages()


def choose_foreign(counts: Mapping[str, float], language: str) -> tuple[str, ...]:
    """Return the languages of documents, other than that of the question, in which a translation of
    the question is searched for. `counts` contains the number of documents in each language.
    """
    least = LEAST_SHARE * sum(counts.values())
    foreign = [count for count in counts if count != language and counts[count] >= least]
    return tuple(sorted(foreign, key=lambda item: (-counts[item], item))[:MOST_TRANSLATIONS])
