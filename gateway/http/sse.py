"""Writes events as a server-sent stream that no proxy holds back and that readers can resume."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence

from starlette.responses import StreamingResponse

from broker.errors import BrokerUnavailableError
from broker.port import JournalEntry
from envelope.question import Question
from gateway.answer import SupersededText, answer_of
from gateway.desk import Desk
from gateway.events import Event, Place, answer_events, events_of

HEARTBEAT_SECONDS = 10.0
RETRY_MS = 1000
"""How long a reader waits before it comes back."""
PADDING = ":" + " " * 2048 + "\n"
"""Fills the buffer of proxies that send nothing before they have a kilobyte or two."""
HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}


class EventStream:
    """Follows one message from a place in its journal on; ends with its one outcome."""

    def __init__(
        self,
        desk: Desk,
        question: Question,
        *,
        superseded: SupersededText,
        stopping: asyncio.Event,
        after: Place,
        language: str = "en",
    ) -> None:
        self._desk = desk
        self._question = question
        self._superseded = superseded
        self._stopping = stopping
        self._after = after
        self._language = language

    def response(self, *, message_id: str, status: int = 200) -> StreamingResponse:
        """Return the answer to the request."""
        headers = {**HEADERS, "X-Message-Id": message_id}
        kind = "text/event-stream"
        return StreamingResponse(self.lines(), status, headers=headers, media_type=kind)

    async def lines(self) -> AsyncIterator[str]:
        """Yield the stream as it is written; when the process stops it ends early."""
        yield f"retry: {RETRY_MS}\n{PADDING}\n"
        said = time.monotonic()
        async for events in self.events():
            for event in events:
                yield written(event)
            now = time.monotonic()
            if not events and now - said >= HEARTBEAT_SECONDS:
                yield ": still here\n\n"
            elif not events:
                continue
            said = now

    async def events(self) -> AsyncIterator[Sequence[Event]]:
        """Yield events as they happen, and at least once a second what may be nothing."""
        last = self._after.before
        try:
            async for entries in self._desk.watch(self._question, after=last):
                events = self.shown(entries)
                yield events
                last = entries[-1].id if entries else last
                if any(entry.kind == "finished" for entry in entries):
                    return
                if self._stopping.is_set():
                    return
        except BrokerUnavailableError:
            # Past its deadline, and Redis still away: the apology is all that is left.
            pass
        yield list(self._last_resort(last))

    def shown(self, entries: Sequence[JournalEntry]) -> list[Event]:
        """Return the events of these entries that the reader does not have."""
        shown = (
            event
            for entry in entries
            for event in events_of(
                entry, self._question, superseded=self._superseded, language=self._language
            )
        )
        return [event for event in shown if not self._after.covers(event)]

    def _last_resort(self, last: str) -> Sequence[Event]:
        reply = self._desk.last_resort(self._question, self._language)
        answer = answer_of(reply, superseded=self._superseded)
        return list(answer_events(last if "-" in last else "0-0", answer))


def written(event: Event) -> str:
    """Return an event as it stands in the stream; JSON keeps line breaks out of it."""
    data = json.dumps(event.data, ensure_ascii=False, separators=(",", ":"))
    return f"id: {event.id}\nevent: {event.name}\ndata: {data}\n\n"
