"""Hands messages in, and keeps a queue in front of a desk that is full for callers who wait anyway.

What is full is a shard, or a tenant's share of it: for each of these there is a queue of its own in
this process. First come, first served, but for the few in front, who try again by turns.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from itertools import islice

from broker.port import Accepted, Duplicate
from gateway.desk import Desk, Message
from gateway.errors import BusyError, StoppingError

AT_ONCE = 16
"""A crowd that comes at once is handed in by so many connections, not by one each."""
FRONT = 16
"""So many of a queue try again by turns."""
LONGEST_STEP_SECONDS = 1.0
PASSES = frozenset({"overload", "shard_full", "tenant_share"})
"""What passes by itself soon; a full conversation does not."""

Tries = AsyncGenerator[Accepted | Duplicate | None, None]
"""What came of each; None: not yet."""


class Queue:
    """Those who wait, in their order; `busy` is what the last of them was told who tried."""

    def __init__(self, busy: BusyError, front: int) -> None:
        self.busy = busy
        self._front = front
        self._people: dict[asyncio.Future[None], None] = {}

    def __len__(self) -> int:
        return len(self._people)

    def join(self) -> asyncio.Future[None]:
        """Return what is done once this one is in front."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._people[mine] = None
        self._move_up()
        return mine

    def leave(self, mine: asyncio.Future[None]) -> None:
        """Let the next one come to the front."""
        del self._people[mine]
        self._move_up()

    def _move_up(self) -> None:
        for one in islice(self._people, self._front):
            if not one.done():
                one.set_result(None)


class Patience:
    """Tries again for `seconds` before a caller is sent away; `most` may wait so here."""

    def __init__(
        self,
        stopping: asyncio.Event,
        *,
        seconds: float = 20.0,
        most: int = 1_000,
        front: int = FRONT,
    ) -> None:
        self._stopping = stopping
        self._seconds = seconds
        self._most = most
        self._front = front
        self._queues: dict[tuple[str, int], Queue] = {}
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._random = random.SystemRandom()

    @property
    def waiting(self) -> int:
        """How many wait in all queues."""
        return sum(map(len, self._queues.values()))

    async def once(self, desk: Desk, message: Message) -> Accepted | Duplicate:
        """Hand a message in; raises `BusyError`, also to who comes behind others that wait.

        What was accepted before has its place already: it is told so at once.
        """
        queue = self._queues.get(desk.filling(message))
        if queue is not None and not await desk.knows(message):
            raise queue.busy
        return await self._handed_in(desk, message)

    async def submit(self, desk: Desk, message: Message) -> Accepted | Duplicate:
        """Hand a message in, if need be in several tries; raises what `tries` raises."""
        try:
            return await self.once(desk, message)
        except BusyError as busy:
            async with aclosing(self.tries(desk, message, busy)) as tries:
                async for result in tries:
                    if result is not None:
                        return result
            raise

    async def tries(
        self, desk: Desk, message: Message, busy: BusyError, *, longer: float = 1.0
    ) -> Tries:
        """Stand in queue for `longer` times as long as usual; yield None, and the result last.

        Raises `BusyError` when the desk stays full, `StoppingError` when this process stops.
        """
        if not self.may_wait(busy):
            raise busy
        until = time.monotonic() + self._seconds * longer
        with self._standing(desk, message, busy) as (queue, reached):
            while not reached.done():
                await asyncio.wait([reached], timeout=_step(until))
                self._check(queue.busy, until)
                yield None
            async for result in self._in_front(desk, message, queue, until):
                yield result

    def may_wait(self, busy: BusyError) -> bool:
        """Whether trying again soon may help, and there is room for one more who does."""
        return busy.reason in PASSES and self.waiting < self._most

    async def _in_front(self, desk: Desk, message: Message, queue: Queue, until: float) -> Tries:
        """Try at once: who stood here before may have gone because there is room again."""
        while True:
            self._check(queue.busy, until)
            try:
                result = await self._handed_in(desk, message)
            except BusyError as busy:
                self._check(busy, until)
                queue.busy = busy
            else:
                yield result
                return
            yield None
            step = min(queue.busy.retry_after_seconds, _step(until))
            await asyncio.sleep(step * self._random.uniform(0.3, 1.0))

    async def _handed_in(self, desk: Desk, message: Message) -> Accepted | Duplicate:
        async with self._turn:
            return await desk.submit(message)

    @contextmanager
    def _standing(
        self, desk: Desk, message: Message, busy: BusyError
    ) -> Iterator[tuple[Queue, asyncio.Future[None]]]:
        name = desk.filling(message)
        queue = self._queues.setdefault(name, Queue(busy, self._front))
        mine = queue.join()
        try:
            yield queue, mine
        finally:
            queue.leave(mine)
            if not queue:
                del self._queues[name]

    def _check(self, busy: BusyError, until: float) -> None:
        if time.monotonic() >= until or busy.reason not in PASSES:
            raise busy
        if self._stopping.is_set():
            raise StoppingError("this process stops: send the message again under the same id")


def _step(until: float) -> float:
    """Return how long to wait before looking again."""
    return max(0.0, min(LONGEST_STEP_SECONDS, until - time.monotonic()))
