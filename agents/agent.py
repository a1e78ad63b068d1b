"""The shape of every agent: typed reads in, typed writes out, and access to nothing else."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

from pydantic import BaseModel

from envelope.draft import AnswerDraft
from envelope.outcome import HopOutcome
from envelope.role import Role

if TYPE_CHECKING:
    from knowledge.language.port import Detector
    from knowledge.port import Searcher
    from llm.port import Model

R = TypeVar("R", bound=BaseModel)
W = TypeVar("W", bound=BaseModel)
S = TypeVar("S", covariant=True)


class AgentTexts(Protocol):
    """Fixed texts by key, in English where there is none in the user's language."""

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the texts, ISO 639-1."""
        ...

    def text(self, key: str, language: str, **values: str) -> str:
        """Return the text of `key`, its names filled in."""
        ...


class DraftPublisher(Protocol):
    """Shows an answer while it is written. It never raises, and hardly ever waits."""

    async def publish(self, draft: AnswerDraft) -> None:
        """Show the checked beginning of an answer, in the place of the one before."""
        ...


class AgentParts(Protocol[S]):
    """What the assembly offers to the agents of one assistant; each agent takes what it needs.

    An agent that needs settings declares them as a protocol next to its `Reads` and `Writes`.
    """

    @property
    def settings(self) -> S:
        """The settings of the assistant, by the names of `config/`."""
        ...

    @property
    def model(self) -> "Callable[[str], Model]":
        """Returns the model of a task of `llm/tasks`."""
        ...

    @property
    def searcher(self) -> "Searcher":
        """The search in the assistant's documents; raises `LookupError` without an index."""
        ...

    @property
    def detector(self) -> "Detector": ...

    @property
    def language_of(self) -> Callable[[str], str]:
        """Returns the language of a text, or the default language where it is unclear."""
        ...

    @property
    def read_languages(self) -> "Callable[[], Awaitable[Mapping[str, float]]]":
        """Returns the number of documents in each language; empty where it is unknown."""
        ...

    @property
    def texts(self) -> AgentTexts: ...

    @property
    def drafts(self) -> DraftPublisher | None:
        """Shows an answer while it is written; None where nothing is shown before its approval."""
        ...


class Agent(ABC, Generic[R, W]):
    """Does one role's work on one envelope's payload.

    An agent never holds the envelope. It returns `Wrote`, `RetryAfter` or `GaveUp`; an exception
    is a failure, never a success. One instance serves many envelopes at once and keeps nothing
    between them. `agents/roster.py` lists the agents with what the rest of the program knows of
    them.
    """

    role: ClassVar[Role]
    reads: type[R]
    writes: type[W]

    @classmethod
    def make(cls, parts: AgentParts[Any]) -> Self:
        """Return the agent, made of what it needs of `parts`: nothing, unless overridden."""
        return cls()

    @abstractmethod
    async def work(self, reads: R) -> HopOutcome[W]:
        """Return the attributes that the payload gains."""
