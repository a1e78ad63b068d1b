"""The routes of messages: send a message, follow it, resume following it, and cancel it."""

import asyncio
import hashlib
from dataclasses import replace
from functools import partial
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Depends, Header, Request, Response
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse

from envelope.conversation import PauseReply
from envelope.question import Question
from gateway.answer import Answer
from gateway.api_keys import Scope
from gateway.desk import JobOrder, Message
from gateway.events import EventCursor
from gateway.http.access import Principal, choose_language, list_people, name_person
from gateway.http.admission_queue import QuestionSender
from gateway.http.context import (
    APPROVED,
    ID,
    ConversationAccess,
    HttpChannel,
    MessageId,
    require_conversation,
    use_session,
)
from gateway.http.errors import ForbiddenError, InvalidRequestError
from gateway.http.routes.message_follower import (
    MessageFollower,
    MessageStatus,
    MessageTrajectory,
    answer_response,
)
from gateway.person_tokens import LONGEST_PERSON
from gateway.text import LONGEST_CHARACTERS, clean_text, parse_command

LANGUAGE = r"^[a-zA-Z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}$"
STRATEGY = r"^(?:[a-z][a-z0-9_]{0,39})?$"
EVENT_STREAM = "text/event-stream"
RESPOND_ASYNC = "respond-async"
WIDGET = "widget"
"""The client name recorded for public keys, which are used by the visitors of a website."""
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
        description="requests with the same value are one message of the conversation, for 24 "
        "hours",
    ),
]
Preference = Annotated[
    str | None,
    Header(
        alias="Prefer",
        max_length=200,
        description="`respond-async` (RFC 7240): the response is sent immediately, with status "
        "202, and the message becomes a job, which may take as long as a review",
    ),
]
LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID", max_length=60, description="id of the last event that you received"
    ),
]
_STREAMED: dict[int | str, dict[str, object]] = {
    202: {
        "description": "With `Prefer: respond-async`: the message was accepted.",
        "model": MessageStatus,
    },
    200: {
        "description": "The message's outcome, or its events.",
        "content": {EVENT_STREAM: {"schema": {"type": "string"}, "example": EXAMPLE}},
    },
}
_EVENTS: dict[int | str, dict[str, object]] = {
    200: _STREAMED[200],
    204: {"description": "The message has ended, and there are no events after `Last-Event-ID`."},
}


class NewMessage(BaseModel, frozen=True, extra="forbid"):
    """A message: a question, an answer to a clarifying question, or a command such as `/help`."""

    text: str = Field(
        min_length=1, max_length=LONGEST_CHARACTERS, examples=["How do I configure routing rules?"]
    )
    message_id: str | None = Field(
        None,
        pattern=ID,
        description="an id that you choose; a message with a repeated id is answered once",
    )
    language: str | None = Field(
        None,
        pattern=LANGUAGE,
        description="language of an apology if the language of the text is unknown",
    )
    pause_reply: PauseReply | None = Field(
        None,
        description="reply to the open `pause` of the last reply: `approve`, or `fields` by "
        "name; `text` is shown for it in the conversation",
    )
    way: str | None = Field(
        None,
        max_length=40,
        description="way of answering, instead of that of the assistant; only with a secret key",
        examples=["tools"],
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
        "empty: the configured strategy",
    )
    persona: str = Field(
        "",
        max_length=200,
        description="role or person in whose voice a swarm answers, such as `a patient tutor`",
    )
    supersedes: str | None = Field(
        None,
        pattern=ID,
        description="id of a message of this conversation that is still being answered and "
        "that this message replaces: the replaced message ends as `superseded`, with all its tasks",
    )


