"""The order in which files that were uploaded to conversations are read."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.errors import BusyError
from gateway.http.admission_queue import Party, Room

READ_AT_ONCE = 2
"""The number of files that are read in parallel. Files of one key never use more than one of these
slots.
"""
MOST_WAITING = 32
RETRY_SECONDS = 5.0

_Keys = OrderedDict[str, deque[asyncio.Future[None]]]


class ReadingTurns:
    """The files being read and those waiting; `Room` limits the number per key and tenant."""

    def __init__(self, *, at_once: int = READ_AT_ONCE, most_waiting: int = MOST_WAITING) -> None:
        self._at_once = at_once
        self._room = Room(most=most_waiting, most_of_visitor=most_waiting)
        self._reading: set[tuple[str, str]] = set()
        self._waiting: OrderedDict[str, _Keys] = OrderedDict()

    @asynccontextmanager
    async def take(self, tenant: str, key: str) -> AsyncIterator[None]:
        """Wait for a turn, which lasts for the duration of the context; raises `BusyError`."""
        if not self._room.has_place(tenant, Party(key)):
            raise BusyError(
                "too many documents are waiting to be read: try again in a moment", RETRY_SECONDS
            )
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._room.place(tenant, Party(key)):
            keys = self._waiting.setdefault(tenant, OrderedDict())
            keys.setdefault(key, deque()).append(mine)
            self._begin_next()
            try:
                await mine
                yield
            finally:
                self._leave(tenant, key, mine)
                self._begin_next()

    def _begin_next(self) -> None:
        while len(self._reading) < self._at_once:
            next_turn = self._find_next()
            if next_turn is None:
                return
            tenant, key = next_turn
            first = self._waiting[tenant][key].popleft()
            if not first.cancelled():
                self._reading.add(next_turn)
                first.set_result(None)
            self._move_to_end(tenant, key)
            self._forget_empty(tenant, key)

    def _find_next(self) -> tuple[str, str] | None:
        waiting = ((tenant, key) for tenant, keys in self._waiting.items() for key in keys)
        return next((turn for turn in waiting if turn not in self._reading), None)

    def _leave(self, tenant: str, key: str, mine: asyncio.Future[None]) -> None:
        if mine.done() and not mine.cancelled():
            self._reading.discard((tenant, key))
            # Check again: further files may have arrived while this one was read.
            self._move_to_end(tenant, key)
            return
        # Cancelled: it waits still, unless its turn was passed on meanwhile.
        keys = self._waiting.get(tenant)
        if keys is not None and mine in keys.get(key, ()):
            keys[key].remove(mine)
            self._forget_empty(tenant, key)

    def _move_to_end(self, tenant: str, key: str) -> None:
        if tenant in self._waiting:
            self._waiting.move_to_end(tenant)
            if key in self._waiting[tenant]:
                self._waiting[tenant].move_to_end(key)

    def _forget_empty(self, tenant: str, key: str) -> None:
        keys = self._waiting[tenant]
        if not keys[key]:
            del keys[key]
        if not keys:
            del self._waiting[tenant]
