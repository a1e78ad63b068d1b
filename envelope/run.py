"""The context of one agent run, which the agent passes to models, tools and stores."""

from collections import Counter
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Protocol

from envelope.question import Question
from envelope.sources import AnswerDraft


class DraftPublisher(Protocol):
    """Publishes an answer while it is being written; never raises an error and never delays the
    agent.
    """

    async def publish(self, draft: AnswerDraft) -> None:
        """Publish the checked beginning of an answer; replaces the previous draft."""
        ...


@dataclass(frozen=True, slots=True)
class BudgetRefusal:
    """A call that a budget rejected, with the limit and the amount already used."""

    name: str
    limit: int
    used: int


@dataclass(frozen=True, slots=True)
class Run:
    """The question of a run, and the limits of its calls.

    - `attempt`: the payload's `attempt` (research loops), not the number of deliveries
    - `deadline`: when model calls must end, in the time of the running event loop; early enough
      for the agent to return a result
    - `reserve_seconds`: time before the deadline that is reserved for models called later
    - `may_retry`: False if a fallback model can answer sooner than a retry
    - `refusals`: the calls in this run that a budget rejected
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
        """The stage, with the branch if there is one; identifies where calls are made."""
        return f"{self.stage}@{self.branch}" if self.branch else self.stage

    def find_question(self) -> Question:
        """Return the question; raises `LookupError` if the run has none."""
        if self.question is None:
            raise LookupError("this run has no question")
        return self.question

    def count_equal(self, content_hash: str) -> int:
        """Return the number of identical calls made earlier in this run, and count this one."""
        number = self.equal_calls[content_hash]
        self.equal_calls[content_hash] += 1
        return number

    def restrict(self, *, reserve_seconds: float, may_retry: bool) -> "Run":
        """Return a copy with these limits for one of several models; it shares the call counts."""
        return replace(self, reserve_seconds=reserve_seconds, may_retry=may_retry)


OUTSIDE = Run()
"""A run without a question: it has no deadline, and nothing is stored or reserved for it."""
