"""The routes of messages: send one, follow it, go on following it, stop it."""

import asyncio
import hashlib
from typing import Annotated
from uuid import uuid4

import structlog
from fastapi import APIRouter, Depends, Header, Request, Response
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse

from broker.errors import BrokerUnavailableError
from broker.port import Duplicate, Fields
from envelope.question import Question
from gateway.answer import STOPPED, Answer
from gateway.desk import Desk, Message, parsed
from gateway.errors import BusyError
from gateway.events import Place, place_of
from gateway.http.door import ID, Door, Entered, MessageId, enters
from gateway.http.errors import InvalidRequestError, unknown
from gateway.http.language import preferred_language
from gateway.http.patience import Patience
from gateway.http.sse import Admission, EventStream
from gateway.keys import Scope
from gateway.text import LONGEST_CHARACTERS, cleaned

log = structlog.get_logger("gateway")

LANGUAGE = r"^[a-zA-Z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}$"
EVENT_STREAM = "text/event-stream"
EXAMPLE = """\
id: 1763716000000-0.0
event: stage
data: {"stage":"search","attempt":0}

"""
STREAMS_WAIT_LONGER = 3.0
"""A reader who is told that the message waits has more patience than one who hears nothing."""
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="the same key in the same conversation is the same message, for 24 hours",
    ),
]
LastEventId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", max_length=60, description="the last event that you have"),
]


class NewMessage(BaseModel, frozen=True, extra="forbid"):
    """A message: a question, an answer to a question back, or a command such as `/help`."""

    text: str = Field(
        min_length=1, max_length=LONGEST_CHARACTERS, examples=["How do I configure routing rules?"]
    )
    message_id: str | None = Field(
        None, pattern=ID, description="your own id; sent twice, it is answered once"
    )
    language: str | None = Field(
        None, pattern=LANGUAGE, description="of an apology, where the text's is not known yet"
    )


class Messages:
    """Sends and follows messages."""

    def __init__(self, door: Door, stopping: asyncio.Event, patience: Patience) -> None:
        self._door = door
        self._stopping = stopping
        self._patience = patience

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(tags=["conversations"])
        base = "/v1/conversations/{conversation_id}/messages"
        ask = Depends(enters(self._door, Scope.ASK))

        @router.post(base, response_model=Answer, responses=_STREAMED, summary="Send a message")
        async def send_message(
            place: Annotated[Entered, ask],
            request: Request,
            sent: NewMessage,
            idempotency_key: IdempotencyKey = None,
        ) -> Response:
            """Answer with the message's one outcome, or with `Accept: text/event-stream` with
            everything that happens until then."""
            return await self._send(place, request, sent, idempotency_key)

        @router.get(
            f"{base}/{{message_id}}/events",
            responses=_EVENTS,
            response_class=Response,
            summary="Follow a message",
        )
        async def follow_message(
            place: Annotated[Entered, ask],
            request: Request,
            message_id: MessageId,
            last_event_id: LastEventId = None,
        ) -> Response:
            """Stream what happened after `Last-Event-ID`, else from the beginning."""
            language = preferred_language(request)
            return await self._follow(place, message_id, last_event_id, language)

        @router.post(
            f"{base}/{{message_id}}/cancel", response_model=Answer, summary="Stop a message"
        )
        async def cancel_message(
            place: Annotated[Entered, ask], request: Request, message_id: MessageId
        ) -> Response:
            """End a message that is being answered, and return its one outcome: `superseded`, or
            what it had already. Whoever follows it is told the same."""
            return await self._cancel(place, message_id, preferred_language(request))

        return router

    async def _send(
        self, place: Entered, request: Request, sent: NewMessage, idempotency_key: str | None
    ) -> Response:
        await self._door.guard.admit_question(place.caller)
        message = _message(place, request, sent, idempotency_key)
        question = place.desk.question(message)
        if EVENT_STREAM in request.headers.get("accept", ""):
            return await self._streamed(place, question, message)
        if isinstance(await self._patience.submit(place.desk, message), Duplicate):
            await check_same(self._door, question, message)
        reply = await self._outcome(place, question, message.language)
        answer = place.shows(reply, message.language)
        self._door.meter.ended(answer.outcome.value)
        return _told(answer, question.message_id)

    async def _outcome(self, place: Entered, question: Question, language: str) -> Fields:
        try:
            return await place.desk.outcome(question, language=language, stopping=self._stopping)
        except BrokerUnavailableError:
            # Past its deadline, and Redis still away: the apology is all that is left.
            return place.desk.last_resort(question, language)

    async def _cancel(self, place: Entered, message_id: str, language: str) -> Response:
        question = place.question(message_id)
        if await self._door.broker.cancel(question, reason=STOPPED):
            log.info("message_stopped", message_id=message_id)
        reply = await self._door.broker.reply(question)
        if reply is None:
            raise unknown("message")
        return _told(place.shows(reply, language), message_id)

    async def _follow(
        self, place: Entered, message_id: str, last_event_id: str | None, language: str
    ) -> Response:
        after = place_of(last_event_id) if last_event_id else Place()
        question = place.question(message_id)
        journal = await self._door.broker.journal(question)
        if not journal:
            raise unknown("message")
        if after.is_past(journal[-1].id):
            raise InvalidRequestError(
                "there is no such event of this message",
                code="unknown_event",
                param="Last-Event-ID",
            )
        stream = self._events(place, question, after, language)
        if journal[-1].kind == "finished" and not stream.shown(journal):
            return Response(status_code=204)
        return stream.response(message_id=message_id)

    async def _streamed(self, place: Entered, question: Question, message: Message) -> Response:
        admission = await handed_in(self._door, self._patience, place.desk, message)
        stream = self._events(place, question, Place(), message.language, admission)
        return stream.response(message_id=question.message_id)

    def _events(
        self,
        place: Entered,
        question: Question,
        after: Place,
        language: str,
        admission: Admission | None = None,
    ) -> EventStream:
        return EventStream(
            place.desk,
            question,
            shows=place.shows,
            stopping=self._stopping,
            meter=self._door.meter,
            after=after,
            language=language,
            admission=admission,
            heartbeat_seconds=self._door.heartbeat_seconds,
        )


