"""Takes entries, keeps and returns their leases, and takes over those of dead workers."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence

from broker.keys import stream_key
from broker.port import Bury, Delivery, Lost, Send, Settlement, Want
from broker.reading import Entry, Known, Malformed, delivery_of, taken_on_the_way
from broker.scripts import DISCARD, LEAVE, RECLAIM, RENEW, RETURN, Argument
from broker.settling import STARTS
from broker.space import Space
from broker.taking import Reader

SILENT_LEASES = 20
"""A consumer that owns nothing and was silent for so many leases is removed."""

Settle = Callable[[Sequence[tuple[Delivery, Settlement]]], Awaitable[Sequence[bool]]]
Tell = Callable[[Delivery, str], Send | None]


class Leases:
    """Who holds which entry; `settle` buries what was started too often."""

    def __init__(self, space: Space, settle: Settle, tell: Tell) -> None:
        self._space = space
        self._reader = Reader(space)
        self._settle = settle
        self._tell = tell
        self._cursors: dict[str, str] = {}

    async def make_groups(self, role: str) -> None:
        """Make the streams and groups of a role; what is there stays as it is."""
        self._space.roles[role] = None
        await self._reader.make_groups(role)

    async def take(
        self, role: str, consumer: str, *, places: int, block_seconds: float
    ) -> Sequence[Delivery]:
        """Read new entries; what is more than there are places goes back at once."""
        read, now_ms = await self._reader.read(role, consumer, places, block_seconds)
        shards = self._reader.streams_of(role)
        found = [
            delivery_of(
                entry,
                role=role,
                shard=shards[stream],
                consumer=consumer,
                count=1,
                now_ms=now_ms,
            )
            for stream, entries in read
            for entry in entries
        ]
        taken = await self._without_malformed(found)
        if len(taken) > places:
            await self.give_back(taken[places:])
        return taken[:places]

    async def taken(
        self,
        batch: Sequence[tuple[Delivery, Settlement]],
        wants: Sequence[Want],
        taken: Sequence[Sequence[Entry | Known]],
        now_ms: float,
    ) -> Sequence[Delivery]:
        """Return what the settlements of one shard took on their way."""
        found = [
            taken_on_the_way(entry, want=want, batch=batch, now_ms=now_ms)
            for want, entries in zip(wants, taken, strict=True)
            for entry in entries
        ]
        return await self._without_malformed(found)

    async def reclaim(self, role: str, consumer: str, *, places: int) -> Sequence[Delivery]:
        """Take over what lost its lease; bury what was started too often."""
        found: list[Delivery] = []
        for stream, shard in self._reader.streams_of(role).items():
            if len(found) < places:
                found += await self._reclaim(stream, shard, role, consumer, places - len(found))
        poison = [entry for entry in found if entry.count > STARTS]
        await self._settle([(entry, self._buried(entry)) for entry in poison])
        return [entry for entry in found if entry.count <= STARTS]

    async def renew(self, held: Sequence[Delivery]) -> Sequence[Lost]:
        """Renew what is still held."""
        lost: list[Lost] = []
        for group in _by_shard(held):
            keys, args = renewal(group)
            places = await self._space.run(RENEW, keys, args)
            lost += (lost_of(group[int(place)]) for place in places)
        return lost

    async def give_back(self, held: Sequence[Delivery]) -> None:
        """Return entries that were not started."""
        for group in _by_shard(held):
            keys, args = renewal(group)
            await self._space.run(RETURN, keys, [self._space.lease_ms, *args])

    async def leave(self, role: str, consumer: str) -> None:
        """Remove a consumer, handing back what it still owns."""
        for stream in self._reader.streams_of(role):
            await self._space.run(LEAVE, [stream.decode()], [consumer, self._space.lease_ms])

    async def _reclaim(
        self, stream: bytes, shard: int, role: str, consumer: str, places: int
    ) -> list[Delivery]:
        name = stream.decode()
        cursor = self._cursors.get(name, "0-0")
        following, entries, counts, now_ms = await self._space.run(
            RECLAIM,
            [name],
            [consumer, self._space.lease_ms, cursor, places, SILENT_LEASES * self._space.lease_ms],
        )
        self._cursors[name] = following.decode()
        found = [
            delivery_of(
                entry,
                role=role,
                shard=shard,
                consumer=consumer,
                count=count,
                now_ms=float(now_ms),
            )
            for entry, count in zip(entries, counts, strict=True)
        ]
        return await self._without_malformed(found)

    async def _without_malformed(self, found: Sequence[Delivery | Malformed]) -> list[Delivery]:
        for entry in found:
            if isinstance(entry, Malformed):
                await self._discard(entry)
        return [entry for entry in found if isinstance(entry, Delivery)]

    async def _discard(self, entry: Malformed) -> None:
        call = self._space.call(entry.shard, [entry.role])
        keys = list(call.keys)
        if entry.question is not None:
            _, names = self._space.place(entry.question)
            keys += names.closing
            keys += await self._space.result_lists(entry.shard, [names.record])
        args = [
            *call.args,
            entry.role,
            entry.entry_id,
            entry.consumer,
            entry.count,
            entry.name,
            entry.frame,
            entry.error,
        ]
        await self._space.run(DISCARD, keys, args)

    def _buried(self, entry: Delivery) -> Bury:
        error = f"its worker died or hung in each of {STARTS} starts"
        return Bury("poison", error, tell=self._tell(entry, error))


def renewal(held: Sequence[Delivery]) -> tuple[list[str], list[Argument]]:
    """Return keys and arguments for entries of one shard."""
    streams: dict[str, int] = {}
    args: list[Argument] = []
    for entry in held:
        stream = stream_key(entry.role, entry.shard)
        place = streams.setdefault(stream, len(streams) + 1)
        args += (place, entry.entry_id, entry.consumer, entry.count)
    return list(streams), args


def lost_of(entry: Delivery) -> Lost:
    """Return how the loss of an entry is told."""
    return Lost(entry.role, entry.shard, entry.entry_id, entry.count)


def _by_shard(held: Sequence[Delivery]) -> Sequence[Sequence[Delivery]]:
    groups: defaultdict[int, list[Delivery]] = defaultdict(list)
    for entry in held:
        groups[entry.shard].append(entry)
    return list(groups.values())
