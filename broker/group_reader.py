"""Reads new entries of a role from all its streams, and creates missing consumer groups.

A role is idle if its last read returned nothing. It then joins a shared read of the streams of all
idle roles of its consumer. The first role to arrive becomes the leader, which reads and distributes
the entries. A role that received entries reads alone again until a read returns nothing. A role
that becomes idle while a shared read is running reads alone until that read ends, and joins the
next one.

In a cluster, where no single command can read many streams, `next_entries` waits for all of them.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from redis.exceptions import ClusterCrossSlotError, ResponseError

from broker.context import BrokerContext
from broker.entry_codec import Entry
from broker.errors import BrokerUnavailableError
from broker.keys import GROUP, stream_key
from broker.transport.connect import LONGEST_BLOCK_SECONDS, reachable

AWAY_SECONDS = 1.0
"""How long to wait for the other streams while one is unreachable. Then the unreachable stream is
tried again.
"""

Read = list[tuple[bytes, list[Entry]]]
Clocks = dict[bytes, float]
"""The time of each stream's server, in milliseconds."""
GONE = ("NOGROUP", "UNBLOCKED", "requires the key to exist")
"""Substrings of the errors by which Redis reports a deleted group, or a stream that was deleted
during a read.
"""
PATIENCE_SECONDS = 1.0
"""How long to wait for an entry if XREADGROUP does not block. Then the groups are read again, which
recreates missing ones.
"""
GATHER_SECONDS = 0.005
"""How long the leader waits for the other roles, whose reads return at the same time."""
LATE_SECONDS = 0.25
"""How late an otherwise idle server may end a blocking read."""
TimedRead = tuple[Read, Clocks]


@dataclass(frozen=True, slots=True)
class GroupRead:
    """The result of one read: entries, server clock and last entry id of each stream."""

    entries: Read
    clocks: Clocks
    ends: dict[bytes, bytes]


