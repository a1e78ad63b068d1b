"""Keeps for which hop models are asked, how much time there is, and whether to ask again."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from envelope.question import Question


@dataclass(frozen=True, slots=True)
class BudgetRefusal:
    """The amount of a budget that a call would have taken beyond its limit."""

    name: str
    limit: int
    used: int


@dataclass(frozen=True, slots=True)
class CallScope:
    """The hop that asks; `deadline` is a time of the running event loop, or None.

    `refusals` are the reservations of this delivery that a budget refused.
    """

    question: Question
    stage: str
    attempt: int
    deadline: float | None = None
    branch: str = ""
    equal_calls: Counter[str] = field(default_factory=Counter, compare=False, repr=False)
    refusals: list[BudgetRefusal] = field(default_factory=list, compare=False, repr=False)

    @property
    def place(self) -> str:
        """Where calls are made: the stage, and the branch of the question if it is one."""
        return f"{self.stage}@{self.branch}" if self.branch else self.stage

    def count_equal(self, content_hash: str) -> int:
        """Return how many equal calls this delivery has made before, and count one more."""
        number = self.equal_calls[content_hash]
        self.equal_calls[content_hash] += 1
        return number


@dataclass(frozen=True, slots=True)
class CallAllowance:
    """What one model of a chain may use: `reserve_seconds` are left for the models after it.

    `retries` is False where another model can answer sooner than a repetition.
    """

    reserve_seconds: float = 0.0
    retries: bool = True


_scope: ContextVar[CallScope | None] = ContextVar("call_scope", default=None)
_allowance: ContextVar[CallAllowance] = ContextVar("call_allowance", default=CallAllowance())  # noqa: B039


@contextmanager
def call_scope(
    question: Question,
    *,
    stage: str,
    attempt: int,
    remaining_seconds: float | None = None,
    branch: str = "",
) -> Iterator[CallScope]:
    """Ask on behalf of this hop inside the block; called inside a running event loop.

    `attempt` counts the loops of the question (the payload's `attempt`), not the deliveries of the
    envelope: a redelivered envelope has the scope of the first delivery.
    """
    deadline = (
        None if remaining_seconds is None else asyncio.get_running_loop().time() + remaining_seconds
    )
    scope = CallScope(question, stage, attempt, deadline, branch)
    token = _scope.set(scope)
    try:
        yield scope
    finally:
        _scope.reset(token)


def current_scope() -> CallScope | None:
    """Return the scope around this point, if there is one."""
    return _scope.get()


@contextmanager
def allow(allowance: CallAllowance) -> Iterator[None]:
    """Restrict the model calls inside the block."""
    token = _allowance.set(allowance)
    try:
        yield
    finally:
        _allowance.reset(token)


def may_retry() -> bool:
    """Return whether a failed request may be sent once more."""
    return _allowance.get().retries


def remaining_seconds(limit: float) -> float:
    """Return the seconds that one call may take: `limit`, or less when the hop has less left."""
    scope = _scope.get()
    if scope is None or scope.deadline is None:
        return limit
    left = scope.deadline - asyncio.get_running_loop().time()
    return max(0.0, min(limit, left - _allowance.get().reserve_seconds))
