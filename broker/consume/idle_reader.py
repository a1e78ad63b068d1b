"""Lets the idle roles of a process wait with one shared read instead of one read each.

A role is idle when its last read returned nothing. From then on it waits in a read over the streams
of all idle roles of its consumer. The first role to arrive leads: it reads, and distributes the
entries. A role that received entries reads alone again until it finds nothing. A role that becomes
idle while a shared read is running reads alone until that read ends, and joins the next one.
"""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field

from broker.consume.blocking_read import Read
from broker.consume.group_reader import Clocks, GroupReader
from broker.context import BrokerContext
from broker.transport.connect import LONGEST_BLOCK_SECONDS

GATHER_SECONDS = 0.005
"""How long the leader waits for the other roles, which return at the same time."""
LATE_SECONDS = 0.25
"""How much too late a server may end a blocked read when nothing else happens on it."""
Found = tuple[Read, Clocks]


@dataclass(slots=True)
class _SharedRead:
    """The roles that wait together; `until` (monotonic seconds) is set once the leader reads."""

    roles: dict[str, "asyncio.Future[Found]"] = field(default_factory=dict)
    until: float | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)


class IdleReader:
    """Reads like `GroupReader`, with fewer round trips while there is nothing to read.

    Only a read that may block for `long_seconds` is shared with other roles.
    """

    def __init__(
        self,
        context: BrokerContext,
        reader: GroupReader,
        *,
        long_seconds: float = LONGEST_BLOCK_SECONDS,
    ) -> None:
        self._context = context
        self._long_seconds = long_seconds
        self._reader = reader
        self._idle: set[tuple[str, str]] = set()
        self._circles: dict[str, _SharedRead] = {}
        self._shares = True

    async def read(self, role: str, consumer: str, slots: int, block_seconds: float) -> Found:
        """Return new entries and clocks; a long read of an idle role is shared with other roles."""
        may_share = block_seconds >= self._long_seconds and self._shares
        if not may_share or self._context.slots_apart:
            return await self._reader.read(role, consumer, slots, block_seconds)
        if (role, consumer) in self._idle:
            found = await self._read_idle(role, consumer, slots)
        else:
            found = await self._reader.read(role, consumer, slots, block_seconds)
        if found[0]:
            self._idle.discard((role, consumer))
        else:
            self._idle.add((role, consumer))
        return found

    async def _read_idle(self, role: str, consumer: str, slots: int) -> Found:
        circle = self._circles.get(consumer)
        if circle is None:
            return await self._lead(role, consumer)
        if circle.until is None:
            mine: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
            circle.roles[role] = mine
            return await mine
        left = circle.until - time.monotonic()
        if left > 0:
            return await self._reader.read(role, consumer, slots, left)
        with suppress(TimeoutError):
            async with asyncio.timeout(LATE_SECONDS):
                await circle.over.wait()
        return [], {}

    async def _lead(self, role: str, consumer: str) -> Found:
        circle = self._circles[consumer] = _SharedRead()
        found: Found = ([], {})
        error: Exception | None = None
        try:
            await asyncio.sleep(GATHER_SECONDS)
            found = await self._read_for(circle, [role, *circle.roles], consumer)
        except Exception as problem:
            error = problem
            raise
        finally:
            del self._circles[consumer]
            circle.over.set()
            for each, waiting in circle.roles.items():
                if waiting.done():
                    continue  # cancelled: its entries are returned when its consumer leaves
                if error is None:
                    waiting.set_result(self._part(found, each))
                else:
                    waiting.set_exception(error)
        return self._part(found, role)

    async def _read_for(self, circle: _SharedRead, roles: list[str], consumer: str) -> Found:
        began = time.monotonic()
        circle.until = began + self._long_seconds
        found = await self._reader.first_of(roles, consumer, self._long_seconds)
        if not found[0] and time.monotonic() - began < self._long_seconds / 2:
            self._shares = False  # fakeredis may not block
        return found

    def _part(self, found: Found, role: str) -> Found:
        streams = self._reader.streams_of(role)
        return [pair for pair in found[0] if pair[0] in streams], found[1]
