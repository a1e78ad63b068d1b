"""Announces periodically that a worker process is alive."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import structlog

from memory.errors import MemoryUnavailableError

ANNOUNCE_SECONDS = 5.0
LEAVE_SECONDS = 2.0
"""How long a process that ends tries to remove its announcement, which expires otherwise."""

log = structlog.get_logger("worker")


class Presence(Protocol):
    """Stores the announcement of one process; its methods raise `MemoryUnavailableError`."""

    async def announce(self) -> None:
        """Announce that the process is alive."""
        ...

    async def leave(self) -> None:
        """Remove the announcement."""
        ...


@asynccontextmanager
async def announcing(
    presence: Presence, *, every_seconds: float = ANNOUNCE_SECONDS
) -> AsyncIterator[None]:
    """Announce a process inside the context, and remove it at the end.

    An unreachable Redis is logged and has no other effect.
    """
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
            # The workers already log that Redis is unreachable.
            log.debug("worker_heartbeat_failed", error=str(error))
        await asyncio.sleep(every_seconds)


async def _leave(presence: Presence) -> None:
    try:
        async with asyncio.timeout(LEAVE_SECONDS):
            await presence.leave()
    except (MemoryUnavailableError, TimeoutError) as error:
        log.debug("worker_heartbeat_failed", error=str(error))
