"""Reads the journals of questions, and the replies in them, without changing anything.

One follower reads for all followers in this process. Once it has received its own entries, another
follower takes over. Otherwise, each follower would need a connection for its blocking read.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.context import BrokerContext
from broker.entry_codec import Entry, fields_of, journal_entries_of, json_fields
from broker.group_reader import pairs
from broker.keys import question_keys, question_of, shard_for
from broker.transport.connect import LONGEST_BLOCK_SECONDS, reachable
from broker.transport.scripts import ENDED
from broker.values import Fields, JournalEntry
from envelope.question import Question

if TYPE_CHECKING:
    from redis.asyncio import Redis

LOST = "lost"
"""The reason in the reply to a question that is no longer stored in Redis."""
FOLLOWERS = 8
"""Maximum number of followers that each use a separate connection for a blocking read; all others
share one.
"""
LOOK_SECONDS = 0.02
"""The pause between two reads."""
AT_ONCE = 500
"""The number of journals that one command reads."""


class JournalReader:
    """Reads journals of questions."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._followers = 0
        self._following = JournalTailer(context)

    async def read_reply(self, question: Question) -> Fields | None:
        """Return the reply from the journal's last entry if the question has finished, or None."""
        _, names = self._context.locate(question)
        with reachable():
            client: Any = self._context.client
            entries = await client.execute_command("XREVRANGE", names.journal, "+", "-", "COUNT", 1)
        return _reply_of(entries)

    async def find_end(self, question: Question) -> Fields | None:
        """Return the final reply; see `find_ends`. Concurrent calls share a round trip."""
        _, names = self._context.locate(question)
        entries, record = await self._context.run(ENDED, [names.journal, names.record], [])
        return _reply_of(entries) if entries else _bare_reply(question, *record)

    async def find_ends(self, questions: Sequence[Question]) -> list[Fields | None]:
        """Return the final replies of questions in one round trip; None for open questions.

        The reply of a forgotten question contains only its outcome. A question that is not stored
        in Redis was lost together with unsaved data; its reply has the outcome `failed`.
        """
        with reachable():
            pipeline: Any = self._context.client.pipeline(transaction=False)
            for question in questions:
                _, names = self._context.locate(question)
                pipeline.execute_command("XREVRANGE", names.journal, "+", "-", "COUNT", 1)
                pipeline.hmget(names.record, "at", "o")
            answers = await pipeline.execute()
        return [
            _reply_of(entries) if entries else _bare_reply(question, *record)
            for question, entries, record in zip(
                questions, answers[::2], answers[1::2], strict=True
            )
        ]

    async def read_journal(
        self, question: Question, *, after: str = "0", block_seconds: float = 0.0
    ) -> Sequence[JournalEntry]:
        """Return the events after the entry `after`; wait up to `block_seconds` for the first."""
        if block_seconds <= 0:
            return await self._read(question, after)
        if self._followers >= FOLLOWERS:
            shard, names = self._context.locate(question)
            entries = await self._following.entries(
                shard, names.journal, after, block_seconds=block_seconds
            )
            return journal_entries_of(entries)
        self._followers += 1
        try:
            milliseconds = int(min(block_seconds, LONGEST_BLOCK_SECONDS) * 1000)
            return await self._read(question, after, "BLOCK", max(1, milliseconds))
        finally:
            self._followers -= 1

    async def read_journals(self, questions: Sequence[Question]) -> list[Sequence[JournalEntry]]:
        """Return the events of several questions, in one round trip."""
        with reachable():
            pipeline: Any = self._context.client.pipeline(transaction=False)
            for question in questions:
                _, names = self._context.locate(question)
                pipeline.execute_command("XRANGE", names.journal, "-", "+")
            journals = await pipeline.execute()
        return [journal_entries_of(entries) for entries in journals]

    async def _read(
        self, question: Question, after: str, *block: str | int
    ) -> Sequence[JournalEntry]:
        _, names = self._context.locate(question)
        with reachable():
            client: Any = self._context.client
            read = await client.execute_command("XREAD", *block, "STREAMS", names.journal, after)
        return journal_entries_of(entries_of(read))


