"""What every route of the HTTP door stands on, and the way in to one conversation."""

import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, Literal, Protocol

import structlog
from fastapi import Depends, Header, Path, Query, Request
from fastapi.security import HTTPBearer

from broker.ports import Eraser, ReplyReader
from broker.values import Fields, JournalEntry
from envelope.question import Question
from gateway.answer import Answer, Shows, Words, answer_of
from gateway.api_keys import Scope, digest_of
from gateway.desk import Desk
from gateway.http.access import Guard, Principal
from gateway.http.errors import ForbiddenError, InvalidRequestError, unknown
from gateway.http.links import SourceLinks
from gateway.port import Conversations, Visit

ID = r"^[A-Za-z0-9][A-Za-z0-9._:~-]{0,127}$"
"""An id of a conversation or a message that a client chooses; other channels' have a slash."""
_EARLIER_CHAT = re.compile(
    r"\d{1,20}:\d{1,20}(?::\d{1,20})?|[A-Z0-9]{1,24}:[A-Z0-9]{1,24}:(?:direct|\d{1,20}\.\d{1,12})",
    re.ASCII,
)
"""An id of a chat in Telegram or Slack as it was stored before it began with its channel."""

HEARTBEAT_SECONDS = 10.0
"""How long a stream is silent at most; a proxy cuts what says nothing."""


class HttpMeter(Protocol):
    """Counts what happens at the door."""

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count one request; an unknown address is the route ``."""
        ...

    def streaming(self, change: int) -> None:
        """Count a stream that opens (1) or ends (-1)."""
        ...

    def count_outcome(self, outcome: str) -> None:
        """Count an outcome that was shown."""
        ...

    def count_feedback(self, rating: str) -> None:
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
Release = Literal["checked", "approved"]
CHECKED: Final = "checked"
"""Each sentence is shown as soon as it passed the checks without a model."""
APPROVED: Final = "approved"
"""Nothing is shown before the judge has approved the answer."""
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
class HttpChannel:
    """The parts: `desks` by tenant and assistant; a tenant's first assistant is its default."""

    replies: ReplyReader
    eraser: Eraser
    desks: Mapping[tuple[str, str], Desk]
    guard: Guard
    conversations: Conversations
    words: Words
    meter: HttpMeter
    links: SourceLinks = field(default_factory=SourceLinks)
    heartbeat_seconds: float = HEARTBEAT_SECONDS
    release: Release | None = None
    """When an answer is shown; None: as early as the reader can take back what it was shown."""

    def shows(self, caller: Principal, place: Question) -> Shows:
        """Return what shows replies of the assistant of `place` to a caller."""
        opens = self.links.of(caller, place)

        def show(reply: Fields, language: str) -> Answer:
            return answer_of(
                reply,
                words=self.words,
                language=language,
                opens=opens,
                with_usage=not caller.public,
            )

        return show

    def assistants(self, caller: Principal) -> list[str]:
        """Return the assistants that the caller may talk to."""
        return [
            assistant
            for tenant, assistant in self.desks
            if tenant == caller.tenant and (not caller.assistants or assistant in caller.assistants)
        ]

    def desk(self, caller: Principal, assistant: str | None) -> Desk:
        """Return the desk of an assistant; raises `InvalidRequestError`."""
        known = self.assistants(caller)
        if assistant is None and known:
            assistant = known[0]
        if assistant not in known:
            raise InvalidRequestError(
                f"there is no such assistant: expected one of {known}",
                code="unknown_assistant",
                param="assistant",
                status=404,
            )
        return self.desks[caller.tenant, assistant]

    def enter(
        self, caller: Principal, assistant: str | None, conversation_id: str
    ) -> "ConversationAccess":
        """Return a caller's place at a conversation; raises `InvalidRequestError`."""
        desk = self.desk(caller, assistant)
        shows = self.shows(caller, desk.name_question(conversation_id, "-"))
        return ConversationAccess(caller, desk, conversation_id, shows)


