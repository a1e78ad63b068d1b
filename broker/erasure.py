"""The port through which conversations are forgotten, and what it reports."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from envelope.question import Question


@dataclass(frozen=True, slots=True)
class Erased:
    """Counts what was erased of one conversation.

    `messages` had words still; `ended` of them were open; `entries` travelled or waited for a
    retry; `memories` are keys of its memory.
    """

    messages: int = 0
    ended: int = 0
    entries: int = 0
    dead_letters: int = 0
    memories: int = 0

    @property
    def found(self) -> bool:
        """Whether there was anything."""
        return bool(self.messages or self.entries or self.dead_letters or self.memories)

    def __add__(self, other: "Erased") -> "Erased":
        return Erased(
            messages=self.messages + other.messages,
            ended=self.ended + other.ended,
            entries=self.entries + other.entries,
            dead_letters=self.dead_letters + other.dead_letters,
            memories=self.memories + other.memories,
        )


class Eraser(Protocol):
    """Forgets conversations, whether or not anybody works."""

    async def forget(self, question: Question, memory: Sequence[str] = ()) -> Erased:
        """End what is open of the question's conversation, and delete every word of it.

        `memory` are keys of the conversation's slot that go with it. Forgetting twice, or at once
        from two sides, is no error.
        """
        ...

    async def tidy(self) -> float:
        """Delete what has had its time; return after how many seconds to do so again."""
        ...

    async def rewrite_file(self) -> bool:
        """Have the server's file written anew if anything was erased; whether that goes on."""
        ...