class Messages:
    """Sends and follows messages."""

    def __init__(
        self, channel: HttpChannel, stopping: asyncio.Event, sender: QuestionSender
    ) -> None:
        self._channel = channel
        self._sender = sender
        self._follower = MessageFollower(channel, stopping)

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
            prefer: Preference = None,
        ) -> Response:
            """Return the outcome of the message or, with `Accept: text/event-stream`, stream
            everything that happens until then. With `Prefer: respond-async`, return the status of
            the message immediately.
            """
            message = _message(access, request, sent, idempotency_key)
            replaced = sent.supersedes
            if prefers_async(prefer):
                return await self._start(access, message, replaced)
            return await self._send(access, request, message, replaced)

        @router.get(
            f"{base}/{{message_id}}",
            response_model=MessageStatus,
            response_model_exclude_none=True,
            summary="Read the status of a message",
        )
        async def read_message(
            access: Annotated[ConversationAccess, ask], request: Request, message_id: MessageId
        ) -> MessageStatus:
            """Return whether a message is still being answered or, once it has ended, its
            answer.
            """
            return await self._follower.read(access, message_id, choose_language(request))

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
            """Stream the events after `Last-Event-ID` or, without it, from the beginning."""
            language = choose_language(request)
            return await self._follower.follow(access, message_id, last_event_id, language)

        @router.get(
            f"{base}/{{message_id}}/trajectory",
            response_model_exclude_none=True,
            summary="Read the trajectory of a message",
        )
        async def read_message_trajectory(
            access: Annotated[ConversationAccess, ask], message_id: MessageId
        ) -> MessageTrajectory:
            """Return the thoughts, calls, and observations so far, and the usage of each agent.
            Requires a secret key.
            """
            return await self._follower.read_trajectory(access, message_id)

        @router.post(
            f"{base}/{{message_id}}/cancel", response_model=Answer, summary="Cancel a message"
        )
        async def cancel_message(
            access: Annotated[ConversationAccess, ask], request: Request, message_id: MessageId
        ) -> Response:
            """End a message that is being answered, and return its outcome, which is `superseded`
            or the outcome that it already had. Clients that follow the message receive the same.
            """
            return await self._follower.cancel(access, message_id, choose_language(request))

        return router

    async def _admit(
        self, access: ConversationAccess, question: Question, replaced: str | None
    ) -> None:
        """Admit a message, and only then end the message that it replaces."""
        await self._sender.admit(access.caller, question)
        if replaced is not None and replaced != question.message_id:
            await self._follower.replace(access, replaced)

    async def _start(
        self, access: ConversationAccess, message: Message, replaced: str | None
    ) -> Response:
        """Accept a job, and return its status with the URLs at which it can be followed."""
        order = replace(message.order, deadline_seconds=self._channel.job_seconds)
        message = replace(message, order=order)
        question = access.desk.question(message)
        await self._admit(access, question, replaced)
        await self._sender.start(access.caller, access.desk, message)
        await use_session(self._channel, access)
        status = await self._follower.read(access, message.message_id, message.language)
        place = f"/v1/conversations/{access.conversation_id}/messages/{message.message_id}"
        headers = {
            "Location": place,
            "X-Message-Id": message.message_id,
            "Preference-Applied": RESPOND_ASYNC,
        }
        shown = status.model_dump(mode="json", exclude_none=True)
        return JSONResponse(shown, status_code=202, headers=headers)

    async def _send(
        self,
        access: ConversationAccess,
        request: Request,
        message: Message,
        replaced: str | None,
    ) -> Response:
        is_streamed = EVENT_STREAM in request.headers.get("accept", "")
        if is_streamed and self._channel.release != APPROVED:
            message = replace(message, shows_drafts=True)
        question = access.desk.question(message)
        await self._admit(access, question, replaced)
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
        return answer_response(answer, question.message_id)

    async def _stream(
        self, access: ConversationAccess, question: Question, message: Message
    ) -> Response:
        admission = await self._sender.start_stream(access.caller, access.desk, message)
        await use_session(self._channel, access)
        stream = self._follower.stream(
            access,
            question,
            EventCursor(),
            message.language,
            admission,
            message.order.deadline_seconds,
        )
        return stream.response(message_id=question.message_id)


def choose_way(access: ConversationAccess, caller: Principal, way: str | None) -> str | None:
    """Return the way of answering that a request names, if any.

    Raises an error if the way is unknown, or if the caller is a visitor.
    """
    if way is None:
        return None
    if caller.public:
        raise ForbiddenError(
            "`way` cannot be set with a public key; the way configured for the assistant is used",
            code="way_refused",
        )
    known = sorted(access.desk.ways)
    if way not in known:
        raise InvalidRequestError(
            f"expected one of the ways {', '.join(known)}", code="unknown_way", param="way"
        )
    return way


def prefers_async(header: str | None) -> bool:
    """Return whether a `Prefer` header requests a response before the work is done."""
    wanted = (header or "").lower().replace(";", ",").split(",")
    return RESPOND_ASYNC in {preference.strip() for preference in wanted}


def _message(
    access: ConversationAccess, request: Request, sent: NewMessage, idempotency_key: str | None
) -> Message:
    if sent.message_id is not None and idempotency_key is not None:
        raise InvalidRequestError(
            "`message_id` and the header Idempotency-Key cannot be used together",
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
        order=JobOrder(way=choose_way(access, access.caller, sent.way)),
        people=list_people(access.caller, sent.user_id, "user_id"),
        person_name=name_person(access.caller, sent.user_id),
        strategy=sent.strategy,
        persona=sent.persona,
        client=WIDGET if access.caller.public else "",
    )
