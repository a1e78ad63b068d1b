"""Hands messages in, and waits in front of a desk that is full for callers who wait anyway."""

import asyncio
import random
import time
from collections.abc import AsyncIterator

from broker.port import Accepted, Duplicate
from gateway.desk import Desk, Message
from gateway.errors import BusyError, StoppingError

AT_ONCE = 16
"""A crowd that comes at once is handed in by so many connections, not by one each."""
LONGEST_STEP_SECONDS = 1.0
PASSES = frozenset({"overload", "shard_full", "tenant_share"})
"""What passes by itself soon; a full conversation does not."""


class Patience:
    """Tries again for `seconds` before a caller is sent away; `most` may wait so here."""

    def __init__(
        self, stopping: asyncio.Event, *, seconds: float = 20.0, most: int = 1_000
    ) -> None:
        self._stopping = stopping
        self._seconds = seconds
        self._most = most
        self._waiting = 0
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._random = random.SystemRandom()

    async def once(self, desk: Desk, message: Message) -> Accepted | Duplicate:
        """Hand a message in; raises `BusyError`."""
        async with self._turn:
            return await desk.submit(message)

    async def submit(self, desk: Desk, message: Message) -> Accepted | Duplicate:
        """Hand a message in, if need be in several tries; raises what `tries` raises."""
        try:
            return await self.once(desk, message)
        except BusyError as busy:
            async for result in self.tries(desk, message, busy):
                if result is not None:
                    return result
            raise

    async def tries(
        self, desk: Desk, message: Message, busy: BusyError, *, longer: float = 1.0
    ) -> AsyncIterator[Accepted | Duplicate | None]:
        """Try again and again, `longer` times as long as usual; yield None, and the result last.

        Raises `BusyError` when the desk stays full, `StoppingError` when this process stops.
        """
        until = time.monotonic() + self._seconds * longer
        while True:
            await self._wait(busy, until)
            try:
                result = await self.once(desk, message)
            except BusyError as error:
                busy = error
                yield None
                continue
            yield result
            return

    def may_wait(self, busy: BusyError) -> bool:
        """Whether trying again soon may help, and there is room for one more who does."""
        return busy.reason in PASSES and self._waiting < self._most

    async def _wait(self, busy: BusyError, until: float) -> None:
        left = until - time.monotonic()
        if left <= 0 or not self.may_wait(busy):
            raise busy
        if self._stopping.is_set():
            raise StoppingError("this process stops: send the message again under the same id")
        self._waiting += 1
        try:
            step = min(busy.retry_after_seconds, LONGEST_STEP_SECONDS, left)
            await asyncio.sleep(step * self._random.uniform(0.3, 1.0))
        finally:
            self._waiting -= 1
