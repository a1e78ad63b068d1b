"""Follows an answer while a model writes it, and reads what is finished of it."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import structlog
from pydantic_core import from_json

from citations.faults import select_finished
from llm.port import PartialText, TextListener

T = TypeVar("T")
OnText = Callable[[PartialText], Awaitable[None]]
log = structlog.get_logger("llm")


@dataclass(frozen=True, slots=True)
class Silence:
    """The action that is performed once if no text has arrived after so many seconds."""

    seconds: float
    act: Callable[[], Awaitable[None]]


async def ask_and_follow(
    listener: TextListener,
    ask: Callable[[TextListener], Awaitable[T]],
    on_text: OnText,
    silence: Silence | None = None,
) -> T:
    """Return what `ask` returns for a listener, and call `on_text` with the newest text meanwhile.

    One call of `on_text` runs at a time, and texts that were overtaken are left out. Its failure
    ends the following and is logged: it costs the reader the draft, never the answer.
    """
    outcome: T | Exception
    async with asyncio.TaskGroup() as group:
        group.create_task(_follow(listener, on_text, silence))
        try:
            outcome = await ask(listener)
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
