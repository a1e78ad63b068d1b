"""The common parts of all HTTP routes, and the access checks for conversations."""

import hmac
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal

import structlog
from fastapi import Depends, Header, Path, Query, Request
from fastapi.security import HTTPBearer
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from broker.ports import Eraser, ReplyReader
from broker.values import Fields, JournalEntry
from envelope.outcome import Outcome
from envelope.question import Question, has_all
from gateway.answer import Answer, Shows, Words, answer_of
from gateway.api_keys import Scope, digest_of
from gateway.conversations import Conversations
from gateway.desk import Desk
from gateway.http.access import Guard, Principal
from gateway.http.errors import ForbiddenError, InvalidRequestError, unknown
from gateway.http.links import SourceLinks
from gateway.port import HandOver
from memory.http_state import VisitorSession

ID = r"^[A-Za-z0-9][A-Za-z0-9._:~-]{0,127}$"
"""A conversation or message id chosen by a client; ids from other channels contain a slash."""
_EARLIER_CHAT = re.compile(
    r"\d{1,20}:\d{1,20}(?::\d{1,20})?|[A-Z0-9]{1,24}:[A-Z0-9]{1,24}:(?:direct|\d{1,20}\.\d{1,12})",
    re.ASCII,
)
"""A chat id in Telegram or Slack from the time before ids started with the channel."""

HEARTBEAT_SECONDS = 10.0
"""The maximum silence in a stream, because proxies close silent connections."""

BUCKETS = (0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)

QUESTION_ROUTES = (
    "/v1/conversations/{conversation_id}/messages", "/v1/chat/completions", "/v1/responses", "",
)  # fmt: skip
"""The routes for questions; the empty one is for requests whose key could not be read."""
ASKS_FOR_PERSON, HANDED_OVER = "asks_for_person", "handed_over"
"""Attributes of a reply: whether the user requested a person, and whether the conversation was
handed over to one.
"""
_UNHELPED = frozenset({Outcome.REFUSED, Outcome.FAILED})
"""Outcomes after which the user is offered to contact a person."""
AssistantName = Annotated[
    str | None,
    Query(
        alias="assistant",
        max_length=64,
        description="assistant of the key; default: the first",
    ),
]
Release = Literal["checked", "approved"]
CHECKED: Final = "checked"
"""Each sentence is shown as soon as it has passed the checks that do not need a model."""
APPROVED: Final = "approved"
"""Nothing is shown until the judge has approved the answer."""
ConversationId = Annotated[str, Path(pattern=ID, examples=["c-7f3a"])]
MessageId = Annotated[str, Path(pattern=ID, examples=["m-1"])]
VisitToken = Annotated[
    str | None,
    Header(
        alias="X-Conversation-Token",
        max_length=100,
        description="token of a conversation that was opened with a public key",
    ),
]
bearer = HTTPBearer(auto_error=False, description="a key from `refdesk keys create`")


@dataclass(frozen=True, slots=True)
class ConversationAccess:
    """A caller's access to one of their conversations."""

    caller: Principal
    desk: Desk
    conversation_id: str
    shows: Shows
    session: VisitorSession | None = None
    """The session of a visitor with a valid token."""

    def question(self, message_id: str = "-") -> Question:
        """Return the question that identifies a message of the conversation."""
        return self.desk.name_question(self.conversation_id, message_id)


RequireCaller = Callable[..., Awaitable[Principal]]
RequireConversation = Callable[..., Awaitable[ConversationAccess]]


class HttpMeter:
    """Counts requests and outcomes in a registry, by default a new one; `began_at` is in Unix
    seconds.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.began_at = time.time()
        self.registry = registry = CollectorRegistry() if registry is None else registry
        self._requests = Counter(
            "refdesk_http_requests", "Answered requests.", ["route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "refdesk_http_seconds",
            "Seconds to answer.",
            ["route"],
            registry=registry,
            buckets=BUCKETS,
        )
        self._streams = Gauge("refdesk_http_streams", "Open event streams.", registry=registry)
        self._outcomes = Counter(
            "refdesk_http_outcomes",
            "Outcomes that were returned to clients.",
            ["outcome"],
            registry=registry,
        )
        self._feedback = Counter(
            "refdesk_feedback", "Ratings of answers.", ["rating"], registry=registry
        )

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request; the route of an unknown path is the empty string."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def count_turned_away(self) -> int:
        """Return how many requests to ask were answered with 503 since this meter was created."""
        turned_away = [
            self.registry.get_sample_value(
                "refdesk_http_requests_total", {"route": route, "status": "503"}
            )
            for route in QUESTION_ROUTES
        ]
        return sum(int(count) for count in turned_away if count is not None)

    def change_streams(self, change: int) -> None:
        """Count a stream that opens (1) or closes (-1)."""
        self._streams.inc(change)

    def count_outcome(self, outcome: str) -> None:
        """Count an outcome that was shown."""
        self._outcomes.labels(outcome).inc()

    def count_feedback(self, rating: str) -> None:
        """Count feedback."""
        self._feedback.labels(rating).inc()


@dataclass(frozen=True, slots=True)
class HttpChannel:
    """The parts of the HTTP channel: `desks` by tenant and assistant, with a tenant's default
    first.
    """

    replies: ReplyReader
    eraser: Eraser
    find_write_fault: Callable[[], Awaitable[str]]
    """Returns why Redis currently rejects writes, or an empty string."""
    desks: Mapping[tuple[str, str], Desk]
    guard: Guard
    conversations: Conversations
    words: Words
    meter: HttpMeter
    links: SourceLinks = field(default_factory=SourceLinks)
    link_hosts: frozenset[str] = frozenset()
    """Hosts to which answers may link if a cited source contains the URL."""
    heartbeat_seconds: float = HEARTBEAT_SECONDS
    release: Release | None = None
    """When an answer is shown. None means `checked` on streams that can retract text, and
    `approved` on all others.
    """
    job_seconds: float | None = None
    """The time limit for reviews and other jobs; None means that of a question."""
    handover: HandOver | None = None
    """Hands conversations over to people; None if no receiver is configured."""

    def shows(self, caller: Principal, question: Question) -> Shows:
        """Return a function that turns replies to a question into answers for a caller."""
        opens = self.links.of(caller, question)
        handover = self.handover
        can_hand_over = handover is not None and handover.hands_over(
            question.tenant, question.assistant
        )

        def show(reply: Fields, language: str) -> Answer:
            answer = answer_of(
                reply,
                words=self.words,
                language=language,
                opens=opens,
                link_hosts=self.link_hosts,
                with_usage=not caller.public,
            )
            if not can_hand_over:
                return answer
            is_wanted = answer.outcome in _UNHELPED or bool(reply.get(ASKS_FOR_PERSON))
            offer = "offered" if is_wanted else "possible"
            update: dict[str, Any] = {"handover": "requested" if reply.get(HANDED_OVER) else offer}
            if handover is not None and handover.mails_visitors:
                update["handover_address"] = True
            return answer.model_copy(update=update)

        return show

    def assistants(self, caller: Principal) -> list[str]:
        """Return the assistants that the caller may use."""
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
        """Return a caller's access to a conversation; raises `InvalidRequestError`."""
        desk = self.desk(caller, assistant)
        shows = self.shows(caller, desk.name_question(conversation_id, "-"))
        return ConversationAccess(caller, desk, conversation_id, shows)


