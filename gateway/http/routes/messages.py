"""The routes of messages: send one, follow it, resume following it, cancel it."""

import asyncio
import hashlib
from dataclasses import replace
from functools import partial
from typing import Annotated
from uuid import uuid4

import structlog
from fastapi import APIRouter, Depends, Header, Request, Response
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse

from envelope.conversation import PauseReply
from envelope.question import Question
from gateway.answer import STOPPED, Answer
from gateway.api_keys import Scope
from gateway.desk import Message
from gateway.events import EventCursor, place_of
from gateway.http.access import list_people
from gateway.http.context import (
    APPROVED,
    ID,
    ConversationAccess,
    HttpChannel,
    MessageId,
    may_follow,
    require_conversation,
    use_session,
)
from gateway.http.errors import InvalidRequestError, unknown
from gateway.http.language import choose_language
from gateway.http.question_sender import QuestionSender
from gateway.http.sse import Admission, EventStream
from gateway.person_tokens import LONGEST_PERSON
from gateway.text import LONGEST_CHARACTERS, clean_text, parse_command

log = structlog.get_logger("gateway")

LANGUAGE = r"^[a-zA-Z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}$"
STRATEGY = r"^(?:[a-z][a-z0-9_]{0,39})?$"
EVENT_STREAM = "text/event-stream"
EXAMPLE = """\
id: 1763716000000-0.0
event: stage
data: {"stage":"search","attempt":0}

"""
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="equal values name one message of the conversation, for 24 hours",
    ),
]
LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID", max_length=60, description="id of the last event that you received"
    ),
]


class NewMessage(BaseModel, frozen=True, extra="forbid"):
    """A message: a question, an answer to a question back, or a command such as `/help`."""

    text: str = Field(
        min_length=1, max_length=LONGEST_CHARACTERS, examples=["How do I configure routing rules?"]
    )
    message_id: str | None = Field(
        None, pattern=ID, description="an id that you choose; a repeated id is answered once"
    )
    language: str | None = Field(
        None, pattern=LANGUAGE, description="language of an apology if the text's is unknown"
    )
    pause_reply: PauseReply | None = Field(
        None,
        description="answers the open `pause` of the last reply: `approve`, or `fields` by name; "
        "`text` are the words that the conversation shows for it",
    )
    user_id: str | None = Field(
        None,
        min_length=1,
        max_length=LONGEST_PERSON,
        description="id of the person who asks, with a secret key: only they can answer a `pause`; "
        "a token in `X-Person-Token` with `sub` has the same effect",
    )
    strategy: str = Field(
        "",
        pattern=STRATEGY,
        description="how a swarm divides the question: `intelligent`, `parallel` or `council`; "
        "empty: as the desk is configured",
    )
    persona: str = Field(
        "", max_length=200, description="in whose voice a swarm answers, such as `a patient tutor`"
    )


