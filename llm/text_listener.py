"""Passes on the text of an answer while a model writes it.

An answer may take several attempts: a repeated request, a repair, a further model of a chain while
a slow one goes on. One attempt at a time is listened to: the first that writes something, until it
ends. The text of another attempt starts from the beginning.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartialText:
    """What an attempt has written so far; `attempt` counts from 1."""

    attempt: int
    text: str


class TextListener:
    """Receives the text of one task. Passing text on never waits: no model waits for its reader."""

    def __init__(self, task_name: str) -> None:
        self.task_name = task_name
        self.characters = 0
        """How much was received; grows as long as an answer is being written."""
        self.is_unstreamed = False
        """Whether a model answered that cannot pass its text on while it writes."""
        self.attempts = 0
        """How many attempts were listened to."""
        self._leader: AttemptText | None = None
        self._changed = asyncio.Event()
        self._closed = False

    @contextmanager
    def attempt(self) -> Iterator["AttemptText"]:
        """Receive the text of one attempt, until it ends: another one may follow to repair it."""
        writing = AttemptText(self)
        try:
            yield writing
        finally:
            if self._leader is writing:
                self._leader = None

    def note_progress(self, writing: "AttemptText", characters: int) -> None:
        """Note that an attempt has written more; it is listened to unless another one is."""
        self.characters += characters
        if self._leader is None:
            self.attempts += 1
            self._leader = writing
            writing.number = self.attempts
        if self._leader is writing:
            self._changed.set()

    async def wait_for_text(self) -> PartialText | None:
        """Return the text of the present attempt when it has changed; None after `close`."""
        while not self._closed:
            await self._changed.wait()
            self._changed.clear()
            leader = self._leader
            if leader is not None:
                return PartialText(leader.number, leader.text)
        return None

    async def has_begun_within(self, seconds: float) -> bool:
        """Return whether text has come, or the listening has ended, after at most so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """End the listening, also for a caller that waits for text."""
        self._closed = True
        self._changed.set()


@dataclass(slots=True)
class AttemptText:
    """One attempt at an answer, as its model writes it."""

    _listener: TextListener
    number: int = 0
    text: str = ""

    def add(self, text: str) -> None:
        """Append the next piece of text."""
        if text:
            self.text += text
            self._listener.note_progress(self, len(text))
