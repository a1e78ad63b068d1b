"""What the doors need of others; the assembly wires it.

Conversations are named by a `Question` of theirs; which one does not matter, unless said otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import AliasChoices, BaseModel, Field

from broker.replies.transcripts import RecentMessage
from envelope.conversation import Pause, Turn
from envelope.question import Question
from gateway.api_keys import Key


class Feedback(BaseModel, frozen=True, extra="forbid"):
    """The rating of an answer by a person; `at` in Unix seconds.

    Ratings that were stored before version 0.2 name it `thumb`.
    """

    rating: str = Field(pattern="^(up|down)$", validation_alias=AliasChoices("rating", "thumb"))
    reason: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Demand:
    """One use of something that is limited under `name`; None: no limit."""

    name: str
    per_minute: int | None = None
    per_day: int | None = None
    of: Literal["key", "visitor", "site", "person"] = "key"
    """Whose limit it is."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """A limit that is used up, and the seconds until one use is free again."""

    demand: Demand
    period: Literal["minute", "day"]
    seconds: float


@dataclass(frozen=True, slots=True)
class Visit:
    """The digest of a visitor's token for a conversation, and whether nothing was asked there."""

    digest: str
    is_empty: bool


@dataclass(frozen=True, slots=True)
class ReadableSection:
    """What stands below one heading of a document: blocks as in Markdown, and if it is `cited`."""

    heading_path: tuple[str, ...]
    anchor: str | None
    text: str
    cited: bool = False


@dataclass(frozen=True, slots=True)
class ReadableDocument:
    """A document as it can be read; `language` in ISO 639-1."""

    title: str
    crumbs: tuple[str, ...]
    language: str
    sections: tuple[ReadableSection, ...]


class Documents(Protocol):
    """Shows what the assistants answer from."""

    async def citing(self, tenant: str, assistant: str, chunk_id: str) -> ReadableDocument | None:
        """Return the document of a cited chunk; None when this assistant has none with it now."""
        ...


class KeyStore(Protocol):
    """Keeps keys."""

    async def get(self, key_id: str) -> Key | None: ...

    async def all(self) -> Sequence[Key]:
        """Return every key, revoked ones too, oldest first."""
        ...

    async def put(self, key: Key) -> None:
        """Store a key, in the place of the one with its id."""
        ...

    async def any(self) -> bool:
        """Whether a key was ever made."""
        ...


class Rates(Protocol):
    """Counts uses over all processes."""

    async def admit(
        self, owner: str, demands: Sequence[Demand], *, once: str = ""
    ) -> Shortage | None:
        """Count all demands and return None, or count none and return what is used up.

        What was counted under the name `once` is not counted again for some minutes.
        """
        ...


class Conversations(Protocol):
    """Remembers what the doors need of conversations."""

    async def recent_messages(self, question: Question, *, limit: int) -> Sequence[RecentMessage]:
        """Return the last messages whose journals are still kept, oldest first."""
        ...

    async def turns(self, question: Question) -> Sequence[Turn]:
        """Return what was said, oldest first."""
        ...

    async def pause(self, question: Question) -> Pause | None:
        """Return the desk's open question to the user."""
        ...

    async def put_thread(self, question: Question, digest: str) -> None:
        """Keep that a client which was shown `digest` stands at the question's conversation."""
        ...

    async def thread(self, question: Question, digest: str) -> str | None:
        """Return the conversation, of the question's assistant, that was shown so."""
        ...

    async def open_visit(self, question: Question, digest: str) -> None:
        """Keep the digest of the token that a visitor's conversation was opened with."""
        ...

    async def visit(self, question: Question) -> Visit | None:
        """Return who may enter the conversation, and keep it for longer unless it is empty."""
        ...

    async def use_visit(self, question: Question, digest: str) -> None:
        """Keep an empty conversation as long as others: something was asked there."""
        ...

    async def end_visit(self, question: Question) -> None:
        """Forget the conversation's token."""
        ...

    def memory_keys(self, question: Question) -> Sequence[str]:
        """Return the names under which the conversation is remembered, for whoever erases them."""
        ...

    async def forget_threads(self, question: Question) -> int:
        """Forget what clients were shown of the conversation; return how many keys that were."""
        ...

    async def forget_posts(self, question: Question) -> None:
        """Forget what push doors keep of the words of the question's conversation."""
        ...

    async def is_chat(self, question: Question) -> bool:
        """Whether a chat service's door stored the conversation under this very id.

        Doors did so before a conversation's id began with its channel.
        """
        ...

    async def give_feedback(self, question: Question, feedback: Feedback) -> None:
        """Keep what was said about this message, in the place of what was said before."""
        ...

    async def feedback(self, question: Question) -> dict[str, Feedback]:
        """Return the conversation's feedback by message id."""
        ...
