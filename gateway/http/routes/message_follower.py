"""Follows, reads, and cancels accepted messages, in the same way for messages and reviews."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Literal

import structlog
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, Response

from broker.values import JournalEntry
from envelope.question import Question
from gateway.answer import STOPPED, Answer
from gateway.desk import read_deadline
from gateway.events import Event, EventCursor, events_of, place_of
from gateway.http.context import APPROVED, ConversationAccess, HttpChannel, may_follow
from gateway.http.errors import ForbiddenError, InvalidRequestError, unknown
from gateway.http.sse import Admission, EventStream
from gateway.trajectory import (
    AgentTotals,
    TrajectoryMetrics,
    TrajectoryStep,
    read_trajectory,
    sum_agents,
)

log = structlog.get_logger("gateway")


class JobProgress(BaseModel, frozen=True):
    """The progress of a running message, from its events."""

    stage: str | None = Field(
        None, description="role that is currently running", examples=["compliance"]
    )
    branches: int = Field(0, description="number of parts that have begun in the current stage")
    ended: int = Field(0, description="number of these parts that have finished")


class MessageStatus(BaseModel, frozen=True):
    """An accepted message; `answer` is present once its status is `ended`."""

    conversation_id: str
    message_id: str
    text: str
    at: float = Field(description="time of acceptance, Unix seconds")
    status: Literal["running", "ended"]
    progress: JobProgress | None = Field(None, description="progress of a running message")
    answer: Answer | None = None


class MessageTrajectory(BaseModel, frozen=True):
    """The thoughts, calls, and observations of a message so far, and the totals of its agents."""

    steps: tuple[TrajectoryStep, ...]
    metrics: TrajectoryMetrics
    agents: tuple[AgentTotals, ...]


class MessageFollower:
    """Shows the progress of messages. If a caller may not follow a message, it is reported as not
    found.

    When `stopping` is set, streams end, so that clients continue at another process.
    """

    def __init__(self, channel: HttpChannel, stopping: asyncio.Event) -> None:
        self._channel = channel
        self._stopping = stopping

    async def read_journal(
        self, access: ConversationAccess, message_id: str
    ) -> Sequence[JournalEntry]:
        """Return the journal of a message if the caller may follow it; raises a 404 error
        otherwise.
        """
        journal = await self._channel.replies.read_journal(access.question(message_id))
        if not journal or not may_follow(access.caller, journal[0]):
            raise unknown("message")
        return journal

    async def read(
        self, access: ConversationAccess, message_id: str, language: str
    ) -> MessageStatus:
        """Return the status of a message, with its answer once it has ended."""
        question = access.question(message_id)
        journal = await self.read_journal(access, message_id)
        first, last = journal[0], journal[-1]
        has_ended = last.kind == "finished"
        return MessageStatus(
            conversation_id=access.conversation_id,
            message_id=message_id,
            text=str(first.fields.get("text") or ""),
            at=first.at,
            status="ended" if has_ended else "running",
            progress=None if has_ended else _measure_progress(access, question, journal),
            answer=access.shows(last.fields, language) if has_ended else None,
        )

    async def read_trajectory(
        self, access: ConversationAccess, message_id: str
    ) -> MessageTrajectory:
        """Return the trajectory of a message. Visitors are rejected, because it contains results of
        tools.
        """
        if access.caller.public:
            raise ForbiddenError(
                "a trajectory contains results of tools and requires a secret key",
                code="secret_key_needed",
            )
        journal = await self.read_journal(access, message_id)
        trajectory = read_trajectory(journal)
        return MessageTrajectory(
            steps=tuple(trajectory.steps),
            metrics=trajectory.compute_metrics(),
            agents=tuple(sum_agents(journal)),
        )

    async def cancel(self, access: ConversationAccess, message_id: str, language: str) -> Response:
        """Cancel a message if it is running, and return its outcome."""
        question = access.question(message_id)
        await self.read_journal(access, message_id)
        if await access.desk.cancel(question, reason=STOPPED):
            log.info("message_stopped", message_id=message_id)
        reply = await self._channel.replies.read_reply(question)
        if reply is None:
            raise unknown("message")
        return answer_response(access.shows(reply, language), message_id)

    async def replace(self, access: ConversationAccess, message_id: str) -> None:
        """Cancel a message that is replaced by a newer one. A message that already has an outcome
        keeps it.
        """
        await self.read_journal(access, message_id)
        if await access.desk.cancel(access.question(message_id)):
            log.info("message_superseded", message_id=message_id)

    async def follow(
        self, access: ConversationAccess, message_id: str, last_event_id: str | None, language: str
    ) -> Response:
        """Return the events of a message after the last one that the client received."""
        after = place_of(last_event_id) if last_event_id else EventCursor()
        question = access.question(message_id)
        journal = await self.read_journal(access, message_id)
        if after.is_past(journal[-1].id):
            raise InvalidRequestError(
                "this message has no event with this id; send the id of an event that you received",
                code="unknown_event",
                param="Last-Event-ID",
            )
        deadline = read_deadline(journal[0])
        if journal[-1].kind == "finished":
            seen = self.stream(access, question, after, language, deadline_seconds=deadline)
            if not seen.select_new_events(journal):
                return Response(status_code=204)
        stream = self.stream(access, question, after, language, deadline_seconds=deadline)
        stream.resume(journal)
        return stream.response(message_id=message_id)

    def stream(
        self,
        access: ConversationAccess,
        question: Question,
        after: EventCursor,
        language: str,
        admission: Admission | None = None,
        deadline_seconds: float | None = None,
    ) -> EventStream:
        """Return the stream of a message, starting at a position in its journal."""
        return EventStream(
            access.desk,
            question,
            shows=access.shows,
            stopping=self._stopping,
            meter=self._channel.meter,
            after=after,
            language=language,
            admission=admission,
            heartbeat_seconds=self._channel.heartbeat_seconds,
            with_drafts=self._channel.release != APPROVED,
            deadline_seconds=deadline_seconds,
        )


def answer_response(answer: Answer, message_id: str) -> Response:
    """Return the response that contains an answer."""
    return JSONResponse(
        answer.model_dump(mode="json", exclude_none=True), headers={"X-Message-Id": message_id}
    )


def count_progress(events: Iterable[Event]) -> JobProgress:
    """Return the last stage, and the number of its finished branches.

    Nested branches, such as the calls of a worker, do not count as parts of the stage.
    """
    stage, begun, ended = None, frozenset[str](), set[str]()
    for event in events:
        if event.name == "stage":
            branches = event.data.get("branches")
            stage, ended = str(event.data["stage"]), set()
            begun = frozenset(map(str, branches if isinstance(branches, list) else ()))
        elif event.name == "branch":
            ended |= begun & {str(event.data["branch"])}
    return JobProgress(stage=stage, branches=len(begun), ended=len(ended))


def _measure_progress(
    access: ConversationAccess, question: Question, journal: Sequence[JournalEntry]
) -> JobProgress:
    progress = (events_of(entry, question, shows=access.shows) for entry in journal)
    return count_progress(event for events in progress for event in events)
