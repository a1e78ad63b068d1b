"""The memory port: read when a question starts, written only when one ends."""

from dataclasses import dataclass, field
from typing import Protocol

from envelope.conversation import Pause, Preferences, Turn
from envelope.memory_read import MemoryFound, MemoryRead
from envelope.memory_write import MemoryWrite
from envelope.question import Question


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is remembered of a conversation; `kept` counts the stored turns."""

    history: tuple[Turn, ...] = ()
    summary: str = ""
    kept: int = 0
    preferences: Preferences = field(default_factory=Preferences)
    pause: Pause | None = None
    statistics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended:
    """What the end of a question changes in memory; None leaves a thing as it is.

    `dropped` are turns that fall out of the history now; they go into `summary`, as it was.
    `brief`: the client keeps the conversation, and may come back within a day.
    """

    turns: tuple[Turn, ...] = ()
    dropped: tuple[Turn, ...] = ()
    summary: str = ""
    preferences: Preferences | None = None
    pause: Pause | None = None
    close_pause: bool = False
    statistics: dict[str, float] = field(default_factory=dict)
    forget: str = ""
    brief: bool = False


class Memory(Protocol):
    """Remembers conversations."""

    async def recall(self, question: Question) -> Remembered:
        """Return what is remembered of the question's conversation."""
        ...

    def reads(self, question: Question) -> MemoryRead | None:
        """Return what is to be read for `recall`, so that whoever starts the question reads it."""
        ...

    def parse_recall(self, found: MemoryFound) -> Remembered:
        """Return what `recall` would have: what `reads` named was found."""
        ...

    async def overflowing(self, question: Question, *, kept: int, added: int) -> tuple[Turn, ...]:
        """Return the stored turns that fall out when `added` come to the `kept` ones."""
        ...

    def writes(self, question: Question, ended: Ended) -> tuple[MemoryWrite, ...]:
        """Return the memory writes that the end of this question makes, as data."""
        ...
