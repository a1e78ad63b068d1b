"""Decodes entries into deliveries, renews their leases, and returns them to their streams.

Frame deltas are applied to their base frames, and malformed entries are buried.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

from broker.context import BrokerContext
from broker.entry_codec import (
    Entry,
    FrameDelta,
    Known,
    Malformed,
    Read,
    delivery_of,
    read_prefetched,
)
from broker.errors import BrokerUnavailableError
from broker.group_reader import GroupReader, IdleReader
from broker.keys import question_keys, stream_key
from broker.transport.connect import reachable
from broker.transport.scripts import DISCARD, LEAVE, RECOVER, RENEW, RETURN, Argument
from broker.values import ConsumerDemand, Delivery, LeaseLost, Settlement
from envelope.envelope import apply_delta

ON_THE_WAY_MS = 100
"""The response that contains an entry delivered within this time may not have arrived yet."""

LEFT_AT_ONCE = 200
"""Maximum number of entries that one call of `leave` returns, so that the call is short."""


class DeliveryLoader:
    """Completes and validates deliveries that other parts of the broker have read."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context

    async def select_workable(self, entries: Sequence[Read]) -> list[Delivery]:
        """Return the deliveries that a worker can process.

        Malformed entries are buried. Stale entries are deleted if their question has ended.
        """
        deltas = [entry for entry in entries if isinstance(entry, FrameDelta)]
        completed = iter(await self._complete_frames(deltas) if deltas else ())
        deliveries: list[Delivery] = []
        for entry in entries:
            read = next(completed) if isinstance(entry, FrameDelta) else entry
            if isinstance(read, Malformed):
                await self._discard(read)
            else:
                deliveries.append(read)
        return deliveries

    async def _complete_frames(self, parts: Sequence[FrameDelta]) -> list[Delivery | Malformed]:
        with reachable():
            pipeline = self._context.client.pipeline(transaction=False)
            for part in parts:
                _, names = self._context.locate(part.delivery.question)
                pipeline.hget(names.frames, part.base)
            bases: list[bytes | None] = await pipeline.execute()
        return [_complete(part, base) for part, base in zip(parts, bases, strict=True)]

    async def _discard(self, entry: Malformed) -> None:
        """Bury an undecodable entry at its first delivery."""
        call = self._context.call(entry.shard, [entry.role])
        keys = list(call.keys)
        if entry.question is not None:
            _, names = self._context.locate(entry.question)
            keys += names.closing
            keys += await self._context.result_lists(entry.shard, [names.record])
        args = [
            *call.args,
            entry.role,
            entry.entry_id,
            entry.consumer,
            entry.count,
            entry.name,
            entry.frame,
            entry.error,
            "1" if entry.stale else "",
        ]
        await self._context.run(DISCARD, keys, args)


