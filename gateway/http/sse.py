"""Writes events as a server-sent event stream that proxies do not delay and that readers can
resume.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing

from starlette.responses import StreamingResponse

from broker.errors import BrokerUnavailableError
from broker.values import Fields, JournalEntry
from envelope.outcome import Outcome
from envelope.question import Question
from gateway.answer import Shows
from gateway.desk import Desk
from gateway.errors import BusyError, StoppingError
from gateway.events import DraftFollower, Event, EventCursor, answer_events, events_of
from gateway.http.context import HEARTBEAT_SECONDS, HttpMeter

Admission = AsyncGenerator[object, None]
"""Repeats the submission; raises `BusyError` if the desk stays full, and `StoppingError`."""
IDLE_LOOKS = 4
"""After this many checks without an event, it is checked whether the message was forgotten."""
RETRY_MS = 1000
"""How long a reader waits before it reconnects."""
PADDING = ":" + " " * 2048 + "\n"
"""Fills the buffer of proxies that do not forward data until they have received one or two
kilobytes.
"""
HEADERS = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}


class EventStream:
    """Follows a message from a position in its journal up to its outcome."""

    def __init__(
        self,
        desk: Desk,
        question: Question,
        *,
        shows: Shows,
        stopping: asyncio.Event,
        meter: HttpMeter,
        after: EventCursor,
        language: str = "en",
        admission: Admission | None = None,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        with_drafts: bool = False,
        deadline_seconds: float | None = None,
    ) -> None:
        self._desk = desk
        self._question = question
        self._shows = shows
        self._stopping = stopping
        self._meter = meter
        self._after = after
        self._last = after.before
        self._language = language
        self._admission = admission
        self._heartbeat_seconds = heartbeat_seconds
        self._deadline_seconds = deadline_seconds
        self._drafts = (
            DraftFollower(question, shows=shows, language=language) if with_drafts else None
        )

    def response(self, *, message_id: str) -> StreamingResponse:
        """Return the streaming response."""
        headers = {**HEADERS, "X-Message-Id": message_id}
        kind = "text/event-stream"
        return StreamingResponse(self.lines(), headers=headers, media_type=kind)

    async def lines(self) -> AsyncIterator[str]:
        """Yield the lines of the stream, which ends early if the process stops."""
        self._meter.change_streams(1)
        try:
            yield f"retry: {RETRY_MS}\n{PADDING}\n"
            sent_at = time.monotonic()
            async for events in self.events():
                if events:
                    yield "".join(encode_event(event) for event in events)
                elif time.monotonic() - sent_at < self._heartbeat_seconds:
                    continue
                else:
                    yield ": still here\n\n"
                sent_at = time.monotonic()
        finally:
            self._meter.change_streams(-1)

    async def events(self) -> AsyncIterator[Sequence[Event]]:
        """Yield events as they occur, and at least once a second a list that may be empty.

        If there is an `admission`, the message has not been accepted yet, and the reader receives
        an event about that.
        """
        try:
            if self._admission is not None:
                yield [Event("", "waiting", self._names)]
                async with aclosing(self._admission) as tries:
                    async for _ in tries:
                        yield []
            async for events in self._follow():
                yield events
        except StoppingError:
            return
        except (BrokerUnavailableError, BusyError):
            # After the deadline with Redis unreachable, or never accepted: only an apology remains.
            yield self._last_resort(self._last)

    async def _follow(self) -> AsyncIterator[Sequence[Event]]:
        idle = 0
        watched = self._desk.watch(
            self._question, after=self._last, deadline_seconds=self._deadline_seconds
        )
        async for entries in watched:
            yield self.select_new_events(entries)
            if entries and entries[-1].kind == "finished":
                self._meter.count_outcome(str(entries[-1].fields.get("outcome")))
                return
            self._last, idle = (entries[-1].id, 0) if entries else (self._last, idle + 1)
            if self._stopping.is_set():
                return
            if idle % IDLE_LOOKS == IDLE_LOOKS - 1 and await self._forgotten():
                yield self._make_superseded(self._last)
                return
        yield self._last_resort(self._last)

    def resume(self, journal: Sequence[JournalEntry]) -> None:
        """Process the part of the journal that the reader already has, because a later entry may
        retract its content.
        """
        for entry in journal:
            if self._drafts is not None and self._after.is_past(entry.id):
                self._drafts.skip(entry)

    def select_new_events(self, entries: Sequence[JournalEntry]) -> list[Event]:
        """Return those events of these entries that the reader does not have."""
        shown = [event for entry in entries for event in self._events_of(entry)]
        has_ended = bool(entries) and entries[-1].kind == "finished"
        return [
            event
            for event in shown
            # A draft whose answer is already available is not needed.
            if not self._after.covers(event) and not (has_ended and event.name == "draft")
        ]

    def _events_of(self, entry: JournalEntry) -> Iterator[Event]:
        yield from events_of(entry, self._question, shows=self._shows, language=self._language)
        if self._drafts is not None:
            yield from self._drafts.read(entry)

    async def _forgotten(self) -> bool:
        return await self._desk.forgotten(self._question)

    def _make_superseded(self, last: str) -> Sequence[Event]:
        return self._make_reply_events({"outcome": Outcome.SUPERSEDED.value, **self._names}, last)

    @property
    def _names(self) -> Fields:
        question = self._question
        return {
            "conversation_id": question.conversation_id,
            "message_id": question.message_id,
        }

    def _last_resort(self, last: str) -> Sequence[Event]:
        return self._make_reply_events(self._desk.last_resort(self._question, self._language), last)

    def _make_reply_events(self, reply: Fields, last: str) -> Sequence[Event]:
        """Return the events of a reply that has no journal."""
        answer = self._shows(reply, self._language)
        self._meter.count_outcome(answer.outcome.value)
        return list(answer_events(last if "-" in last else "0-0", answer))


def encode_event(event: Event) -> str:
    """Return an event in the format of the stream; JSON escapes its line breaks."""
    data = json.dumps(event.data, ensure_ascii=False, separators=(",", ":"))
    named = f"id: {event.id}\n" if event.id else ""
    return f"{named}event: {event.name}\ndata: {data}\n\n"
