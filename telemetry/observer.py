"""Reads each ended message once, over all processes, and passes it to the measurements.

It reads as a consumer group of its own, after the question has ended: a process that does not
measure has no part of it, and nothing in the delivery of a question waits for it.
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
"""Messages that ended longer ago are not measured: the measurement was off at that time."""


@dataclass(frozen=True, slots=True)
class EndedQuestion:
    """An ended message: what is recorded of it, and its whole journal."""

    record: Record
    entries: Sequence[JournalEntry]


class QuestionSink(Protocol):
    """Measures ended questions."""

    def measure(self, question: EndedQuestion) -> None:
        """Take one question into account; called in the event loop, and does not wait."""
        ...


class QuestionObserver:
    """Gives each message that ends to the sinks.

    It begins when `wanted` is set. A process that dies between measuring and acknowledging has
    another process measure the same message again.
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
        """Observe until cancelled, or `end`."""
        await self._wanted.wait()
        own = asyncio.current_task()
        # As in `records.recorder`: fakeredis may lose a cancellation.
        while not (self._is_ending or (own is not None and own.cancelling())):
            try:
                await self.observe_next(block_seconds=BLOCK_SECONDS)
            except BrokerUnavailableError as error:
                log.warning("telemetry_delayed", error=str(error), retry_seconds=PAUSE_SECONDS)
                await asyncio.sleep(PAUSE_SECONDS)

    async def end(self, running: "asyncio.Task[None]") -> None:
        """End `run` after the messages that it is being given.

        A read that is cancelled while Redis answers it leaves them to nobody until a lease ends.
        """
        self._is_ending = True
        if self._wanted.is_set():
            await asyncio.wait([running], timeout=END_SECONDS)
        running.cancel()

    async def drain(self) -> None:
        """Measure what has ended until now."""
        while self._wanted.is_set() and await self.observe_next():
            pass

    async def observe_next(self, *, block_seconds: float = 0.0) -> int:
        """Measure the next messages; return their number."""
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
            # A journal that cannot be read must not hold up the others.
            log.error("question_not_measured", message_id=message.question.message_id,
                      error=str(error))  # fmt: skip
            return
        if record is None:
            return
        for sink in self._sinks:
            sink.measure(EndedQuestion(record, entries))


def find_trace_id(question: Question) -> int:
    """Return the id of a question's trace: the same in every process."""
    names = (question.tenant, question.assistant, question.conversation_id, question.message_id)
    return int.from_bytes(hashlib.sha256("\x00".join(names).encode()).digest()[:16], "big") or 1


def find_root_id(trace_id: int) -> int:
    """Return the id of the first span of a trace."""
    return make_span_id(trace_id, 0)


def make_span_id(trace_id: int, number: int) -> int:
    """Return the id of the span with this number, in the order in which they are sent."""
    digest = hashlib.sha256(f"{trace_id:032x}/{number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") or 1
