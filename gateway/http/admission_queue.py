"""Submits messages, and queues those of callers who wait while the desk is full.

A shard can be full, or a tenant's share of it: for each of these this process has a separate queue.
Keys and visitors reach its front by turns, and the messages of each in their order; the few at the
front try again. No caller can fill the queues alone.
"""

import asyncio
import random
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass

from broker.values import Accepted, Duplicate
from gateway.desk import Desk, Message
from gateway.errors import BusyError, StoppingError

AT_ONCE = 16
"""Concurrent submissions of a process; further ones wait for a connection."""
FRONT = 16
"""How many of a queue try again by turns."""
MOST_OF_VISITOR = 20
"""How many messages of one visitor may wait."""
LONGEST_STEP_SECONDS = 1.0
PASSES = frozenset({"overload", "shard_full", "tenant_share"})
"""Reasons that pass soon without the caller's help; a full conversation does not."""

Tries = AsyncGenerator[Accepted | Duplicate | None, None]
"""The results of the tries; None: not accepted yet."""


@dataclass(frozen=True, slots=True)
class Party:
    """The owner of a waiting message: the key, and with a public key also the visitor."""

    key: str = ""
    visitor: str = ""


ANYBODY = Party()


class WaitingLine:
    """The waiting messages, in order for each party; `busy` is the last rejection."""

    def __init__(self, busy: BusyError, front: int) -> None:
        self.busy = busy
        self._front = front
        self._in_front: set[asyncio.Future[None]] = set()
        self._behind: OrderedDict[Party, dict[asyncio.Future[None], None]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._in_front or self._behind)

    def join(self, party: Party) -> asyncio.Future[None]:
        """Return a future that is done once this message is at the front."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._behind.setdefault(party, {})[mine] = None
        self._move_up()
        return mine

    def leave(self, party: Party, mine: asyncio.Future[None]) -> None:
        """Let the next message move to the front."""
        self._in_front.discard(mine)
        theirs = self._behind.get(party, {})
        theirs.pop(mine, None)
        if not theirs:
            self._behind.pop(party, None)
        self._move_up()

    def _move_up(self) -> None:
        """Move parties to the front by turns, so that many messages of one delay no other."""
        while self._behind and len(self._in_front) < self._front:
            party, theirs = self._behind.popitem(last=False)
            first = next(iter(theirs))
            del theirs[first]
            if theirs:
                self._behind[party] = theirs
            self._in_front.add(first)
            first.set_result(None)


class Room:
    """Counts waiting messages, and reserves room for other callers.

    A tenant may have as much waiting as there is room left for all others, and one of its keys as
    much as is left to its tenant (a dynamic threshold: the fuller the room, the less for each). So
    no caller fills it alone, and a new caller always finds room.
    """

    def __init__(self, *, most: int, most_of_visitor: int) -> None:
        self._most = most
        self._most_of_visitor = most_of_visitor
        self._held: Counter[tuple[str, ...]] = Counter()

    @property
    def held(self) -> int:
        """The number of waiting messages."""
        return self._held[()]

    def has_place(self, tenant: str, party: Party) -> bool:
        """Return whether one more message of this party may wait."""
        free = self._most - self._held[()]
        of_tenant = self._held[tenant,]
        left = free - of_tenant
        of_key = self._held[tenant, party.key]
        of_visitor = self._held[tenant, party.key, party.visitor]
        crowded = bool(party.visitor) and of_visitor >= self._most_of_visitor
        return free > 0 and left > 0 and of_key <= left and not crowded

    @contextmanager
    def place(self, tenant: str, party: Party) -> Iterator[None]:
        """Reserve a place inside the context."""
        whole = (tenant, party.key, party.visitor)
        names = [whole[:length] for length in range(len(whole) + 1)]
        self._held.update(names)
        try:
            yield
        finally:
            self._held.subtract(names)
            for name in names:
                if not self._held[name]:
                    del self._held[name]


class AdmissionQueue:
    """Repeats a submission for `seconds` before it is rejected; at most `most` messages wait."""

    def __init__(
        self,
        stopping: asyncio.Event,
        *,
        seconds: float = 20.0,
        most: int = 1_000,
        most_of_visitor: int = MOST_OF_VISITOR,
        front: int = FRONT,
    ) -> None:
        self._stopping = stopping
        self._seconds = seconds
        self._room = Room(most=most, most_of_visitor=most_of_visitor)
        self._front = front
        self._queues: dict[tuple[str, int], WaitingLine] = {}
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._random = random.SystemRandom()

    @property
    def waiting(self) -> int:
        """The number of waiting messages in all queues."""
        return self._room.held

    async def once(self, desk: Desk, message: Message) -> Accepted | Duplicate:
        """Submit a message once; raises `BusyError`, also if other messages wait before it.

        A message that was accepted before returns its earlier result at once.
        """
        queue = self._queues.get(desk.filling(message)) if self._queues else None
        if queue is not None and not await desk.knows(message):
            raise queue.busy
        return await self._submit_in_turn(desk, message)

    async def submit(
        self, desk: Desk, message: Message, party: Party = ANYBODY
    ) -> Accepted | Duplicate:
        """Submit a message, with several tries if necessary; raises like `tries`."""
        try:
            return await self.once(desk, message)
        except BusyError as busy:
            async with aclosing(self.tries(desk, message, busy, party)) as tries:
                async for result in tries:
                    if result is not None:
                        return result
            raise

    async def tries(
        self,
        desk: Desk,
        message: Message,
        busy: BusyError,
        party: Party = ANYBODY,
        *,
        longer: float = 1.0,
    ) -> Tries:
        """Repeat a submission for `longer` times the usual time; yield None, and the result last.

        Raises `BusyError` when the desk stays full, `StoppingError` when this process stops.
        """
        if not self.may_wait(desk, message, busy, party):
            raise busy
        until = time.monotonic() + self._seconds * longer
        with self._standing(desk, message, busy, party) as (queue, reached):
            while not reached.done():
                await asyncio.wait([reached], timeout=_step(until))
                self._check(queue.busy, until)
                yield None
            async for result in self._in_front(desk, message, queue, until):
                yield result

    def may_wait(
        self, desk: Desk, message: Message, busy: BusyError, party: Party = ANYBODY
    ) -> bool:
        """Return whether another try may soon succeed, and there is room for one more waiting
        message.
        """
        tenant, _ = desk.filling(message)
        return busy.reason in PASSES and self._room.has_place(tenant, party)

    async def _in_front(
        self, desk: Desk, message: Message, queue: WaitingLine, until: float
    ) -> Tries:
        """Try at once: an earlier message may have left because the desk has room again."""
        while True:
            self._check(queue.busy, until)
            try:
                result = await self._submit_in_turn(desk, message)
            except BusyError as busy:
                self._check(busy, until)
                queue.busy = busy
            else:
                yield result
                return
            yield None
            step = min(queue.busy.retry_after_seconds, _step(until))
            await asyncio.sleep(step * self._random.uniform(0.3, 1.0))

    async def _submit_in_turn(self, desk: Desk, message: Message) -> Accepted | Duplicate:
        async with self._turn:
            return await desk.submit(message)

    @contextmanager
    def _standing(
        self, desk: Desk, message: Message, busy: BusyError, party: Party
    ) -> Iterator[tuple[WaitingLine, asyncio.Future[None]]]:
        name = desk.filling(message)
        queue = self._queues.setdefault(name, WaitingLine(busy, self._front))
        with self._room.place(name[0], party):
            mine = queue.join(party)
            try:
                yield queue, mine
            finally:
                queue.leave(party, mine)
                if not queue:
                    del self._queues[name]

    def _check(self, busy: BusyError, until: float) -> None:
        if time.monotonic() >= until or busy.reason not in PASSES:
            raise busy
        if self._stopping.is_set():
            raise StoppingError("this process is stopping: send the message again with the same id")


def _step(until: float) -> float:
    """Return the seconds until the next look."""
    return max(0.0, min(LONGEST_STEP_SECONDS, until - time.monotonic()))
