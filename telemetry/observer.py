"""Passes each ended message, once across all processes, to metrics and traces.

It reads through a separate consumer group after a question has ended, so that it never delays
questions.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from broker.errors import BrokerUnavailableError
from broker.ports import EndedReader, ReplyReader
from broker.values import EndedMessage, JournalEntry
from envelope.question import Question
from records.record import Record, make_record

log = structlog.get_logger("telemetry")

AT_ONCE = 50
BLOCK_SECONDS = 5.0
PAUSE_SECONDS = 1.0
END_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 3600.0
"""Messages that ended longer ago are skipped, because they were not measured at that time."""


@dataclass(frozen=True, slots=True)
class EndedQuestion:
    """An ended message: its record and its whole journal."""

    record: Record
    entries: Sequence[JournalEntry]


class QuestionSink(Protocol):
    """Measures ended questions."""

    def measure(self, question: EndedQuestion) -> None:
        """Measure one question; called in the event loop and must not block."""
        ...


class QuestionObserver:
    """Passes each ended message to the sinks once `wanted` is set.

    If a process dies between measuring and acknowledging a message, another one measures it again.
    """

    def __init__(
        self,
        ended: EndedReader,
        replies: ReplyReader,
        sinks: Sequence[QuestionSink],
        *,
        wanted: asyncio.Event,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._ended = ended
        self._replies = replies
        self._sinks = sinks
        self._wanted = wanted
        self._now = now
        self._is_ending = False

    async def run(self) -> None:
        """Observe until cancelled, or until `end` is called."""
        await self._wanted.wait()
        own = asyncio.current_task()
        # fakeredis may lose a cancellation; see `records.recorder`.
        while not (self._is_ending or (own is not None and own.cancelling())):
            try:
                await self.observe_next(block_seconds=BLOCK_SECONDS)
            except BrokerUnavailableError as error:
                log.warning("telemetry_delayed", error=str(error), retry_seconds=PAUSE_SECONDS)
                await asyncio.sleep(PAUSE_SECONDS)

    async def end(self, running: "asyncio.Task[None]") -> None:
        """Stop `run` after it has measured the messages that it is reading.

        If a read were cancelled while Redis responds, its messages would stay pending for a lease.
        """
        self._is_ending = True
        if self._wanted.is_set():
            await asyncio.wait([running], timeout=END_SECONDS)
        running.cancel()

    async def drain(self) -> None:
        """Measure all messages that have ended so far."""
        while self._wanted.is_set() and await self.observe_next():
            pass

    async def observe_next(self, *, block_seconds: float = 0.0) -> int:
        """Measure the next messages; return how many there were."""
        taken = await self._ended.take(count=AT_ONCE, block_seconds=block_seconds)
        earliest = self._now() - LONGEST_DELAY_SECONDS
        for message in taken:
            if message.event == "ended" and message.at >= earliest:
                await self._measure(message)
        if taken:
            await self._ended.acknowledge(taken)
        return len(taken)

    async def _measure(self, message: EndedMessage) -> None:
        entries = await self._replies.read_journal(message.question)
        try:
            record = make_record(message.question, entries)
        except (ValueError, ArithmeticError) as error:
            # An unreadable journal must not block the others.
            log.error("question_not_measured", message_id=message.question.message_id,
                      error=str(error))  # fmt: skip
            return
        if record is None:
            return
        for sink in self._sinks:
            sink.measure(EndedQuestion(record, entries))


def find_trace_id(question: Question) -> int:
    """Return the trace id of a question, which is the same in every process."""
    names = (question.tenant, question.assistant, question.conversation_id, question.message_id)
    return int.from_bytes(hashlib.sha256("\x00".join(names).encode()).digest()[:16], "big") or 1


def find_root_id(trace_id: int) -> int:
    """Return the id of the first span of a trace."""
    return make_span_id(trace_id, 0)


def make_span_id(trace_id: int, number: int) -> int:
    """Return the id of the span with this number, counted in the order of sending."""
    digest = hashlib.sha256(f"{trace_id:032x}/{number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") or 1
