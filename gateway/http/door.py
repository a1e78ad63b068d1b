"""What every route of the HTTP door stands on, and the way in to one conversation."""

import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Protocol

import structlog
from fastapi import Depends, Header, Path, Query, Request
from fastapi.security import HTTPBearer

from broker.port import Broker, Fields
from envelope.question import Question
from gateway.answer import Answer, Shows, Words, answer_of
from gateway.desk import Desk
from gateway.http.errors import ForbiddenError, InvalidRequestError, unknown
from gateway.http.guard import Caller, Guard
from gateway.http.links import SourceLinks
from gateway.keys import Scope, digest_of
from gateway.port import Conversations

ID = r"^[A-Za-z0-9][A-Za-z0-9._:~-]{0,127}$"
"""An id of a conversation or a message that a client chooses."""


HEARTBEAT_SECONDS = 10.0
"""How long a stream is silent at most; a proxy cuts what says nothing."""


class Meter(Protocol):
    """Counts what happens at the door."""

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count one request; an unknown address is the route ``."""
        ...

    def streaming(self, change: int) -> None:
        """Count a stream that opens (1) or ends (-1)."""
        ...

    def ended(self, outcome: str) -> None:
        """Count an outcome that was shown."""
        ...

    def thumbed(self, thumb: str) -> None:
        """Count feedback."""
        ...


AssistantName = Annotated[
    str | None,
    Query(
        alias="assistant",
        max_length=64,
        description="which of the key's assistants; may be left out where there is one",
    ),
]
ConversationId = Annotated[str, Path(pattern=ID, examples=["c-7f3a"])]
MessageId = Annotated[str, Path(pattern=ID, examples=["m-1"])]
VisitToken = Annotated[
    str | None,
    Header(
        alias="X-Conversation-Token",
        max_length=100,
        description="of a conversation that was opened with a public key",
    ),
]
bearer = HTTPBearer(auto_error=False, description="made with `refdesk keys create`")


@dataclass(frozen=True, slots=True)
class Door:
    """The parts: `desks` by tenant and assistant; a tenant's first assistant is its default."""

    broker: Broker
    desks: Mapping[tuple[str, str], Desk]
    guard: Guard
    conversations: Conversations
    words: Words
    meter: Meter
    links: SourceLinks = field(default_factory=SourceLinks)
    heartbeat_seconds: float = HEARTBEAT_SECONDS

    def shows(self, caller: Caller, place: Question) -> Shows:
        """Return what shows replies of the assistant of `place` to a caller."""
        opens = self.links.of(caller, place)

        def show(reply: Fields, language: str) -> Answer:
            return answer_of(reply, words=self.words, language=language, opens=opens)

        return show

    def assistants(self, caller: Caller) -> list[str]:
        """Return the assistants that the caller may talk to."""
        return [
            assistant
            for tenant, assistant in self.desks
            if tenant == caller.tenant and (not caller.assistants or assistant in caller.assistants)
        ]

    def desk(self, caller: Caller, assistant: str | None) -> Desk:
        """Return the desk of an assistant; raises `InvalidRequestError`."""
        known = self.assistants(caller)
        if assistant is None and known:
            assistant = known[0]
        if assistant not in known:
            raise InvalidRequestError(
                f"expected one of the assistants {known}, found another name",
                code="unknown_assistant",
                param="assistant",
                status=404,
            )
        return self.desks[caller.tenant, assistant]

    def entered(self, caller: Caller, assistant: str | None, conversation_id: str) -> "Entered":
        """Return a caller's place at a conversation; raises `InvalidRequestError`."""
        desk = self.desk(caller, assistant)
        shows = self.shows(caller, desk.named(conversation_id, "-"))
        return Entered(caller, desk, conversation_id, shows)


@dataclass(frozen=True, slots=True)
class Entered:
    """A caller at one conversation, which is theirs."""

    caller: Caller
    desk: Desk
    conversation_id: str
    shows: Shows

    def question(self, message_id: str = "-") -> Question:
        """Return the full name of one of its messages."""
        return self.desk.named(self.conversation_id, message_id)


Admits = Callable[..., Awaitable[Caller]]
Enters = Callable[..., Awaitable[Entered]]


def admits(door: Door, scope: Scope) -> Admits:
    """Return the dependency of routes that need a scope."""

    async def admitted(request: Request, _bearer: Annotated[object, Depends(bearer)]) -> Caller:
        caller = await door.guard.caller(request)
        structlog.contextvars.bind_contextvars(
            tenant=caller.tenant, key=caller.key.id if caller.key is not None else None
        )
        caller.need(scope)
        await door.guard.admit(caller)
        return caller

    return admitted


def enters(door: Door, scope: Scope) -> Enters:
    """Return the dependency of every route of one conversation: the only way in."""

    async def entered(
        caller: Annotated[Caller, Depends(admits(door, scope))],
        conversation_id: ConversationId,
        assistant: AssistantName = None,
        token: VisitToken = None,
    ) -> Entered:
        place = door.entered(caller, assistant, conversation_id)
        structlog.contextvars.bind_contextvars(conversation_id=conversation_id)
        if caller.public:
            await _check_visit(door, place, token)
        return place

    return entered


async def open_visit(door: Door, place: Entered) -> str:
    """Return the token of a new conversation of a visitor."""
    token = secrets.token_urlsafe(32)
    await door.conversations.open_visit(place.question(), digest_of(token))
    return token


async def _check_visit(door: Door, place: Entered, token: str | None) -> None:
    """Let in who opened the conversation; for all others there is none."""
    if token is None:
        raise ForbiddenError(
            "a conversation that was opened with a public key needs its token in the header "
            "X-Conversation-Token; POST /v1/conversations gives both",
            code="missing_conversation_token",
        )
    known = await door.conversations.visit(place.question())
    if known is None or not hmac.compare_digest(digest_of(token), known):
        raise unknown("conversation")