async def handed_in(
    door: Door, patience: Patience, desk: Desk, message: Message
) -> Admission | None:
    """Hand in a message that is to be streamed; return what waits, where the desk is full."""
    try:
        if isinstance(await patience.once(desk, message), Duplicate):
            await check_same(door, desk.question(message), message)
    except BusyError as busy:
        if not patience.may_wait(busy):
            raise
        return patience.tries(desk, message, busy, longer=STREAMS_WAIT_LONGER)
    return None


async def check_same(door: Door, question: Question, message: Message) -> None:
    """Refuse another text under the id of a message that was accepted before."""
    journal = await door.broker.journal(question)
    if not journal:
        raise InvalidRequestError(
            "the message of this id was forgotten: send it under another id",
            code="message_forgotten",
            status=410,
        )
    if journal[0].fields.get("text") != message.text:
        raise InvalidRequestError(
            "the message of this id was sent before with another text",
            code="message_id_reused",
            status=409,
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


def _told(answer: Answer, message_id: str) -> Response:
    return JSONResponse(
        answer.model_dump(mode="json", exclude_none=True), headers={"X-Message-Id": message_id}
    )


def _message(
    place: Entered, request: Request, sent: NewMessage, idempotency_key: str | None
) -> Message:
    if sent.message_id is not None and idempotency_key is not None:
        raise InvalidRequestError(
            "expected `message_id` or the header Idempotency-Key, found both",
            code="two_message_ids",
            param="message_id",
        )
    message_id = sent.message_id
    if idempotency_key is not None:
        message_id = f"i-{hashlib.sha256(idempotency_key.encode()).hexdigest()[:32]}"
    text = cleaned(sent.text)
    command, arguments = parsed(text, ())
    return Message(
        text=text,
        conversation_id=place.conversation_id,
        message_id=message_id if message_id is not None else uuid4().hex,
        command=command,
        arguments=arguments,
        language=preferred_language(request, sent.language),
        request_id=str(request.state.request_id),
    )