class Messages:
    """Sends and follows messages."""

    def __init__(
        self, channel: HttpChannel, stopping: asyncio.Event, sender: QuestionSender
    ) -> None:
        self._channel = channel
        self._stopping = stopping
        self._sender = sender

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(tags=["conversations"])
        base = "/v1/conversations/{conversation_id}/messages"
        ask = Depends(require_conversation(self._channel, Scope.ASK))

        @router.post(base, response_model=Answer, responses=_STREAMED, summary="Send a message")
        async def send_message(
            access: Annotated[ConversationAccess, ask],
            request: Request,
            sent: NewMessage,
            idempotency_key: IdempotencyKey = None,
        ) -> Response:
            """Answer with the message's one outcome, or with `Accept: text/event-stream` with
            everything that happens until then."""
            return await self._send(access, request, sent, idempotency_key)

        @router.get(
            f"{base}/{{message_id}}/events",
            responses=_EVENTS,
            response_class=Response,
            summary="Follow a message",
        )
        async def follow_message(
            access: Annotated[ConversationAccess, ask],
            request: Request,
            message_id: MessageId,
            last_event_id: LastEventId = None,
        ) -> Response:
            """Stream what happened after `Last-Event-ID`, else from the beginning."""
            language = choose_language(request)
            return await self._follow(access, message_id, last_event_id, language)

        @router.post(
            f"{base}/{{message_id}}/cancel", response_model=Answer, summary="Cancel a message"
        )
        async def cancel_message(
            access: Annotated[ConversationAccess, ask], request: Request, message_id: MessageId
        ) -> Response:
            """End a message that is being answered, and return its one outcome: `superseded`, or
            the outcome that it already had. Clients that follow the message receive the same."""
            return await self._cancel(access, message_id, choose_language(request))

        return router

    async def _send(
        self,
        access: ConversationAccess,
        request: Request,
        sent: NewMessage,
        idempotency_key: str | None,
    ) -> Response:
        is_streamed = EVENT_STREAM in request.headers.get("accept", "")
        message = _message(access, request, sent, idempotency_key)
        if is_streamed and self._channel.release != APPROVED:
            message = replace(message, shows_drafts=True)
        question = access.desk.question(message)
        await self._sender.admit(access.caller, question)
        if is_streamed:
            return await self._stream(access, question, message)
        reply = await self._sender.ask(
            access.caller,
            access.desk,
            message,
            on_accepted=partial(use_session, self._channel, access),
        )
        answer = access.shows(reply, message.language)
        self._channel.meter.count_outcome(answer.outcome.value)
        return _make_response(answer, question.message_id)

    async def _cancel(self, access: ConversationAccess, message_id: str, language: str) -> Response:
        question = access.question(message_id)
        journal = await self._channel.replies.read_journal(question)
        if not journal or not may_follow(access.caller, journal[0]):
            raise unknown("message")
        if await access.desk.cancel(question, reason=STOPPED):
            log.info("message_stopped", message_id=message_id)
        reply = await self._channel.replies.read_reply(question)
        if reply is None:
            raise unknown("message")
        return _make_response(access.shows(reply, language), message_id)

    async def _follow(
        self, access: ConversationAccess, message_id: str, last_event_id: str | None, language: str
    ) -> Response:
        after = place_of(last_event_id) if last_event_id else EventCursor()
        question = access.question(message_id)
        journal = await self._channel.replies.read_journal(question)
        if not journal or not may_follow(access.caller, journal[0]):
            raise unknown("message")
        if after.is_past(journal[-1].id):
            raise InvalidRequestError(
                "this message has no such event yet: expected the id of an event that was sent",
                code="unknown_event",
                param="Last-Event-ID",
            )
        if journal[-1].kind == "finished":
            seen = self._events(access, question, after, language)
            if not seen.select_new_events(journal):
                return Response(status_code=204)
        stream = self._events(access, question, after, language)
        stream.resume(journal)
        return stream.response(message_id=message_id)

    async def _stream(
        self, access: ConversationAccess, question: Question, message: Message
    ) -> Response:
        admission = await self._sender.start_stream(access.caller, access.desk, message)
        await use_session(self._channel, access)
        stream = self._events(access, question, EventCursor(), message.language, admission)
        return stream.response(message_id=question.message_id)

    def _events(
        self,
        access: ConversationAccess,
        question: Question,
        after: EventCursor,
        language: str,
        admission: Admission | None = None,
    ) -> EventStream:
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
        )


_STREAMED: dict[int | str, dict[str, object]] = {
    200: {
        "description": "The message's outcome, or its events.",
        "content": {EVENT_STREAM: {"schema": {"type": "string"}, "example": EXAMPLE}},
    }
}
_EVENTS: dict[int | str, dict[str, object]] = {
    **_STREAMED,
    204: {"description": "There is nothing after `Last-Event-ID`: the message has ended."},
}


def _make_response(answer: Answer, message_id: str) -> Response:
    return JSONResponse(
        answer.model_dump(mode="json", exclude_none=True), headers={"X-Message-Id": message_id}
    )


def _message(
    access: ConversationAccess, request: Request, sent: NewMessage, idempotency_key: str | None
) -> Message:
    if sent.message_id is not None and idempotency_key is not None:
        raise InvalidRequestError(
            "expected `message_id` or the header Idempotency-Key, found both",
            code="conflicting_message_ids",
            param="message_id",
        )
    message_id = sent.message_id
    if idempotency_key is not None:
        message_id = f"i-{hashlib.sha256(idempotency_key.encode()).hexdigest()[:32]}"
    text = clean_text(sent.text)
    command, arguments = parse_command(text, ())
    return Message(
        text=text,
        conversation_id=access.conversation_id,
        message_id=message_id if message_id is not None else uuid4().hex,
        command=command,
        arguments=arguments,
        language=choose_language(request, sent.language),
        request_id=str(request.state.request_id),
        key_id=access.caller.key_id,
        groups=access.caller.groups,
        pause_reply=sent.pause_reply,
        people=list_people(access.caller, sent.user_id, "user_id"),
        strategy=sent.strategy,
        persona=sent.persona,
    )
