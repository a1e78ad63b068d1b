"""Turns entries into deliveries: completes deltas of frames, and buries malformed entries."""

from collections.abc import Sequence
from dataclasses import replace

from broker.context import BrokerContext
from broker.entry_codec import FrameDelta, Malformed, Read
from broker.transport.connect import reachable
from broker.transport.scripts import DISCARD
from broker.values import Delivery
from envelope.envelope import apply_delta


class DeliveryLoader:
    """Loads the deliveries of all readers: of streams, settlements, submissions and rescues."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context

    async def select_workable(self, found: Sequence[Read]) -> list[Delivery]:
        """Return the deliveries that a worker can process.

        Malformed entries are buried. Stale ones are deleted if their question has ended.
        """
        parts = [entry for entry in found if isinstance(entry, FrameDelta)]
        whole = iter(await self._complete_frames(parts) if parts else ())
        opened: list[Delivery] = []
        for entry in found:
            read = next(whole) if isinstance(entry, FrameDelta) else entry
            if isinstance(read, Malformed):
                await self._discard(read)
            else:
                opened.append(read)
        return opened

    async def _complete_frames(self, parts: Sequence[FrameDelta]) -> list[Delivery | Malformed]:
        with reachable():
            pipeline = self._context.client.pipeline(transaction=False)
            for part in parts:
                _, names = self._context.locate(part.delivery.question)
                pipeline.hget(names.frames, part.base)
            bases: list[bytes | None] = await pipeline.execute()
        return [_complete(part, base) for part, base in zip(parts, bases, strict=True)]

    async def _discard(self, entry: Malformed) -> None:
        """Bury an entry that is not a frame of Refdesk, at its first delivery."""
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


def _complete(part: FrameDelta, base: bytes | None) -> Delivery | Malformed:
    """Apply a delta to its base frame; without the base the entry is stale."""
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
