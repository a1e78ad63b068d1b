"""Reads an answer while a model writes it, and passes on what is finished.

An answer may take several attempts: a repeated request, a repair, a further model of a chain while
a slow one goes on. One attempt at a time is listened to: the first that writes something, until it
ends. The text of another attempt starts from the beginning.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, TypeVar

import structlog
from pydantic_core import from_json

from llm.answer_checks.draft_check import select_finished


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


_present: ContextVar[TextListener | None] = ContextVar("text_listener", default=None)


@contextmanager
def listen(listener: TextListener) -> Iterator[None]:
    """Have the models that are asked inside pass on their text."""
    token = _present.set(listener)
    try:
        yield
    finally:
        _present.reset(token)


def find_listener(task_name: str) -> TextListener | None:
    """Return who listens to the answers of a task around this point, if anybody does."""
    listener = _present.get()
    return listener if listener is not None and listener.task_name == task_name else None


T = TypeVar("T")
OnText = Callable[[PartialText], Awaitable[None]]
log = structlog.get_logger("llm")


@dataclass(frozen=True, slots=True)
class Silence:
    """What is done, once, if no text has come after so many seconds."""

    seconds: float
    act: Callable[[], Awaitable[None]]


async def ask_and_follow(
    listener: TextListener,
    ask: Callable[[], Awaitable[T]],
    on_text: OnText,
    silence: Silence | None = None,
) -> T:
    """Return what `ask` returns, and call `on_text` with the newest text meanwhile.

    One call of `on_text` runs at a time, and texts that were overtaken are left out. Its failure
    ends the following and is logged: it costs the reader the draft, never the answer.
    """
    outcome: T | Exception
    async with asyncio.TaskGroup() as group:
        group.create_task(_follow(listener, on_text, silence))
        try:
            with listen(listener):
                outcome = await ask()
        except Exception as error:  # noqa: BLE001 - raised again outside of the group
            outcome = error
        finally:
            listener.close()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


async def _follow(listener: TextListener, on_text: OnText, silence: Silence | None) -> None:
    try:
        if silence is not None and not await listener.has_begun_within(silence.seconds):
            await silence.act()
        while (partial := await listener.wait_for_text()) is not None:
            await on_text(partial)
    except Exception:
        log.exception("draft_failed", task=listener.task_name)


_OPENING = re.compile(r"\s*+(?:```[a-z]*+\s*+)?+\{")
_THOUGHTS_END = "</think>"


def read_partial_answer(text: str) -> str:
    """Return the `answer` in JSON that is not complete; empty while there is none to show.

    Only an output whose `status` is already known to be `answered` has one.
    """
    found = _read_fields(text, "trailing-strings")
    answer = found.get("answer") if found.get("status") == "answered" else None
    return answer if isinstance(answer, str) else ""


def read_complete_fields(text: str) -> Mapping[str, object]:
    """Return the fields of JSON that is not complete, without the one that is being written."""
    return _read_fields(text, "on")


def _read_fields(text: str, partial: Literal["on", "trailing-strings"]) -> Mapping[str, object]:
    """Return the fields of an object that is being written; empty while there is none.

    A fence and the thoughts of a reasoning model are skipped. After any other prose nothing is
    read, because prose may hold braces as well.
    """
    _, mark, after = text.rpartition(_THOUGHTS_END)
    bare = after if mark else text
    opening = _OPENING.match(bare)
    if opening is None:
        return {}
    try:
        found = from_json(bare[opening.end() - 1 :], allow_partial=partial)
    except ValueError:
        # No JSON after all; whether the whole text can be read is decided when it has come.
        return {}
    return found if isinstance(found, dict) else {}


OnFinished = Callable[[str, int], Awaitable[None]]
"""Receives the finished sentences, and the number of the attempt that wrote them."""


class DraftReader:
    """Calls `on_finished` whenever a further sentence of one answer is finished."""

    def __init__(self, on_finished: OnFinished) -> None:
        self._on_finished = on_finished
        self._last = ("", 0)

    async def read(self, partial: PartialText) -> None:
        """Read the text of an answer, all of it so far."""
        finished = select_finished(read_partial_answer(partial.text))
        read = (finished, partial.attempt)
        if finished and read != self._last:
            self._last = read
            await self._on_finished(finished, partial.attempt)


_FIELD = "canonical_question"


class QuestionReader:
    """Calls `on_question` with the question of a combined call, once, when it is complete."""

    def __init__(self, on_question: Callable[[str], Awaitable[None]]) -> None:
        self._on_question = on_question
        self.question: str | None = None
        """The question that was passed on; None if there was none."""

    async def read(self, partial: PartialText) -> None:
        """Read what the model has written so far."""
        if self.question is not None:
            return
        question = read_complete_fields(partial.text).get(_FIELD)
        if isinstance(question, str):
            self.question = question
            await self._on_question(question)