@dataclass(frozen=True, slots=True)
class ConversationAccess:
    """A caller at one conversation, which is theirs."""

    caller: Principal
    desk: Desk
    conversation_id: str
    shows: Shows
    visit: Visit | None = None
    """Of a visitor, who has shown its token."""

    def question(self, message_id: str = "-") -> Question:
        """Return the full name of one of its messages."""
        return self.desk.name_question(self.conversation_id, message_id)


def may_follow(caller: Principal, accepted: JournalEntry) -> bool:
    """Whether a caller may learn what becomes of a message, from its first journal entry.

    A reader may, and a visitor, whose token opened the conversation. With `ask` alone, only the key
    that sent the message may.
    """
    if caller.public or Scope.READ in caller.scopes:
        return True
    return accepted.fields.get("key") == caller.key_id


Admits = Callable[..., Awaitable[Principal]]
Enters = Callable[..., Awaitable[ConversationAccess]]


def recognizes(door: HttpChannel, scope: Scope) -> Admits:
    """Return the dependency that knows the caller of a route that needs a scope, and counts
    nothing."""

    async def recognize(request: Request, _bearer: Annotated[object, Depends(bearer)]) -> Principal:
        caller = await door.guard.caller(request)
        structlog.contextvars.bind_contextvars(
            tenant=caller.tenant, key=caller.key.id if caller.key is not None else None
        )
        caller.need(scope)
        return caller

    return recognize


def admits(door: HttpChannel, scope: Scope) -> Admits:
    """Return the dependency of routes that need a scope and are no conversation's."""

    async def admit(caller: Annotated[Principal, Depends(recognizes(door, scope))]) -> Principal:
        await door.guard.admit(caller)
        return caller

    return admit


def enters(door: HttpChannel, scope: Scope) -> Enters:
    """Return the dependency of every route of one conversation: the only way in."""

    async def enter(
        caller: Annotated[Principal, Depends(recognizes(door, scope))],
        conversation_id: ConversationId,
        assistant: AssistantName = None,
        token: VisitToken = None,
    ) -> ConversationAccess:
        place = door.enter(caller, assistant, conversation_id)
        structlog.contextvars.bind_contextvars(conversation_id=conversation_id)
        if caller.public:
            place = await _check_visit(door, place, token)
        await check_no_chat(door, place.question())
        await door.guard.admit(caller, entered=True)
        return place

    return enter


async def check_no_chat(door: HttpChannel, question: Question) -> None:
    """Raise `InvalidRequestError` where a chat of another channel was stored under this id."""
    is_like = _EARLIER_CHAT.fullmatch(question.conversation_id) is not None
    if is_like and await door.conversations.is_chat(question):
        raise unknown("conversation")


async def open_visit(door: HttpChannel, place: ConversationAccess) -> str:
    """Return the token of a new conversation of a visitor."""
    token = secrets.token_urlsafe(32)
    await door.conversations.open_visit(place.question(), digest_of(token))
    return token


async def use_visit(door: HttpChannel, place: ConversationAccess) -> None:
    """Let a conversation in which something was asked now live as long as others."""
    if place.visit is not None and place.visit.is_empty:
        await door.conversations.use_visit(place.question(), place.visit.digest)


async def _check_visit(
    door: HttpChannel, place: ConversationAccess, token: str | None
) -> ConversationAccess:
    """Let in who opened the conversation; for all others there is none."""
    if token is None:
        raise ForbiddenError(
            "a conversation that was opened with a public key needs its token in the header "
            "X-Conversation-Token; POST /v1/conversations gives both",
            code="missing_conversation_token",
        )
    credential = digest_of("\x1f".join((*place.question().conversation, token)))
    door.guard.check_token(place.caller, credential)
    known = await door.conversations.visit(place.question())
    good = known is not None and hmac.compare_digest(digest_of(token), known.digest)
    await door.guard.judge_token(place.caller, credential, good=good)
    if known is None or not good:
        raise unknown("conversation")
    return replace(place, visit=known)
