"""Gives push channels the final replies of their result list until they are delivered."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from broker.consume.group_reader import GroupReader
from broker.context import BrokerContext
from broker.entry_codec import Entry, fields_of, json_fields
from broker.keys import GROUP, question_of, results_key
from broker.transport.connect import reachable
from broker.transport.scripts import RECLAIM, RENEW, Argument
from broker.values import Fields
from envelope.question import Question

NEVER_MS = 2**40
"""Consumers of a result list are not removed when they are silent."""


@dataclass(frozen=True, slots=True)
class Result:
    """One final reply to deliver; `count` is the number of its deliveries, including this one."""

    entry_id: str
    shard: int
    question: Question
    outcome: str
    reply: Fields
    count: int


class ResultList:
    """Reads one result list as `consumer`; other consumers receive other replies.

    A reply stays until `mark_delivered`: the user gets it at least once, even when the channel dies
    between sending and marking. `take` also takes over replies that a silent consumer held for a
    lease.
    """

    def __init__(self, context: BrokerContext, name: str, consumer: str) -> None:
        self._context = context
        self._name = name
        self._consumer = consumer
        self._reader = GroupReader(context, results_key)
        self._cursors: dict[bytes, str] = {}

    async def take(self, *, slots: int, block_seconds: float) -> Sequence[Result]:
        """Return replies to deliver, at most `slots` of each shard; none after `block_seconds`."""
        left = await self._read_orphaned(slots)
        if left:
            return left
        read, _ = await self._reader.read(self._name, self._consumer, slots, block_seconds)
        streams = self._reader.streams_of(self._name)
        return [_result(entry, streams[stream], 1) for stream, entries in read for entry in entries]

    @property
    def renew_seconds(self) -> float:
        """How often to renew replies whose delivery takes long."""
        return self._context.lease_ms / 3000

    async def renew(self, results: Sequence[Result]) -> None:
        """Renew the leases of replies that are being delivered; a lost one stays lost."""
        for shard in {result.shard for result in results}:
            args: list[Argument] = []
            for result in results:
                if result.shard == shard:
                    args += [1, result.entry_id, self._consumer, result.count, 0, ""]
            await self._context.run(RENEW, [results_key(self._name, shard)], args)

    async def mark_delivered(self, results: Sequence[Result]) -> None:
        """Remove delivered replies from the list; to mark one twice is no error."""
        if not results:
            return
        with reachable():
            pipeline: Any = self._context.client.pipeline(transaction=False)
            for result in results:
                stream = results_key(self._name, result.shard)
                pipeline.xack(stream, GROUP, result.entry_id)
                pipeline.xdel(stream, result.entry_id)
            # A list that has expired meanwhile has no group, and nothing to remove.
            await pipeline.execute(raise_on_error=False)

    async def _read_orphaned(self, slots: int) -> list[Result]:
        found: list[Result] = []
        for stream, shard in self._reader.streams_of(self._name).items():
            following, entries, counts, _ = await self._context.run(
                RECLAIM,
                [stream.decode()],
                [
                    self._consumer,
                    self._context.lease_ms,
                    self._cursors.get(stream, "0-0"),
                    slots,
                    NEVER_MS,
                ],
            )
            self._cursors[stream] = following.decode()
            found += (
                _result(entry, shard, count) for entry, count in zip(entries, counts, strict=True)
            )
        return found


def _result(entry: Entry, shard: int, count: int) -> Result:
    fields = fields_of(entry[1])
    return Result(
        entry_id=entry[0].decode(),
        shard=shard,
        question=question_of(fields[b"q"].decode()),
        outcome=fields[b"o"].decode(),
        reply=json_fields(fields[b"j"]),
        count=count,
    )