def may_follow(caller: Principal, accepted: JournalEntry) -> bool:
    """Return whether a caller may follow a message, based on its first journal entry.

    A caller who lacks a group for which the message was answered may not follow it. Callers with
    the scope `read` may, and so may visitors with the token of the conversation. A key with only
    the scope `ask` may follow only messages that it sent itself.
    """
    if not may_see(caller, accepted):
        return False
    if caller.public or Scope.READ in caller.scopes:
        return True
    return accepted.fields.get("key") == caller.key_id


def may_see(caller: Principal, accepted: JournalEntry) -> bool:
    """Return whether a caller has every group for which a message was answered."""
    recorded = accepted.fields.get("groups")
    needed = [str(group) for group in recorded] if isinstance(recorded, list) else []
    return has_all(needed, caller.groups)


def identify_caller(channel: HttpChannel, scope: Scope) -> RequireCaller:
    """Return a dependency that provides a caller with this scope, without counting the request."""

    async def recognize(request: Request, _bearer: Annotated[object, Depends(bearer)]) -> Principal:
        caller = await channel.guard.caller(request)
        structlog.contextvars.bind_contextvars(
            tenant=caller.tenant, key=caller.key.id if caller.key is not None else None
        )
        caller.need(scope)
        return caller

    return recognize


def require_scope(channel: HttpChannel, scope: Scope) -> RequireCaller:
    """Return a dependency for routes outside of conversations that require a scope."""

    async def admit(
        caller: Annotated[Principal, Depends(identify_caller(channel, scope))],
    ) -> Principal:
        await channel.guard.admit(caller)
        return caller

    return admit


def require_conversation(channel: HttpChannel, scope: Scope) -> RequireConversation:
    """Return a dependency for all routes of a conversation. There is no other way to access a
    conversation.
    """

    async def enter(
        caller: Annotated[Principal, Depends(identify_caller(channel, scope))],
        conversation_id: ConversationId,
        assistant: AssistantName = None,
        token: VisitToken = None,
    ) -> ConversationAccess:
        access = channel.enter(caller, assistant, conversation_id)
        structlog.contextvars.bind_contextvars(conversation_id=conversation_id)
        if caller.public:
            access = await _check_session(channel, access, token)
        await check_no_chat(channel, access.question())
        await channel.guard.admit(caller, entered=True)
        return access

    return enter


async def check_no_chat(channel: HttpChannel, question: Question) -> None:
    """Raise `InvalidRequestError` if a chat channel has stored a conversation under this id."""
    is_like = _EARLIER_CHAT.fullmatch(question.conversation_id) is not None
    if is_like and await channel.conversations.is_chat(question):
        raise unknown("conversation")


async def open_session(channel: HttpChannel, access: ConversationAccess) -> str:
    """Open the session of a visitor, and return the token for the new conversation."""
    token = secrets.token_urlsafe(32)
    await channel.conversations.open_session(access.question(), digest_of(token))
    return token


async def use_session(channel: HttpChannel, access: ConversationAccess) -> None:
    """Extend the lifetime of a conversation after its first question."""
    if access.session is not None and access.session.is_empty:
        await channel.conversations.use_session(access.question(), access.session.digest)


async def _check_session(
    channel: HttpChannel, access: ConversationAccess, token: str | None
) -> ConversationAccess:
    """Admit the visitor who opened the conversation; for everybody else, it is reported as not
    found.
    """
    if token is None:
        raise ForbiddenError(
            "a conversation that was opened with a public key requires its token in the header "
            "X-Conversation-Token; POST /v1/conversations returns both",
            code="missing_conversation_token",
        )
    credential = digest_of("\x1f".join((*access.question().conversation, token)))
    channel.guard.check_token(access.caller, credential)
    known = await channel.conversations.session(access.question())
    good = known is not None and hmac.compare_digest(digest_of(token), known.digest)
    await channel.guard.judge_token(access.caller, credential, good=good)
    if known is None or not good:
        raise unknown("conversation")
    return replace(access, session=known)
