"""Gives the messages that ended to those who record them, once each until they are acknowledged."""

from collections.abc import Sequence
from typing import Any

from redis.exceptions import ResponseError

from broker.consume.group_reader import GroupReader
from broker.context import BrokerContext
from broker.entry_codec import Entry, fields_of
from broker.keys import question_keys, question_of, shard_keys
from broker.transport.connect import reachable
from broker.values import EndedMessage
from envelope.question import Question

RECORDS = "records"
TELEMETRY = "telemetry"
WEBHOOKS = "webhooks"
"""The consumer groups, each with one consumer of its name: any process continues its work."""


class EndedMessages:
    """Reads the notices of ended messages as the consumer group `group` of their streams.

    Redis keeps the last 100,000 notices of a shard, and journals for `RESULT_TTL_HOURS`.
    """

    def __init__(self, context: BrokerContext, group: str) -> None:
        self._context = context
        self._group = group
        self._reader = GroupReader(context, lambda _, shard: shard_keys(shard).notices, group)
        self._cursors: dict[bytes, str] = {}

    async def take(self, *, count: int, block_seconds: float) -> Sequence[EndedMessage]:
        """Return up to `count` messages of each shard; none after `block_seconds`.

        Returns again what was taken a lease ago and not acknowledged.
        """
        left = await self._read_abandoned(count)
        if left:
            return left
        read, _ = await self._reader.read(self._group, self._group, count, block_seconds)
        shards = self._reader.streams_of(self._group)
        return [_message(entry, shards[stream]) for stream, entries in read for entry in entries]

    async def acknowledge(self, messages: Sequence[EndedMessage]) -> None:
        """Note that these messages are done with."""
        with reachable():
            pipeline: Any = self._context.client.pipeline(transaction=False)
            for message in messages:
                pipeline.xack(shard_keys(message.shard).notices, self._group, message.entry_id)
            # A stream that has expired meanwhile has no group, and nothing to acknowledge.
            await pipeline.execute(raise_on_error=False)

    async def list_forgotten(self, messages: Sequence[EndedMessage]) -> Sequence[EndedMessage]:
        """Return those messages whose journal was erased, or has expired."""
        with reachable():
            pipeline: Any = self._context.client.pipeline(transaction=False)
            for message in messages:
                pipeline.exists(question_keys(message.question, message.shard).journal)
            found = await pipeline.execute()
        return [message for message, exists in zip(messages, found, strict=True) if not exists]

    async def announce(self, question: Question, event: str) -> None:
        """Give the message once more: its answer was `rated`, or its conversation `forgotten`."""
        shard, names = self._context.locate(question)
        with reachable():
            client: Any = self._context.client
            await client.xadd(shard_keys(shard).notices, {"q": names.name, "e": event})

    async def _read_abandoned(self, count: int) -> list[EndedMessage]:
        found: list[EndedMessage] = []
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
            found += [_message(entry, shard) for entry in entries if entry and entry[1]]
        return found


def _message(entry: Entry, shard: int) -> EndedMessage:
    fields = fields_of(entry[1])
    question = question_of(fields[b"q"].decode())
    return EndedMessage(entry[0].decode(), shard, question, fields.get(b"e", b"ended").decode())
