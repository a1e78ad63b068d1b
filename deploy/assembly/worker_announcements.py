"""Announces that a worker process lives, for as long as it does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import structlog

from memory.errors import MemoryUnavailableError

ANNOUNCE_SECONDS = 5.0
LEAVE_SECONDS = 2.0
"""So long a process that ends waits for Redis to hear of it; else its silence tells."""

log = structlog.get_logger("worker")


class Presence(Protocol):
    """Where one process is announced; raises `MemoryUnavailableError`."""

    async def announce(self) -> None:
        """Tell that the process lives."""
        ...

    async def leave(self) -> None:
        """Tell that the process ends."""
        ...


@asynccontextmanager
async def announcing(
    presence: Presence, *, every_seconds: float = ANNOUNCE_SECONDS
) -> AsyncIterator[None]:
    """Announce a process while inside, and that it ends; Redis being away hurts nobody."""
    try:
        async with asyncio.TaskGroup() as tasks:
            announcements = tasks.create_task(_announce(presence, every_seconds))
            try:
                yield
            finally:
                announcements.cancel()
    finally:
        await _leave(presence)


async def _announce(presence: Presence, every_seconds: float) -> None:
    while True:
        try:
            await presence.announce()
        except MemoryUnavailableError as error:
            # The workers tell of a Redis that is away; nobody else misses an announcement.
            log.debug("worker_heartbeat_failed", error=str(error))
        await asyncio.sleep(every_seconds)


async def _leave(presence: Presence) -> None:
    try:
        async with asyncio.timeout(LEAVE_SECONDS):
            await presence.leave()
    except (MemoryUnavailableError, TimeoutError) as error:
        log.debug("worker_heartbeat_failed", error=str(error))
