"""The routes that open, read, delete, and rate conversations."""

from collections.abc import Sequence
from typing import Annotated, Literal
from uuid import uuid4

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field

from broker.journal_reader import RecentMessage
from envelope.conversation import Turn
from envelope.question import has_all
from gateway.answer import Answer
from gateway.api_keys import Scope
from gateway.desk import erase
from gateway.http.access import Principal, choose_language, list_people
from gateway.http.context import (
    AssistantName,
    ConversationAccess,
    HttpChannel,
    MessageId,
    identify_caller,
    may_see,
    open_session,
    require_conversation,
    require_scope,
)
from gateway.http.errors import InvalidRequestError, unknown
from memory.http_state import Feedback

MOST_MESSAGES = 50
LONGEST_REASON = 1_000


class Opened(BaseModel):
    """A new conversation."""

    conversation_id: str = Field(examples=["c-7f3a"])
    assistant: str
    token: str | None = Field(
        None,
        description="token of the conversation, only with a public key. Send it in the header "
        "X-Conversation-Token with every request. It is returned only once",
    )


class HistoryTurn(BaseModel):
    """A turn whose journal is no longer stored."""

    speaker: Literal["user", "assistant"]
    text: str


class ConversationMessage(BaseModel):
    """A message, with its answer once it has ended."""

    message_id: str
    text: str
    at: float = Field(description="time of acceptance, Unix seconds")
    status: Literal["running", "ended"]
    answer: Answer | None = None
    feedback: Feedback | None = None


class Conversation(BaseModel):
    """The turns and messages, oldest first."""

    conversation_id: str
    earlier: list[HistoryTurn] = Field([], description="text of the turns before `messages`")
    messages: list[ConversationMessage]


class NewFeedback(BaseModel, frozen=True, extra="forbid"):
    """The rating of an answer."""

    rating: Literal["up", "down"]
    reason: str = Field("", max_length=LONGEST_REASON, examples=["It misses the second step."])


class NewestPause(BaseModel):
    """The newest open pause of a person, which is answered with a message in its conversation."""

    conversation_id: str
    pause_id: str
    kind: str = Field(examples=["clarification", "information", "approval"])
    asked: str = Field(description="question of the user")


