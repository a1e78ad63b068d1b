"""Lets a suspect entry run alone in its process, so that poison convicts no neighbour."""

import asyncio

SUSPECT_DELIVERIES = 2
"""An entry delivered this often or more may have killed the worker that had it before."""


class Isolation:
    """Many entries run side by side; one that must be alone waits for them and holds others."""

    def __init__(self) -> None:
        self._running = 0
        self._alone = asyncio.Lock()
        self._idle = asyncio.Event()
        self._idle.set()

    async def enter(self, deliveries: int) -> None:
        """Wait until it may run: alone when it was delivered before, else beside others."""
        if deliveries >= SUSPECT_DELIVERIES:
            await self._alone.acquire()
            await self._wait_until_idle()
        elif self._alone.locked():
            async with self._alone:
                self._enter()
        else:
            self._enter()

    def leave(self, deliveries: int) -> None:
        """Let others run; every `enter` that returned is left once."""
        if deliveries >= SUSPECT_DELIVERIES:
            self._alone.release()
        else:
            self._leave()

    async def _wait_until_idle(self) -> None:
        try:
            await self._idle.wait()
        except asyncio.CancelledError:
            self._alone.release()
            raise

    def _enter(self) -> None:
        self._running += 1
        self._idle.clear()

    def _leave(self) -> None:
        self._running -= 1
        if self._running == 0:
            self._idle.set()
