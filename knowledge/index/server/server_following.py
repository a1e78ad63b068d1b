"""Switches running processes to a different index on a Qdrant server, without a restart."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Generic, TypeVar

import structlog

from knowledge.index.server.server_collections import ServerCollections

CHECK_SECONDS = 2.0
"""How long a process may continue to use an index that was replaced."""
log = structlog.get_logger("knowledge")

Opened = TypeVar("Opened")


class ServerFollower(Generic[Opened]):
    """Checks at most once every `CHECK_SECONDS` which collection is in use.

    `serving` is the collection that was in use when the index was opened, and `open_serving` opens
    the current one. Searches that run during a replacement finish in the earlier collection, which
    exists until the next replacement.
    """

    def __init__(
        self,
        collections: ServerCollections,
        serving: str,
        open_serving: Callable[[], Awaitable[Opened]],
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._collections = collections
        self._serving = serving
        self._open_serving = open_serving
        self._clock = clock
        self._due = clock() + CHECK_SECONDS
        self._following = asyncio.Lock()

    async def follow(self, adopt: Callable[[Opened], None]) -> None:
        """Pass the index that is now serving to `adopt`, if it has changed; raises
        `KnowledgeError`.
        """
        if self._clock() < self._due:
            return
        async with self._following:
            if self._clock() < self._due:
                return
            serving = await self._collections.find_serving()
            if serving != self._serving:
                adopt(await self._open_serving())
                self._serving = serving
                log.info("index_replaced", collection=serving)
            self._due = self._clock() + CHECK_SECONDS
