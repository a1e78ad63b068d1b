"""Reads new entries of a role over all its streams, and makes groups that are gone again."""

import time
from collections.abc import Callable
from typing import Any

from redis.exceptions import ResponseError

from broker.connecting import LONGEST_BLOCK_SECONDS, reachable
from broker.keys import GROUP, stream_key
from broker.reading import Entry
from broker.space import Space

Read = list[tuple[bytes, list[Entry]]]
GONE = ("NOGROUP", "UNBLOCKED", "requires the key to exist")
"""What Redis says of a group, or of a stream under a blocked read, that was deleted."""
PATIENCE_SECONDS = 0.05
"""How long one wait lasts on a server that does not block in XREADGROUP."""


class Reader:
    """Reads as a consumer of the group; several shards are read at once.

    `key_of` gives the stream of a name (a role, or a result list) in a shard.
    """

    def __init__(self, space: Space, key_of: Callable[[str, int], str] = stream_key) -> None:
        self._space = space
        self._key_of = key_of
        self._streams: dict[str, dict[bytes, int]] = {}
        self._turn = 0

    def streams_of(self, role: str) -> dict[bytes, int]:
        """Return the streams of a role, with the shard of each."""
        if role not in self._streams:
            self._streams[role] = {
                self._key_of(role, shard).encode(): shard for shard in range(self._space.shards)
            }
        return self._streams[role]

    async def make_groups(self, role: str) -> None:
        """Make the streams and groups of a role; what is there stays as it is."""
        with reachable():
            for stream in self.streams_of(role):
                try:
                    await self._space.client.xgroup_create(stream, GROUP, id="0", mkstream=True)
                except ResponseError as error:
                    if not str(error).startswith("BUSYGROUP"):
                        raise

    async def read(
        self, role: str, consumer: str, places: int, block_seconds: float
    ) -> tuple[Read, float]:
        """Return what was read, and the server's clock in milliseconds."""
        block_seconds = min(block_seconds, LONGEST_BLOCK_SECONDS)
        until = time.monotonic() + block_seconds
        while True:
            left = until - time.monotonic()
            read, now_ms = await self._healing(role, consumer, places, left)
            if read or until - time.monotonic() <= 0:
                return read, now_ms
            await self._wait(role, min(until - time.monotonic(), PATIENCE_SECONDS))

    async def _healing(
        self, role: str, consumer: str, places: int, block_seconds: float
    ) -> tuple[Read, float]:
        try:
            return await self._read(role, consumer, places, block_seconds)
        except ResponseError as error:
            if not any(word in str(error) for word in GONE):
                raise
            await self.make_groups(role)
            return await self._read(role, consumer, places, 0.0)

    async def _read(
        self, role: str, consumer: str, places: int, block_seconds: float
    ) -> tuple[Read, float]:
        groups = self._groups(role)
        # COUNT is meant for each stream, not for all.
        count = max(1, places // self._space.shards)
        waits = block_seconds > 0 and len(groups) == 1
        block = ("BLOCK", max(1, int(block_seconds * 1000))) if waits else ()
        with reachable():
            pipeline = self._space.client.pipeline(transaction=False)
            for streams in groups:
                pipeline.execute_command(
                    "XREADGROUP", "GROUP", GROUP, consumer, "COUNT", count, *block,
                    "STREAMS", *streams, *(">" for _ in streams),
                )  # fmt: skip
            pipeline.time()
            *reads, (seconds, microseconds) = await pipeline.execute()
        found = [pair for read in reads for pair in pairs(read)]
        return found, seconds * 1000 + microseconds / 1000

    def _groups(self, role: str) -> list[list[bytes]]:
        """Return which streams are read by one command: all, or those of one slot."""
        streams = list(self.streams_of(role))
        self._turn += 1
        start = self._turn % len(streams)
        streams = streams[start:] + streams[:start]
        return [[stream] for stream in streams] if self._space.slots_apart else [streams]

    async def _wait(self, role: str, seconds: float) -> None:
        """Wait for a new entry where XREADGROUP does not: played in the process, or in slots."""
        streams = self._groups(role)[0]
        client: Any = self._space.client
        milliseconds = max(1, int(seconds * 1000))
        with reachable():
            await client.execute_command(
                "XREAD", "BLOCK", milliseconds, "STREAMS", *streams, *("$" for _ in streams)
            )


def pairs(read: Any) -> Read:
    """Return stream and entries, in whichever form the client gives them."""
    if not read:
        return []
    if isinstance(read, dict):
        return [(stream, batch[0]) for stream, batch in read.items()]
    return [(stream, entries) for stream, entries in read]