class Reading:
    """Reads, deletes, and rates conversations."""

    def __init__(self, channel: HttpChannel) -> None:
        self._channel = channel

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(tags=["conversations"])
        base = "/v1/conversations/{conversation_id}"

        @router.get("/v1/pause", summary="List open requests to a person")
        async def find_pause(
            caller: Annotated[Principal, Depends(require_scope(self._channel, Scope.READ))],
            user_id: Annotated[str | None, Query(min_length=1, max_length=128)] = None,
            assistant: AssistantName = None,
        ) -> NewestPause:
            """Return the newest open pause of a person, in any of their conversations."""
            return await self._find_pause(caller, user_id, assistant)

        @router.get(base, response_model_exclude_none=True, summary="Read a conversation")
        async def read_conversation(
            access: Annotated[
                ConversationAccess, Depends(require_conversation(self._channel, Scope.READ))
            ],
            request: Request,
        ) -> Conversation:
            """Return the turns and messages of the conversation."""
            return await self._read(access, choose_language(request))

        @router.delete(base, status_code=204, summary="Erase a conversation")
        async def forget_conversation(
            access: Annotated[
                ConversationAccess, Depends(require_conversation(self._channel, Scope.FORGET))
            ],
        ) -> Response:
            """End the open messages, and erase the conversation."""
            await self._forget(access)
            return Response(status_code=204)

        @router.post(
            f"{base}/messages/{{message_id}}/feedback", status_code=204, summary="Rate an answer"
        )
        async def rate_answer(
            access: Annotated[
                ConversationAccess, Depends(require_conversation(self._channel, Scope.FEEDBACK))
            ],
            message_id: MessageId,
            given: NewFeedback,
        ) -> Response:
            """Store a rating and a reason, replacing an earlier one."""
            await self._rate(access, message_id, given)
            return Response(status_code=204)

        return router

    async def _read(self, access: ConversationAccess, language: str) -> Conversation:
        question = access.question()
        recent = await self._channel.conversations.recent_messages(question, limit=MOST_MESSAGES)
        recent = [message for message in recent if may_see(access.caller, message.first)]
        turns = [
            turn
            for turn in await self._channel.conversations.turns(question)
            if has_all(turn.groups or (), access.caller.groups)
        ]
        if not recent and not turns and not access.caller.public:
            raise unknown("conversation")
        feedback = await self._channel.conversations.feedback(question)
        return Conversation(
            conversation_id=access.conversation_id,
            earlier=[
                HistoryTurn(speaker=turn.speaker, text=turn.text)
                for turn in _earlier(turns, recent)
            ],
            messages=[_message(access, message, feedback, language) for message in recent],
        )

    async def _find_pause(
        self, caller: Principal, user_id: str | None, assistant: str | None
    ) -> NewestPause:
        people = list_people(caller, user_id, "user_id")
        if caller.public or not people:
            raise InvalidRequestError(
                "this request requires a secret key, and the person as user_id or in the "
                "header X-Person-Token",
                code="person_required",
                param="user_id",
            )
        conversations = self._channel.conversations
        desk = self._channel.desk(caller, assistant)
        for named in await conversations.list_paused(desk.name_question("-", "-"), people[0]):
            pause = await conversations.pause(desk.name_question(named, "-"))
            if pause is None or people[0] not in pause.people:
                continue
            if has_all(pause.groups or (), caller.groups):
                return NewestPause(
                    conversation_id=named,
                    pause_id=pause.pause_id,
                    kind=pause.kind,
                    asked=pause.asked,
                )
        raise unknown("pause")

    async def _forget(self, access: ConversationAccess) -> None:
        """Erase the conversation, and with it the visitor's access."""
        question = access.question()
        await erase(self._channel.eraser, self._channel.conversations, question)
        await self._channel.conversations.end_session(question)

    async def _rate(self, access: ConversationAccess, message_id: str, given: NewFeedback) -> None:
        question = access.question(message_id)
        journal = await self._channel.replies.read_journal(question)
        if not journal or not may_see(access.caller, journal[0]):
            raise unknown("message")
        if await self._channel.replies.read_reply(question) is None:
            raise InvalidRequestError(
                "this message has no answer yet", code="message_not_finished", status=409
            )
        await self._channel.conversations.give_feedback(
            question, Feedback(rating=given.rating, reason=given.reason)
        )
        self._channel.meter.count_feedback(given.rating)


def opening_router(channel: HttpChannel) -> APIRouter:
    """Return the route that opens a conversation."""
    router = APIRouter(tags=["conversations"])

    @router.post("/v1/conversations", status_code=201, summary="Open a conversation")
    async def open_conversation(
        caller: Annotated[Principal, Depends(identify_caller(channel, Scope.ASK))],
        response: Response,
        assistant: AssistantName = None,
    ) -> Opened:
        """Return a new id. With a secret key, you can also choose the ids yourself. With a public
        key, this is the only way, and the conversation gets a separate token.
        """
        access = channel.enter(caller, assistant, f"c-{uuid4().hex}")
        await channel.guard.admit_opening(caller)
        token = await open_session(channel, access) if caller.public else None
        response.headers["Location"] = f"/v1/conversations/{access.conversation_id}"
        return Opened(
            conversation_id=access.conversation_id,
            assistant=access.question().assistant,
            token=token,
        )

    return router


def _message(
    access: ConversationAccess, message: RecentMessage, feedback: dict[str, Feedback], language: str
) -> ConversationMessage:
    ended = message.last.kind == "finished"
    message_id = message.question.message_id
    return ConversationMessage(
        message_id=message_id,
        text=str(message.first.fields.get("text") or ""),
        at=message.first.at,
        status="ended" if ended else "running",
        answer=access.shows(message.last.fields, language) if ended else None,
        feedback=feedback.get(message_id),
    )


def _earlier(turns: Sequence[Turn], messages: Sequence[RecentMessage]) -> list[Turn]:
    """Return the turns that are not among the messages, comparing from the newest backwards."""
    left = list(turns)
    for message in reversed(messages):
        if len(left) >= 2 and left[-2].text == message.first.fields.get("text"):
            del left[-2:]
    return left
