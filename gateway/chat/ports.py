"""What the push doors need of others: something that remembers, and a platform to speak to."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from broker.replies.result_list import Result
from broker.values import Fields
from envelope.question import Question
from gateway.answer import Answer
from gateway.port import Feedback

CLAIM_SECONDS = 86_400
"""Longer than any platform repeats itself."""


class PushMemory(Protocol):
    """Remembers for a channel, over all its processes; everything dies by itself."""

    async def fields(self, question: Question) -> dict[str, str]:
        """Return what is known of a question."""
        ...

    async def note(self, question: Question, **fields: str) -> None:
        """Keep fields of a question, in the place of those before."""
        ...

    async def first(self, question: Question, name: str, value: str) -> str:
        """Keep a field unless somebody has; return what stands."""
        ...

    async def about(self, question: Question) -> dict[str, str]:
        """Return what is known of the question's conversation."""
        ...

    async def note_about(self, question: Question, **fields: str) -> None:
        """Keep fields of the question's conversation."""
        ...

    async def open(self, question: Question, order: float) -> None:
        """Keep that a question has no outcome yet; `order` is its place in the conversation."""
        ...

    async def close(self, question: Question) -> None:
        """Keep that its outcome was shown."""
        ...

    async def open_messages(self, question: Question) -> Mapping[str, float]:
        """Return the open message ids of the question's conversation with their order."""
        ...

    async def put_token(self, token: str, written: str, question: Question) -> None:
        """Keep what a button under the answer to this question stands for."""
        ...

    async def token(self, token: str) -> str | None:
        """Return what a button stands for."""
        ...

    async def claim(self, name: str, *, seconds: int = CLAIM_SECONDS) -> bool:
        """Whether nobody has claimed this name within so many seconds."""
        ...

    async def holds_words(self, question: Question) -> None:
        """Keep that the fields of a question hold words that people wrote."""
        ...

    async def forget_words(self, question: Question, *, but: Collection[str] = ()) -> None:
        """Delete the words and button texts of the question's conversation.

        What is kept under the message ids `but` stays.
        """
        ...


class Results(Protocol):
    """The channel's result list."""

    @property
    def renew_seconds(self) -> float: ...

    async def take(self, *, slots: int, block_seconds: float) -> Sequence[Result]: ...

    async def renew(self, results: Sequence[Result]) -> None: ...

    async def mark_delivered(self, results: Sequence[Result]) -> None: ...


class PushBroker(Protocol):
    """A broker that keeps replies for channels."""

    def result_list(self, name: str, consumer: str) -> Results: ...


class ChannelTexts(Protocol):
    """Fixed texts by key."""

    @property
    def languages(self) -> tuple[str, ...]: ...

    def text(self, key: str, language: str, **values: str) -> str: ...


class Thumbs(Protocol):
    """Keeps what people think of answers."""

    async def give_feedback(self, question: Question, feedback: Feedback) -> None: ...


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message that reached a push door.

    `post` is where its answer belongs, in the channel's own words; `order` grows within a
    conversation; `edits` is the message id that this text replaces; `fixed` names a fixed text that
    is shown as the answer of a command; `alone` keeps it apart from a burst; `person` wrote it, and
    is limited by what one person may ask.
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


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer as a channel is to show it; `language` is that of what stands around it."""

    question: Question
    answer: Answer
    post: Mapping[str, str]
    language: str
    fixed: str = ""
    buttons: Sequence["Button"] = ()


@dataclass(frozen=True, slots=True)
class Button:
    """A choice, and the token under which the desk knows it again."""

    label: str
    token: str
    kind: str = "option"
    url: str | None = None


class Channel(Protocol):
    """One platform; what fails raises a `PushError`, and all may be repeated without harm.

    A sign that fades is shown anew every `sign_seconds`; None: it stays.
    """

    name: str
    sign_seconds: float | None

    async def working(self, question: Question, post: Mapping[str, str]) -> None:
        """Show the sign that somebody works at this message."""
        ...

    async def remove_sign(self, question: Question, post: Mapping[str, str]) -> None:
        """Take the sign away."""
        ...

    def parts(self, shown: Shown) -> Sequence[Fields]:
        """Return the posts that an answer becomes; at least one."""
        ...

    async def placeholder(self, post: Mapping[str, str], text: str, *, soon: bool = False) -> str:
        """Post a text where the answer will stand; return its id.

        `soon`: raises `SkippedError` rather than wait for long, as `working` does.
        """
        ...

    async def edit(self, post: Mapping[str, str], id_: str, part: Fields) -> None:
        """Make a post say this; one that is gone raises `GoneError`."""
        ...

    async def remove(self, post: Mapping[str, str], id_: str) -> None:
        """Delete a post; one that is gone is no error."""
        ...


@dataclass(frozen=True, slots=True)
class ChatPolicy:
    """How a push door deals with several messages at once; times in seconds."""

    burst_seconds: float = 1.0
    supersedes: bool = True
    default_language: str = "en"
    thumbs: bool = True
    deadline_seconds: float = 120.0
    documentation: str = ""
    """Where sources without an address of their own open, see `gateway.source_urls`."""


@dataclass(slots=True)
class Tally:
    """What a push door counts."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, name: str) -> None:
        """Count one."""
        self.counts[name] = self.counts.get(name, 0) + 1
