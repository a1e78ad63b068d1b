"""Says on whose behalf models are asked, and how much time there is."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from envelope.question import Question


@dataclass(frozen=True, slots=True)
class CallScope:
    """The hop that asks; `deadline` is a time of the running event loop, or None."""

    question: Question
    stage: str
    attempt: int
    deadline: float | None = None


_scope: ContextVar[CallScope | None] = ContextVar("call_scope", default=None)


@contextmanager
def call_scope(
    question: Question, *, stage: str, attempt: int, remaining_seconds: float | None = None
) -> Iterator[CallScope]:
    """Ask on behalf of this hop inside the block; called inside a running event loop.

    `attempt` counts the loops of the question (the payload's `attempt`), not the deliveries of the
    envelope: a redelivered envelope has the scope of the first delivery.
    """
    deadline = (
        None if remaining_seconds is None else asyncio.get_running_loop().time() + remaining_seconds
    )
    scope = CallScope(question, stage, attempt, deadline)
    token = _scope.set(scope)
    try:
        yield scope
    finally:
        _scope.reset(token)


def current_scope() -> CallScope | None:
    """Return the scope around this point, if there is one."""
    return _scope.get()


def remaining_seconds(limit: float) -> float:
    """Return the seconds that one call may take: `limit`, or less when the hop has less left."""
    scope = _scope.get()
    if scope is None or scope.deadline is None:
        return limit
    return max(0.0, min(limit, scope.deadline - asyncio.get_running_loop().time()))
