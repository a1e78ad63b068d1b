"""Reads the messages of a conversation and their replies from the journals of the messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.entry_codec import journal_entries_of
from broker.keys import question_keys, question_of, shard_for
from broker.transport.connect import reachable
from broker.values import JournalEntry
from envelope.question import Question

if TYPE_CHECKING:
    from redis.asyncio import Redis


@dataclass(frozen=True, slots=True)
class RecentMessage:
    """One message whose journal is still kept: its first event and its latest one."""

    question: Question
    first: JournalEntry
    last: JournalEntry


class Transcripts:
    """Reads the journals of whole conversations."""

    def __init__(self, client: "Redis", *, shards: int) -> None:
        self._client = client
        self._shards = shards

    async def of(self, question: Question, *, limit: int) -> Sequence[RecentMessage]:
        """Return the last `limit` messages of the question's conversation, oldest first.

        Takes two round trips for any number of messages. Forgotten messages are left out.
        """
        shard = shard_for(question, self._shards)
        messages = question_keys(question, shard).messages
        with reachable():
            client: Any = self._client
            names: list[bytes] = await client.zrange(messages, -limit, -1)
            questions = [question_of(name.decode()) for name in names]
            pipeline = client.pipeline(transaction=False)
            for one in questions:
                journal = question_keys(one, shard).journal
                pipeline.execute_command("XRANGE", journal, "-", "+", "COUNT", 1)
                pipeline.execute_command("XREVRANGE", journal, "+", "-", "COUNT", 1)
            ends = await pipeline.execute()
        return [
            RecentMessage(one, journal_entries_of(first)[0], journal_entries_of(last)[-1])
            for one, first, last in zip(questions, ends[::2], ends[1::2], strict=True)
            if first and last
        ]
