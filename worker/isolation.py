"""Lets a suspect entry run alone in its process, so that poison convicts no neighbour."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

SUSPECT_DELIVERIES = 2
"""An entry delivered this often or more may have killed the worker that had it before."""


class Isolation:
    """Many entries run side by side; one that must be alone waits for them and holds others."""

    def __init__(self) -> None:
        self._running = 0
        self._alone = asyncio.Lock()
        self._idle = asyncio.Event()
        self._idle.set()

    @asynccontextmanager
    async def entered(self, deliveries: int) -> AsyncIterator[None]:
        """Run inside: alone when the entry was delivered before, else beside others."""
        if deliveries >= SUSPECT_DELIVERIES:
            async with self._alone:
                await self._idle.wait()
                yield
            return
        if self._alone.locked():
            async with self._alone:
                self._enter()
        else:
            self._enter()
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> None:
        self._running += 1
        self._idle.clear()

    def _leave(self) -> None:
        self._running -= 1
        if self._running == 0:
            self._idle.set()
