"""Follows many journals with one connection: one command looks into all of them.

However many follow in this process, one of them looks for all, and hands the looking on when it has
what it came for. A blocking read each would take a connection each.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from broker.consume.blocking_read import pairs
from broker.context import BrokerContext
from broker.entry_codec import Entry
from broker.transport.connect import reachable

LOOK_SECONDS = 0.02
"""How long looking waits between two looks."""
AT_ONCE = 500
"""How many journals one command looks into."""


@dataclass(eq=False, slots=True)
class JournalTailer:
    """Somebody who waits for what comes after an entry; told None when it is its turn to look."""

    shard: int
    journal: bytes
    after: str
    told: "asyncio.Future[Sequence[Entry] | None]"


class TailedJournal:
    """Who follows which journal here."""

    def __init__(self, space: BrokerContext) -> None:
        self._space = space
        self._followers: dict[JournalTailer, None] = {}
        self._looking = False

    async def entries(
        self, shard: int, journal: str, after: str, *, block_seconds: float
    ) -> Sequence[Entry]:
        """Return what comes after an entry, waiting up to `block_seconds` for it."""
        until = time.monotonic() + block_seconds
        told: asyncio.Future[Sequence[Entry] | None] = asyncio.get_running_loop().create_future()
        mine = JournalTailer(shard, journal.encode(), after, told)
        self._followers[mine] = None
        try:
            while time.monotonic() < until:
                if not self._looking:
                    await self._look()
                else:
                    await asyncio.wait([mine.told], timeout=until - time.monotonic())
                if mine.told.done():
                    found = mine.told.result()
                    if found is not None:
                        return found
                    mine.told = asyncio.get_running_loop().create_future()
            return ()
        finally:
            del self._followers[mine]
            self._hand_on()

    async def _look(self) -> None:
        """Look once for all, after a short while in which others come."""
        self._looking = True
        try:
            await asyncio.sleep(LOOK_SECONDS)
            for followers in self._batches():
                await self._look_into(followers)
        finally:
            self._looking = False

    def _batches(self) -> list[list[JournalTailer]]:
        """Return who can be looked for with one command: slots of a cluster do not mix."""
        groups: dict[int, list[JournalTailer]] = {}
        for follower in self._followers:
            groups.setdefault(follower.shard if self._space.slots_apart else 0, []).append(follower)
        return [
            group[start : start + AT_ONCE]
            for group in groups.values()
            for start in range(0, len(group), AT_ONCE)
        ]

    async def _look_into(self, followers: Sequence[JournalTailer]) -> None:
        # Two who follow one journal from different places: the farther back counts for both.
        places: dict[bytes, str] = {}
        for follower in followers:
            before = places.setdefault(follower.journal, follower.after)
            if order(follower.after) < order(before):
                places[follower.journal] = follower.after
        client: Any = self._space.client
        with reachable():
            read = await client.execute_command("XREAD", "STREAMS", *places, *places.values())
        found = dict(pairs(read))
        for follower in followers:
            new = [
                entry
                for entry in found.get(follower.journal, ())
                if order(entry[0].decode()) > order(follower.after)
            ]
            if new and not follower.told.done():
                follower.told.set_result(new)

    def _hand_on(self) -> None:
        if self._looking:
            return
        for follower in self._followers:
            if not follower.told.done():
                follower.told.set_result(None)
                return


def order(entry_id: str) -> tuple[int, int]:
    """Return what entries of a stream are ordered by; `0` is before all."""
    milliseconds, _, sequence = entry_id.partition("-")
    return int(milliseconds), int(sequence or 0)