@dataclass(eq=False, slots=True)
class JournalFollower:
    """A task that waits for the entries after `after`. If `result` is None, the task must read for
    all followers.
    """

    shard: int
    journal: bytes
    after: str
    result: "asyncio.Future[Sequence[Entry] | None]"


class JournalTailer:
    """Reads journals for all followers in this process."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._followers: dict[JournalFollower, None] = {}
        self._is_reading = False

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
                if not self._is_reading:
                    await self._read_for_all()
                else:
                    await asyncio.wait([mine.result], timeout=until - time.monotonic())
                if mine.result.done():
                    entries = mine.result.result()
                    if entries is not None:
                        return entries
                    mine.result = asyncio.get_running_loop().create_future()
            return ()
        finally:
            del self._followers[mine]
            self._pass_reading_on()

    async def _read_for_all(self) -> None:
        """Read once for all followers, after a short pause in which others may join."""
        self._is_reading = True
        try:
            await asyncio.sleep(LOOK_SECONDS)
            for followers in self._batches():
                await self._read_for(followers)
        finally:
            self._is_reading = False

    def _batches(self) -> list[list[JournalFollower]]:
        """Return the followers in groups that one command can serve. In a cluster, a group has only
        one slot.
        """
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

    async def _read_for(self, followers: Sequence[JournalFollower]) -> None:
        # If two tasks follow the same journal, read from the earlier position.
        cursors: dict[bytes, str] = {}
        for follower in followers:
            before = cursors.setdefault(follower.journal, follower.after)
            if order(follower.after) < order(before):
                cursors[follower.journal] = follower.after
        client: Any = self._context.client
        with reachable():
            read = await client.execute_command("XREAD", "STREAMS", *cursors, *cursors.values())
        entries_by_journal = dict(pairs(read))
        for follower in followers:
            new = [
                entry
                for entry in entries_by_journal.get(follower.journal, ())
                if order(entry[0].decode()) > order(follower.after)
            ]
            if new and not follower.result.done():
                follower.result.set_result(new)

    def _pass_reading_on(self) -> None:
        if self._is_reading:
            return
        for follower in self._followers:
            if not follower.result.done():
                follower.result.set_result(None)
                return


@dataclass(frozen=True, slots=True)
class RecentMessage:
    """A message whose journal is still stored, with the first and the latest event."""

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

        Takes two round trips for any number of messages. Omits erased messages.
        """
        shard = shard_for(question, self._shards)
        messages = question_keys(question, shard).messages
        with reachable():
            client: Any = self._client
            names: list[bytes] = await client.zrange(messages, -limit, -1)
            questions = [question_of(name.decode()) for name in names]
            pipeline = client.pipeline(transaction=False)
            for message in questions:
                journal = question_keys(message, shard).journal
                pipeline.execute_command("XRANGE", journal, "-", "+", "COUNT", 1)
                pipeline.execute_command("XREVRANGE", journal, "+", "-", "COUNT", 1)
            ends = await pipeline.execute()
        return [
            RecentMessage(message, journal_entries_of(first)[0], journal_entries_of(last)[-1])
            for message, first, last in zip(questions, ends[::2], ends[1::2], strict=True)
            if first and last
        ]


def entries_of(read: Any) -> list[Any]:
    """Return the entries from a read of one stream, which the client returns as a list or a
    dictionary.
    """
    if not read:
        return []
    if isinstance(read, dict):
        return [entry for batches in read.values() for batch in batches for entry in batch]
    return [entry for _, entries in read for entry in entries]


def order(entry_id: str) -> tuple[int, int]:
    """Return the sort key of an entry id; `0` sorts before all entries."""
    milliseconds, _, sequence = entry_id.partition("-")
    return int(milliseconds), int(sequence or 0)


def _reply_of(entries: Sequence[Any]) -> Fields | None:
    for _, raw in entries:
        fields = fields_of(raw)
        if fields[b"k"] == b"finished":
            return json_fields(fields[b"j"])
    return None


def _bare_reply(question: Question, at: bytes | None, outcome: bytes | None) -> Fields | None:
    if outcome is None and at is not None:
        return None
    return {
        "outcome": "failed" if outcome is None else outcome.decode(),
        "text": "",
        "termination_reason": LOST if outcome is None else "forgotten",
        "conversation_id": question.conversation_id,
        "message_id": question.message_id,
    }
