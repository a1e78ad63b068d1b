"""Follows many journals with one connection: one command reads all of them.

Of all followers in this process, one reads for all, and passes the reading on when it has its
entries. A blocking read for each follower would need a connection for each.
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
"""The pause between two reads."""
AT_ONCE = 500
"""How many journals one command reads."""


@dataclass(eq=False, slots=True)
class JournalFollower:
    """A task that waits for the entries after `after`; its `result` is None when it is to read."""

    shard: int
    journal: bytes
    after: str
    result: "asyncio.Future[Sequence[Entry] | None]"


class JournalTailer:
    """Reads journals for all followers in this process."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._followers: dict[JournalFollower, None] = {}
        self._looking = False

    async def entries(
        self, shard: int, journal: str, after: str, *, block_seconds: float
    ) -> Sequence[Entry]:
        """Return the entries after `after`, or none after `block_seconds`."""
        until = time.monotonic() + block_seconds
        result: asyncio.Future[Sequence[Entry] | None] = asyncio.get_running_loop().create_future()
        mine = JournalFollower(shard, journal.encode(), after, result)
        self._followers[mine] = None
        try:
            while time.monotonic() < until:
                if not self._looking:
                    await self._look()
                else:
                    await asyncio.wait([mine.result], timeout=until - time.monotonic())
                if mine.result.done():
                    found = mine.result.result()
                    if found is not None:
                        return found
                    mine.result = asyncio.get_running_loop().create_future()
            return ()
        finally:
            del self._followers[mine]
            self._pass_reading_on()

    async def _look(self) -> None:
        """Read once for all followers, after a short pause in which others may join."""
        self._looking = True
        try:
            await asyncio.sleep(LOOK_SECONDS)
            for followers in self._batches():
                await self._look_into(followers)
        finally:
            self._looking = False

    def _batches(self) -> list[list[JournalFollower]]:
        """Return the followers that one command can serve: slots of a cluster do not mix."""
        groups: dict[int, list[JournalFollower]] = {}
        for follower in self._followers:
            groups.setdefault(follower.shard if self._context.slots_apart else 0, []).append(
                follower
            )
        return [
            group[start : start + AT_ONCE]
            for group in groups.values()
            for start in range(0, len(group), AT_ONCE)
        ]

    async def _look_into(self, followers: Sequence[JournalFollower]) -> None:
        # If two follow one journal from different entries, the earlier entry counts for both.
        cursors: dict[bytes, str] = {}
        for follower in followers:
            before = cursors.setdefault(follower.journal, follower.after)
            if order(follower.after) < order(before):
                cursors[follower.journal] = follower.after
        client: Any = self._context.client
        with reachable():
            read = await client.execute_command("XREAD", "STREAMS", *cursors, *cursors.values())
        found = dict(pairs(read))
        for follower in followers:
            new = [
                entry
                for entry in found.get(follower.journal, ())
                if order(entry[0].decode()) > order(follower.after)
            ]
            if new and not follower.result.done():
                follower.result.set_result(new)

    def _pass_reading_on(self) -> None:
        if self._looking:
            return
        for follower in self._followers:
            if not follower.result.done():
                follower.result.set_result(None)
                return


def order(entry_id: str) -> tuple[int, int]:
    """Return the sort key of an entry id; `0` comes before all entries."""
    milliseconds, _, sequence = entry_id.partition("-")
    return int(milliseconds), int(sequence or 0)
