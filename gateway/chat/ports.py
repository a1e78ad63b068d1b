"""The interfaces of a chat channel: its stored state, the platform with its errors, and its groups.

GatewayError
└── UnreadableError   an event of the platform does not have the expected format

PushError
├── RetryableError     try again after `seconds`; `by_platform`: the platform specified them
├── PermanentError     the platform will never accept this call
│   └── PostNotFoundError   the post to edit does not exist: create a new one
├── CallSkippedError   the call would come too late to be useful, and was not made
└── NoOpError          the platform reports that nothing had to change

Everybody in a channel can read the answers there. Therefore, the groups of a person apply only in a
private chat with this person; in a channel or a group chat, the groups of that channel or chat
apply.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from broker.values import Fields
from envelope.question import Question
from gateway.answer import Answer
from gateway.errors import GatewayError, MessageError

_OF_FORM = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, MessageError)
log = structlog.get_logger("gateway")

_DIRECT_PREFIX = "D"
"""The prefix of the ids of direct messages in Slack."""


class UnreadableError(GatewayError):
    """An event does not have the expected format; receiving it again would not help."""


class PushError(GatewayError):
    """A platform did not carry out a call."""


class RetryableError(PushError):
    """The call may succeed after `seconds`; `by_platform` is true if the platform specified the
    time.
    """

    def __init__(self, message: str, seconds: float, *, by_platform: bool = False) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.by_platform = by_platform


class PermanentError(PushError):
    """The call will never succeed."""


class PostNotFoundError(PermanentError):
    """The post does not exist."""


class CallSkippedError(PushError):
    """The call was not made."""


class NoOpError(PushError):
    """No change was needed."""


class MembershipError(GatewayError):
    """The platform did not return the members of its user groups."""


class UserGroups(Protocol):
    """The user groups of a platform, which it manages itself."""

    async def find(self, person: str) -> Collection[str]:
        """Return the ids of the user groups of a person; raises `MembershipError`."""
        ...


@dataclass(frozen=True, slots=True)
class ChatGroups:
    """The groups of people, user groups, and conversations, by their ids on one platform.

    `memberships` finds the user groups of a person; it is None if the platform has no user groups.
    """

    people: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    user_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    memberships: UserGroups | None = None

    async def warm(self) -> None:
        """Read the user groups at startup, so that problems are logged then."""
        if not self.user_groups or self.memberships is None:
            return
        try:
            await self.memberships.find("")
        except MembershipError as error:
            log.warning("user_groups_unavailable", error=str(error))

    async def find(self, person: str, post: Mapping[str, str]) -> tuple[str, ...]:
        """Return the groups for an answer that is shown at `post`, a location as the platform
        states it.

        Raises `MembershipError`. If the platform does not respond, the question is not asked with
        fewer groups, because documents would seem to be missing.
        """
        if "chat" in post:
            # The id of a private chat in Telegram is the id of its person.
            place, is_private = post["chat"], post["chat"] == person
        else:
            place = post.get("channel", "")
            is_private = place.startswith(_DIRECT_PREFIX)
        if not is_private:
            return self.places.get(place, ())
        groups = set(self.people.get(person, ()))
        if person and self.user_groups and self.memberships is not None:
            for joined in await self.memberships.find(person):
                groups.update(self.user_groups.get(joined, ()))
        return tuple(sorted(groups))


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message that a chat channel received.

    - `post`: where the answer belongs, in the platform's terms
    - `order`: increases within a conversation
    - `edits`: the id of the message that this text replaces
    - `fixed`: the fixed text that answers a command
    - `alone`: whether it must not join a burst
    - `person`: the author, for the limits per person
    - `people`: digests of further authors, if the text combines several messages
    """

    question: Question
    text: str
    post: Mapping[str, str]
    order: float
    language: str | None = None
    command: str | None = None
    arguments: tuple[str, ...] = ()
    edits: str | None = None
    fixed: str = ""
    alone: bool = False
    person: str = ""
    people: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer to show; `language` is the language of the fixed texts around it."""

    question: Question
    answer: Answer
    post: Mapping[str, str]
    language: str
    fixed: str = ""
    buttons: Sequence["Button"] = ()


@dataclass(frozen=True, slots=True)
class Button:
    """An option, and the token that the desk resolves."""

    label: str
    token: str
    kind: str = "option"
    url: str | None = None


class Channel(Protocol):
    """A chat platform. A failed call raises a `PushError`, and every call can be repeated.

    A typing indicator that fades is shown again every `activity_seconds`; None means that it does
    not fade.
    """

    name: str
    activity_seconds: float | None

    async def show_activity(self, question: Question, post: Mapping[str, str]) -> None:
        """Show a typing indicator for this message."""
        ...

    async def hide_activity(self, question: Question, post: Mapping[str, str]) -> None:
        """Remove the typing indicator."""
        ...

    def render(self, shown: Shown) -> Sequence[Fields]:
        """Return the posts of an answer; at least one."""
        ...

    async def post_placeholder(
        self, post: Mapping[str, str], text: str, *, soon: bool = False
    ) -> str:
        """Post a text where the answer will be shown; return its id.

        If `soon` is true, raises `CallSkippedError` instead of waiting for long, like
        `show_activity`.
        """
        ...

    async def edit(
        self, post: Mapping[str, str], id_: str, part: Fields, *, is_draft: bool = False
    ) -> None:
        """Replace the content of a post; raises `PostNotFoundError` if it does not exist.

        A draft never waits, so that outcomes are not delayed; it raises `CallSkippedError` instead.
        """
        ...

    async def delete(self, post: Mapping[str, str], id_: str) -> None:
        """Delete a post. It is not an error if the post does not exist."""
        ...


@dataclass(frozen=True, slots=True)
class ChatPolicy:
    """How a chat channel handles several messages from a person; times are in seconds."""

    burst_seconds: float = 1.0
    supersedes: bool = True
    default_language: str = "en"
    deadline_seconds: float = 120.0
    draft_seconds: float | None = None
    """The minimum time between two edits of a post that show a draft; None disables drafts."""
    documentation: str = ""
    link_hosts: frozenset[str] = frozenset()
    """Hosts to which answers may link. `documentation` is the base URL, or the URL template, of
    sources without a page URL; see `gateway.answer`.
    """
    groups: ChatGroups = field(default_factory=ChatGroups)


@dataclass(slots=True)
class Tally:
    """The counters of a chat channel."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, name: str) -> None:
        """Increment a counter."""
        self.counts[name] = self.counts.get(name, 0) + 1


@contextmanager
def reads_foreign_form(what: str) -> Iterator[None]:
    """Raise `UnreadableError` for any error inside the context that a value in an unexpected format
    causes.

    The message does not repeat the value.
    """
    try:
        yield
    except _OF_FORM as error:
        raise UnreadableError(f"{what} has an unexpected form") from error
