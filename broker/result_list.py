"""Delivers final replies to push channels, and ended messages to recorders.

Each reply is redelivered until it is marked as delivered, and each message until it is
acknowledged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis.exceptions import ResponseError

from broker.context import BrokerContext
from broker.entry_codec import Entry, fields_of, json_fields
from broker.group_reader import GroupReader
from broker.keys import GROUP, question_keys, question_of, results_key, shard_keys
from broker.transport.connect import reachable
from broker.transport.scripts import RECLAIM, RENEW, Argument
from broker.values import EndedMessage, Fields
from envelope.question import Question

NEVER_MS = 2**40
"""Idle consumers of a result list are never removed."""
RECORDS = "records"
TELEMETRY = "telemetry"
WEBHOOKS = "webhooks"
"""The consumer groups, each with one consumer of the same name, shared by all processes."""


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

    A reply is kept until `mark_delivered`, so that the user gets it at least once, even if the
    channel dies between sending and marking. `take` also takes over replies that another consumer
    has held for a lease without renewal.
    """

    def __init__(self, context: BrokerContext, name: str, consumer: str) -> None:
        self._context = context
        self._name = name
        self._consumer = consumer
        self._reader = GroupReader(context, results_key)
        self._cursors: dict[bytes, str] = {}

    async def take(self, *, slots: int, block_seconds: float) -> Sequence[Result]:
        """Return replies to deliver, at most `slots` from each shard, or an empty list after
        `block_seconds`.
        """
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
        """Renew the leases of replies that are being delivered; lost leases are skipped."""
        for shard in {result.shard for result in results}:
            args: list[Argument] = []
            for result in results:
                if result.shard == shard:
                    args += [1, result.entry_id, self._consumer, result.count, 0, ""]
            await self._context.run(RENEW, [results_key(self._name, shard)], args)

    async def mark_delivered(self, results: Sequence[Result]) -> None:
        """Remove delivered replies from the list; marking a reply twice is safe."""
        if not results:
            return
        with reachable():
            pipeline: Any = self._context.client.pipeline(transaction=False)
            for result in results:
                stream = results_key(self._name, result.shard)
                pipeline.xack(stream, GROUP, result.entry_id)
                pipeline.xdel(stream, result.entry_id)
            # An expired list has no group, and nothing to remove.
            await pipeline.execute(raise_on_error=False)

    async def _read_orphaned(self, slots: int) -> list[Result]:
        results: list[Result] = []
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
            results += (
                _result(entry, shard, count) for entry, count in zip(entries, counts, strict=True)
            )
        return results


class EndedMessages:
    """Reads the notices of ended messages as the consumer group `group` of their streams.

    Redis keeps the last 100,000 notices of each shard, and keeps journals for `RESULT_TTL_HOURS`.
    """

    def __init__(self, context: BrokerContext, group: str) -> None:
        self._context = context
        self._group = group
        self._reader = GroupReader(context, lambda _, shard: shard_keys(shard).notices, group)
        self._cursors: dict[bytes, str] = {}

    async def take(self, *, count: int, block_seconds: float) -> Sequence[EndedMessage]:
        """Return up to `count` messages from each shard, or an empty list after `block_seconds`.

        Messages that were taken a lease ago and not acknowledged are returned again.
        """
        left = await self._read_abandoned(count)
        if left:
            return left
        read, _ = await self._reader.read(self._group, self._group, count, block_seconds)
        shards = self._reader.streams_of(self._group)
        return [_message(entry, shards[stream]) for stream, entries in read for entry in entries]

    async def acknowledge(self, messages: Sequence[EndedMessage]) -> None:
        """Acknowledge messages that have been processed."""
        with reachable():
            pipeline: Any = self._context.client.pipeline(transaction=False)
            for message in messages:
                pipeline.xack(shard_keys(message.shard).notices, self._group, message.entry_id)
            # An expired stream has no group, and nothing to acknowledge.
            await pipeline.execute(raise_on_error=False)

    async def list_forgotten(self, messages: Sequence[EndedMessage]) -> Sequence[EndedMessage]:
        """Return the given messages whose journal was erased or has expired."""
        with reachable():
            pipeline: Any = self._context.client.pipeline(transaction=False)
            for message in messages:
                pipeline.exists(question_keys(message.question, message.shard).journal)
            existing = await pipeline.execute()
        return [message for message, exists in zip(messages, existing, strict=True) if not exists]

    async def announce(self, question: Question, event: str) -> None:
        """Publish the message again, because its answer was `rated` or its conversation
        `forgotten`.
        """
        shard, names = self._context.locate(question)
        with reachable():
            client: Any = self._context.client
            await client.xadd(shard_keys(shard).notices, {"q": names.name, "e": event})

    async def _read_abandoned(self, count: int) -> list[EndedMessage]:
        messages: list[EndedMessage] = []
        for stream, shard in self._reader.streams_of(self._group).items():
            try:
                with reachable():
                    client: Any = self._context.client
                    answer = await client.execute_command(
                        "XAUTOCLAIM", stream, self._group, self._group, self._context.lease_ms,
                        self._cursors.get(stream, "0-0"), "COUNT", count,
                    )  # fmt: skip
            except ResponseError as error:
                if not str(error).startswith("NOGROUP"):
                    raise
                continue  # nothing was taken yet; the next read creates the group
            following, entries = answer[:2]
            self._cursors[stream] = following.decode()
            # Redis 6.2 returns entries that were deleted without their fields.
            messages += [_message(entry, shard) for entry in entries if entry and entry[1]]
        return messages


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


def _message(entry: Entry, shard: int) -> EndedMessage:
    fields = fields_of(entry[1])
    question = question_of(fields[b"q"].decode())
    return EndedMessage(entry[0].decode(), shard, question, fields.get(b"e", b"ended").decode())
