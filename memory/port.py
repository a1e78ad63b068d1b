"""The memory port: reads happen when a message starts, writes only when one ends."""

from dataclasses import dataclass, field
from typing import Protocol

from envelope.conversation import Pause, Preferences, Turn
from envelope.memory_access import MemoryFound, MemoryRead, MemoryWrite
from envelope.question import Question


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """The beginning of an earlier user turn; only people with all of its `groups` may read it."""

    text: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Overflow:
    """The turns that leave the history, and the summary that they extend; both oldest first."""

    turns: tuple[Turn, ...] = ()
    summary: tuple[SummaryLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Remembered:
    """The memory of a conversation; `kept` is the number of stored turns."""

    history: tuple[Turn, ...] = ()
    summary: tuple[SummaryLine, ...] = ()
    kept: int = 0
    preferences: Preferences = field(default_factory=Preferences)
    pause: Pause | None = None
    statistics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeptPayload:
    """The payload with which the reply to a pause continues, as JSON, kept as long as the pause."""

    pause_id: str
    payload: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The changes that the end of a message makes; None leaves a value unchanged.

    `dropped` are the turns that leave the history. `brief`: the client stores the conversation, so
    the changes expire after a day. `learned` is the outcome of a swarm as JSON; empty: none.
    """

    turns: tuple[Turn, ...] = ()
    dropped: Overflow = Overflow()
    preferences: Preferences | None = None
    pause: Pause | None = None
    close_pause: bool = False
    statistics: dict[str, float] = field(default_factory=dict)
    forget: str = ""
    brief: bool = False
    kept: KeptPayload | None = None
    learned: str = ""


class Memory(Protocol):
    """Stores conversations."""

    async def recall(self, question: Question) -> Remembered:
        """Return the memory of the message's conversation."""
        ...

    def reads(self, question: Question) -> MemoryRead | None:
        """Return the read of `recall` as data: the broker may do it when a message starts."""
        ...

    def parse_recall(self, found: MemoryFound) -> Remembered:
        """Return the result of `recall` from the values that were found for `reads`."""
        ...

    async def claim_pause(self, question: Question, pause_id: str) -> bytes | None:
        """Return the payload that a pause kept, for the first message that answers it.

        A redelivery of that message receives it again. None: it expired, or another message had it.
        """
        ...

    async def overflowing(self, question: Question, *, kept: int, added: int) -> Overflow:
        """Return the stored turns that leave the history if `added` turns follow `kept` ones."""
        ...

    def writes(self, question: Question, ended: Ended) -> tuple[MemoryWrite, ...]:
        """Return the writes of the end of this message as data."""
        ...