class Leases:
    """Takes entries, renews and recovers their leases, and returns entries to their streams."""

    def __init__(self, context: BrokerContext, loader: DeliveryLoader) -> None:
        self._context = context
        self._loader = loader
        self._reader = GroupReader(context)
        self._reads = IdleReader(context, self._reader)

    async def make_groups(self, role: str) -> None:
        """Create the streams and groups of a role; existing ones stay unchanged."""
        self._context.roles[role] = None
        await self._reader.make_groups(role)

    async def take(
        self, role: str, consumer: str, *, slots: int, block_seconds: float
    ) -> Sequence[Delivery]:
        """Read up to `slots` new entries; surplus entries are returned to their streams."""
        read, clocks = await self._reads.read(role, consumer, slots, block_seconds)
        shards = self._reader.streams_of(role)
        deliveries = [
            delivery_of(
                entry,
                role=role,
                shard=shards[stream],
                consumer=consumer,
                count=1,
                now_ms=clocks[stream],
            )
            for stream, entries in read
            for entry in entries
        ]
        taken = await self._loader.select_workable(deliveries)
        if len(taken) > slots:
            await self.give_back(taken[slots:])
        return taken[:slots]

    async def add_prefetched(
        self,
        batch: Sequence[tuple[Delivery, Settlement]],
        wants: Sequence[ConsumerDemand],
        taken: Sequence[Sequence[Entry | Known]],
        now_ms: float,
    ) -> Sequence[Delivery]:
        """Return the deliveries that were taken together with the settlements of one shard."""
        deliveries = [
            read_prefetched(entry, want=want, batch=batch, now_ms=now_ms)
            for want, entries in zip(wants, taken, strict=True)
            for entry in entries
        ]
        return await self._loader.select_workable(deliveries)

    async def renew(self, held: Sequence[Delivery]) -> Sequence[LeaseLost]:
        """Renew the leases of these entries; return those that were lost."""
        groups = _by_shard(held)
        calls = [self._context.run(RENEW, *renewal(group)) for group in groups]
        return [
            describe_loss(group[int(index)])
            for group, slots in zip(groups, await self._context.on_shards(calls), strict=True)
            # Leases on an unreachable shard are renewed when it is back, unless they have expired.
            if not isinstance(slots, BrokerUnavailableError)
            for index in slots
        ]

    async def give_back(self, held: Sequence[Delivery]) -> None:
        """Return entries that were not started."""
        for group in _by_shard(held):
            keys, entries = list_held(group)
            args = [part for entry in entries for part in entry]
            await self._context.run(RETURN, keys, args)

    async def recover(self, role: str, consumer: str, known: Collection[tuple[int, str]]) -> bool:
        """Return entries that never reached their consumer to their streams; return False while
        some may still arrive.
        """
        calls = [
            self._context.run(
                RECOVER,
                [stream.decode()],
                [consumer, ON_THE_WAY_MS, *(entry for owner, entry in known if owner == shard)],
            )
            for stream, shard in self._reader.streams_of(role).items()
        ]
        return not any(await self._context.on_shards(calls))

    async def leave(self, role: str, consumer: str) -> None:
        """Remove a consumer, and return the entries that it still owns."""
        for stream in self._reader.streams_of(role):
            while await self._context.run(LEAVE, [stream.decode()], [consumer, LEFT_AT_ONCE]):
                pass


def list_held(held: Sequence[Delivery]) -> tuple[list[str], list[list[Argument]]]:
    """Return the streams, and a list [stream index, id, consumer, count] for each entry, of one
    shard.
    """
    streams: dict[str, int] = {}
    entries: list[list[Argument]] = []
    for entry in held:
        stream = stream_key(entry.role, entry.shard)
        index = streams.setdefault(stream, len(streams) + 1)
        entries.append([index, entry.entry_id, entry.consumer, entry.count])
    return list(streams), entries


def renewal(held: Sequence[Delivery]) -> tuple[list[str], list[Argument]]:
    """Return the keys and arguments of a renewal, for entries of one shard."""
    keys, entries = list_held(held)
    args: list[Argument] = []
    for entry, packed in zip(held, entries, strict=True):
        frames = 0
        if entry.branch:
            keys.append(question_keys(entry.question, entry.shard).frames)
            frames = len(keys)
        args += (*packed, frames, entry.branch)
    return keys, args


def describe_loss(entry: Delivery) -> LeaseLost:
    """Return the report that the lease of an entry was lost."""
    return LeaseLost(entry.role, entry.shard, entry.entry_id, entry.count)


def _complete(part: FrameDelta, base: bytes | None) -> Delivery | Malformed:
    """Apply a delta to its base frame. Without the base frame, the entry is stale."""
    delivery = part.delivery
    error = f"expected the frame {part.base!r} that it is based on, found none"
    try:
        if base is not None:
            return replace(delivery, frame=apply_delta(base, delivery.frame))
    except ValueError as problem:
        error = f"expected a part of a frame: {problem}"
    return Malformed(
        role=delivery.role,
        shard=delivery.shard,
        entry_id=delivery.entry_id,
        consumer=delivery.consumer,
        count=delivery.count,
        name=part.name,
        frame=delivery.frame,
        error=error,
        question=delivery.question,
        stale=base is None,
    )


def _by_shard(held: Sequence[Delivery]) -> Sequence[Sequence[Delivery]]:
    groups: defaultdict[int, list[Delivery]] = defaultdict(list)
    for entry in held:
        groups[entry.shard].append(entry)
    return list(groups.values())
