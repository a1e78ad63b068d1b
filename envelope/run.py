"""One run of an agent, which it passes to the models, tools and stores that work for it."""

from collections import Counter
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Protocol

from envelope.question import Question
from envelope.sources import AnswerDraft


class DraftPublisher(Protocol):
    """Shows an answer while it is written. It raises no errors and does not delay the agent."""

    async def publish(self, draft: AnswerDraft) -> None:
        """Show the checked beginning of an answer; it replaces the one shown before."""
        ...


@dataclass(frozen=True, slots=True)
class BudgetRefusal:
    """The amount of a budget that a call would have taken beyond its limit."""

    name: str
    limit: int
    used: int


@dataclass(frozen=True, slots=True)
class Run:
    """The question that an agent works on, and the limits of its calls.

    `attempt` counts the loops of the question (the payload's `attempt`), not the deliveries of the
    envelope: a redelivered envelope runs as the first delivery did. `deadline`, a time of the
    running event loop, is when model calls end, so that the agent can still send something;
    `reserve_seconds` before it are for models that may be asked later, and
    `may_retry` is False where another model can answer sooner than a repetition. `refusals` are the
    reservations of this run that a budget refused.
    """

    question: Question | None = None
    stage: str = ""
    attempt: int = 0
    branch: str = ""
    deadline: float | None = None
    reserve_seconds: float = 0.0
    may_retry: bool = True
    drafts: DraftPublisher | None = None
    delivery: str = field(default_factory=lambda: token_hex(16))
    equal_calls: Counter[str] = field(default_factory=Counter, compare=False, repr=False)
    refusals: list[BudgetRefusal] = field(default_factory=list, compare=False, repr=False)

    @property
    def place(self) -> str:
        """Where calls are made: the stage, and the branch of the question if it is one."""
        return f"{self.stage}@{self.branch}" if self.branch else self.stage

    def find_question(self) -> Question:
        """Return the question; raises `LookupError` outside of one."""
        if self.question is None:
            raise LookupError("expected the run of a question, found a run outside of one")
        return self.question

    def count_equal(self, content_hash: str) -> int:
        """Return how many identical calls this run has made before, and count this one."""
        number = self.equal_calls[content_hash]
        self.equal_calls[content_hash] += 1
        return number

    def restrict(self, *, reserve_seconds: float, may_retry: bool) -> "Run":
        """Return the run for one model of several; it shares its counts with this one."""
        return replace(self, reserve_seconds=reserve_seconds, may_retry=may_retry)


OUTSIDE = Run()
"""A run that belongs to no question: nothing is stored or reserved for it, and it has no deadline.
"""
