"""Records ended messages: reads them from Redis Streams, and writes each of them to the database
once.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import structlog

from broker.errors import BrokerUnavailableError
from broker.ports import EndedReader, ReplyReader
from broker.values import EndedMessage, JournalEntry
from envelope.question import Question
from memory.errors import MemoryUnavailableError
from memory.http_state import Feedback
from records.record import Record, Redact, make_record
from records.store import RecordRefusedError, RecordStore, RecordsUnavailableError

log = structlog.get_logger("records")

AT_ONCE = 50
JOURNALS_AT_ONCE = 10
"""Number of journals in memory at the same time, because the journal of a swarm may take
megabytes.
"""
GATHER_SECONDS = 0.25
BLOCK_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 30.0
DAY_SECONDS = 86_400
UNAVAILABLE = (
    BrokerUnavailableError,
    MemoryUnavailableError,
    RecordsUnavailableError,
    RecordRefusedError,
)
HOUR_SECONDS = 3_600
FindRating = Callable[[Question], Awaitable[Feedback | None]]


@dataclass(frozen=True, slots=True)
class RecordRules:
    """`days` is the retention by tenant and assistant, where 0 disables records; `redact` is
    applied to text.
    """

    days: dict[tuple[str, str], float] = field(default_factory=dict)
    redact: Redact = str

    def keeps(self, question: Question) -> bool:
        """Return whether the messages of an assistant are recorded."""
        return self.days.get((question.tenant, question.assistant), 0.0) > 0


class Recorder:
    """Records ended messages; several processes may run it.

    While the database does not respond, messages wait in Redis. If a process dies, another one
    takes over its messages when the lease expires, and writes the same records. Records of a
    conversation that is erased in the meantime are deleted again. `pause_seconds` is the pause
    before the first retry.
    """

    def __init__(
        self,
        ended: EndedReader,
        replies: ReplyReader,
        store: RecordStore,
        rules: RecordRules,
        find_rating: FindRating,
        *,
        pause_seconds: float = 1.0,
    ) -> None:
        self._ended = ended
        self._replies = replies
        self._store = store
        self._rules = rules
        self._find_rating = find_rating
        self._pause_seconds = pause_seconds
        self._next_deletion = 0.0
        self.delayed = ""
        """The reason why records are currently delayed, or an empty string."""

    async def run(self) -> None:
        """Record until cancelled."""
        pause, is_prepared = 0.0, False
        own = asyncio.current_task()
        # `asyncio.wait_for` of Python 3.11, used by fakeredis, loses a cancellation that arrives
        # together with the result.
        while own is None or not own.cancelling():
            try:
                if not is_prepared:
                    await asyncio.to_thread(self._store.prepare)
                    is_prepared = True
                taken = await self.record_next(block_seconds=BLOCK_SECONDS)
                await self._delete_old()
                pause, self.delayed = 0.0, ""
                if 0 < taken < AT_ONCE:
                    # Records are not urgent, and batches are cheaper for Redis.
                    await asyncio.sleep(GATHER_SECONDS)
            except UNAVAILABLE as error:
                pause = min(max(self._pause_seconds, pause * 2), LONGEST_PAUSE_SECONDS)
                self.delayed = str(error)
                log.warning("records_delayed", error=self.delayed, retry_seconds=pause)
                await asyncio.sleep(pause)

    async def record_next(self, *, block_seconds: float = 0.0) -> int:
        """Record the next messages; return the number of messages."""
        taken = await self._ended.take(count=AT_ONCE, block_seconds=block_seconds)
        kept = [message for message in taken if self._rules.keeps(message.question)]
        finished = [message for message in kept if message.event == "ended"]
        for at in range(0, len(finished), JOURNALS_AT_ONCE):
            records = await self._read(finished[at : at + JOURNALS_AT_ONCE])
            await asyncio.to_thread(self._write, records)
        for message in taken:
            if message.event == "forgotten":
                await self._forget(message.question, message.at)
            elif message.event == "rated":
                await self._rate(message.question)
        # Checked after writing, because an erasure deletes the journal first, then the record.
        for message in await self._ended.list_forgotten(finished) if finished else ():
            await asyncio.to_thread(self._store.forget, message.question, message=True)
        if taken:
            await self._ended.acknowledge(taken)
        return len(taken)

    async def _read(self, messages: Sequence[EndedMessage]) -> list[Record]:
        journals = await self._replies.read_journals([message.question for message in messages])
        made = [
            await self._make_record(message, entries)
            for message, entries in zip(messages, journals, strict=True)
        ]
        return [record for record in made if record is not None]

    async def _make_record(
        self, message: EndedMessage, entries: Sequence[JournalEntry]
    ) -> Record | None:
        if entries and entries[-1].fields.get("forgot"):
            await self._forget(message.question, entries[-1].at)
        try:
            record = make_record(message.question, entries)
        except (ValueError, ArithmeticError) as error:
            # An unreadable journal must not block the others.
            log.error("record_refused", message_id=message.question.message_id, error=str(error))
            return None
        return None if record is None else record.redacted(self._rules.redact)

    async def _forget(self, question: Question, ended_before: float) -> None:
        """Delete the records of a conversation up to a time, because the conversation may have
        continued since.
        """
        await asyncio.to_thread(self._store.forget, question, ended_before=ended_before)

    def _write(self, records: Sequence[Record]) -> None:
        try:
            self._store.write(records)
        except RecordRefusedError:
            for record in records:
                self._write_one(record)

    def _write_one(self, record: Record) -> None:
        try:
            self._store.write([record])
        except RecordRefusedError as error:
            log.error("record_refused", message_id=record.message_id, error=str(error))

    async def _rate(self, question: Question) -> None:
        feedback = await self._find_rating(question)
        if feedback is not None:
            reason = self._rules.redact(feedback.reason)
            try:
                await asyncio.to_thread(self._store.rate, question, feedback.rating, reason)
            except RecordRefusedError as error:
                # A retry would be refused again, and block all later messages.
                log.error("record_refused", message_id=question.message_id, error=str(error))

    async def _delete_old(self) -> None:
        now = time.time()
        if now < self._next_deletion:
            return
        self._next_deletion = now + HOUR_SECONDS
        for assistant, days in self._rules.days.items():
            before = now - days * DAY_SECONDS
            count = await asyncio.to_thread(self._store.delete_older, before, assistant)
            if count:
                log.info("records_deleted", tenant=assistant[0], assistant=assistant[1],
                         count=count)  # fmt: skip
