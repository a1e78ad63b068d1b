"""Asks a model and follows its answer while it is written."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog

from llm.partial_answers.text_listener import PartialText, TextListener, listen

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