class GroupReader:
    """Reads as a consumer of the group; several shards are read concurrently.

    `key_of` returns the stream for a name (a role or a result list) in a shard; `group` is the
    consumer group of these streams.
    """

    def __init__(
        self,
        context: BrokerContext,
        key_of: Callable[[str, int], str] = stream_key,
        group: str = GROUP,
    ) -> None:
        self._context = context
        self._key_of = key_of
        self._group = group
        self._streams: dict[str, dict[bytes, int]] = {}
        self._turn = 0
        self._blocks = True

    def streams_of(self, role: str) -> dict[bytes, int]:
        """Return the streams of a role, each with its shard."""
        if role not in self._streams:
            self._streams[role] = {
                self._key_of(role, shard).encode(): shard for shard in range(self._context.shards)
            }
        return self._streams[role]

    async def make_groups(self, role: str) -> None:
        """Create the streams and groups of a role; existing ones stay unchanged."""
        await self._context.on_shards(
            [self._make_group(stream) for stream in self.streams_of(role)]
        )

    async def read(
        self, role: str, consumer: str, slots: int, block_seconds: float
    ) -> tuple[Read, Clocks]:
        """Return new entries by stream, and the clock of each stream's server."""
        block_seconds = min(block_seconds, LONGEST_BLOCK_SECONDS)
        until = time.monotonic() + block_seconds
        while True:
            asked = until - time.monotonic()
            look = await self._read_shards(role, consumer, slots, asked)
            left = until - time.monotonic()
            if look.entries or left <= 0:
                return look.entries, look.clocks
            # XREADGROUP does not block on fakeredis or across slots.
            if self._blocks and not self._context.slots_apart and left > asked / 2:
                self._blocks = False
                continue
            seconds = left if self._blocks else min(left, PATIENCE_SECONDS)
            if len(look.clocks) < len(self.streams_of(role)):
                # A shard is unreachable; read it again soon.
                seconds = min(left, AWAY_SECONDS)
            after = {stream: look.ends.get(stream, b"$") for stream in look.clocks}
            await next_entries(self._context, after, seconds=seconds, count=1)

    async def first_of(
        self, roles: Sequence[str], consumer: str, block_seconds: float
    ) -> tuple[Read, Clocks]:
        """Return the first new entries for any of these roles, at most one from each stream."""
        streams = [stream for role in roles for stream in self.streams_of(role)]
        look = await self._read_or_create_groups(streams, consumer, 1, block_seconds)
        return look.entries, look.clocks

    async def _read_shards(
        self, role: str, consumer: str, slots: int, block_seconds: float
    ) -> GroupRead:
        groups = self._groups(role)
        # COUNT applies to each stream, not to all of them together.
        count = max(1, slots // self._context.shards)
        if len(groups) == 1:
            return await self._read_or_create_groups(groups[0], consumer, count, block_seconds)
        looks = [self._read_or_create_groups(streams, consumer, count, 0.0) for streams in groups]
        whole = GroupRead([], {}, {})
        for look in await self._context.on_shards(looks):
            if isinstance(look, GroupRead):
                whole.entries.extend(look.entries)
                whole.clocks.update(look.clocks)
                whole.ends.update(look.ends)
        return whole

    async def _read_or_create_groups(
        self, streams: Sequence[bytes], consumer: str, count: int, block_seconds: float
    ) -> GroupRead:
        try:
            return await self._read(streams, consumer, count, block_seconds)
        except ResponseError as error:
            if not any(word in str(error) for word in GONE):
                raise
            for stream in streams:
                await self._make_group(stream)
            return await self._read(streams, consumer, count, 0.0)

    async def _read(
        self, streams: Sequence[bytes], consumer: str, count: int, block_seconds: float
    ) -> GroupRead:
        block = ("BLOCK", max(1, int(block_seconds * 1000))) if block_seconds > 0 else ()
        apart = streams if self._context.slots_apart or not self._blocks else ()
        with reachable():
            pipeline = self._context.client.pipeline(transaction=False)
            for stream in apart:
                # Before the read, so that one of both sees an entry that arrives in between.
                pipeline.execute_command("XREVRANGE", stream, "+", "-", "COUNT", 1)
            pipeline.execute_command(
                "XREADGROUP", "GROUP", self._group, consumer, "COUNT", count, *block,
                "STREAMS", *streams, *(">" for _ in streams),
            )  # fmt: skip
            pipeline.time()
            *last, read, (seconds, microseconds) = await pipeline.execute()
        ends = {
            stream: entries[0][0] if entries else b"0-0"
            for stream, entries in zip(apart, last, strict=True)
        }
        now_ms = seconds * 1000 + microseconds / 1000
        return GroupRead(pairs(read), dict.fromkeys(streams, now_ms), ends)

    async def _make_group(self, stream: bytes) -> None:
        with reachable():
            try:
                await self._context.client.xgroup_create(stream, self._group, id="0", mkstream=True)
            except ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise

    def _groups(self, role: str) -> list[list[bytes]]:
        """Return the streams that one command can read: all streams or, in a cluster, the streams
        of one slot.
        """
        streams = list(self.streams_of(role))
        self._turn += 1
        start = self._turn % len(streams)
        streams = streams[start:] + streams[:start]
        return [[stream] for stream in streams] if self._context.slots_apart else [streams]


@dataclass(slots=True)
class _SharedRead:
    """The roles of a shared read; `until` (monotonic seconds) is set when the leader reads."""

    roles: dict[str, "asyncio.Future[TimedRead]"] = field(default_factory=dict)
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
        self._shared_reads: dict[str, _SharedRead] = {}
        self._shares = True

    async def read(self, role: str, consumer: str, slots: int, block_seconds: float) -> TimedRead:
        """Return new entries and clocks; a long read of an idle role is shared with other roles."""
        may_share = block_seconds >= self._long_seconds and self._shares
        if not may_share or self._context.slots_apart:
            return await self._reader.read(role, consumer, slots, block_seconds)
        if (role, consumer) in self._idle:
            read = await self._read_idle(role, consumer, slots)
        else:
            read = await self._reader.read(role, consumer, slots, block_seconds)
        if read[0]:
            self._idle.discard((role, consumer))
        else:
            self._idle.add((role, consumer))
        return read

    async def _read_idle(self, role: str, consumer: str, slots: int) -> TimedRead:
        shared = self._shared_reads.get(consumer)
        if shared is None:
            return await self._lead(role, consumer)
        if shared.until is None:
            mine: asyncio.Future[TimedRead] = asyncio.get_running_loop().create_future()
            shared.roles[role] = mine
            return await mine
        left = shared.until - time.monotonic()
        if left > 0:
            return await self._reader.read(role, consumer, slots, left)
        with suppress(TimeoutError):
            async with asyncio.timeout(LATE_SECONDS):
                await shared.over.wait()
        return [], {}

    async def _lead(self, role: str, consumer: str) -> TimedRead:
        shared = self._shared_reads[consumer] = _SharedRead()
        read: TimedRead = ([], {})
        error: Exception | None = None
        try:
            await asyncio.sleep(GATHER_SECONDS)
            read = await self._read_for(shared, [role, *shared.roles], consumer)
        except Exception as problem:
            error = problem
            raise
        finally:
            del self._shared_reads[consumer]
            shared.over.set()
            for waiting_role, waiting in shared.roles.items():
                if waiting.done():
                    continue  # cancelled: its entries are returned when its consumer leaves
                if error is None:
                    waiting.set_result(self._part(read, waiting_role))
                else:
                    waiting.set_exception(error)
        return self._part(read, role)

    async def _read_for(self, shared: _SharedRead, roles: list[str], consumer: str) -> TimedRead:
        began = time.monotonic()
        shared.until = began + self._long_seconds
        read = await self._reader.first_of(roles, consumer, self._long_seconds)
        if not read[0] and time.monotonic() - began < self._long_seconds / 2:
            self._shares = False  # fakeredis may not block
        return read

    def _part(self, read: TimedRead, role: str) -> TimedRead:
        streams = self._reader.streams_of(role)
        return [pair for pair in read[0] if pair[0] in streams], read[1]


async def next_entries(
    context: BrokerContext, after: Mapping[bytes, bytes], *, seconds: float, count: int
) -> Read:
    """Return the entries after these ids, by stream; wait up to `seconds` for the first entry.

    In a cluster each stream is awaited on a separate connection. As soon as one of them returns an
    entry, the other reads are cancelled.
    """
    if not context.slots_apart:
        try:
            return await _read(context, after, seconds, count)
        except ClusterCrossSlotError:
            # `prepare` detects a cluster; clients that skip it learn it here.
            context.slots_apart = True
    async with asyncio.TaskGroup() as tasks:
        waiting = {
            tasks.create_task(_read_or_error(context, {stream: entry_id}, seconds, count))
            for stream, entry_id in after.items()
        }
        try:
            first = await _first(waiting)
        finally:
            for task in waiting:
                task.cancel()
    # Raised outside the task group, which would wrap it in an exception group.
    if isinstance(first, BrokerUnavailableError):
        raise first
    return first


def pairs(read: Any) -> Read:
    """Return pairs of stream and entries from a client's response, which is a list or a
    dictionary.
    """
    if not read:
        return []
    if isinstance(read, dict):
        return [(stream, batch[0]) for stream, batch in read.items()]
    return [(stream, entries) for stream, entries in read]


async def _first(
    waiting: "set[asyncio.Task[Read | BrokerUnavailableError]]",
) -> Read | BrokerUnavailableError:
    """Return the first result that has entries; return an error only if every read failed."""
    errors: list[BrokerUnavailableError] = []
    pending, total = waiting, len(waiting)
    while pending:
        patience = AWAY_SECONDS if errors else None
        done, pending = await asyncio.wait(
            pending, timeout=patience, return_when=asyncio.FIRST_COMPLETED
        )
        if not done:
            return []
        entries: Read = []
        for task in done:
            read = task.result()
            if isinstance(read, BrokerUnavailableError):
                errors.append(read)
            else:
                entries += read
        if entries:
            return entries
    return errors[0] if len(errors) == total else []


async def _read_or_error(
    context: BrokerContext, after: Mapping[bytes, bytes], seconds: float, count: int
) -> Read | BrokerUnavailableError:
    try:
        return await _read(context, after, seconds, count)
    except BrokerUnavailableError as error:
        return error


async def _read(
    context: BrokerContext, after: Mapping[bytes, bytes], seconds: float, count: int
) -> Read:
    client: Any = context.client
    with reachable():
        read = await client.execute_command(
            "XREAD", "COUNT", count, "BLOCK", max(1, int(seconds * 1000)),
            "STREAMS", *after.keys(), *after.values(),
        )  # fmt: skip
    return pairs(read)
