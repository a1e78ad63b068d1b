"""The outcome of one swarm, and its value as one number.

The value weighs the judge's score, the thumbs of users, cost and time. It says nothing about a
question itself: no text is stored.
"""

from enum import StrEnum

from pydantic import BaseModel, Field

from tools.listed_parts import find_items, split_questions

_JUDGE, _THUMB, _COST, _TIME = 0.6, 0.2, 0.1, 0.1
_DEAR_USD = 0.2
_SLOW_SECONDS = 120.0
_NEUTRAL = 0.5


class QuestionKind(StrEnum):
    """The kinds of questions by which strategies are compared."""

    GROUP = "group"
    SEVERAL = "several"
    SINGLE = "single"


class SwarmOutcome(BaseModel, frozen=True, extra="forbid"):
    """How one swarm did.

    `judge` is the score of the judge, 1 to 10, None if nobody judged; `thumb` is 1 or -1, 0: none.
    """

    kind: QuestionKind
    strategy: str
    workers: int = Field(ge=1)
    judge: float | None = Field(default=None, ge=1, le=10)
    cost_usd: float = Field(default=0.0, ge=0)
    seconds: float = Field(default=0.0, ge=0)
    thumb: int = Field(default=0, ge=-1, le=1)

    @property
    def value(self) -> float:
        """How well it did, 0 to 1."""
        judge = _NEUTRAL if self.judge is None else (self.judge - 1) / 9
        thumb = (self.thumb + 1) / 2
        cost = 1 - min(1.0, self.cost_usd / _DEAR_USD)
        time = 1 - min(1.0, self.seconds / _SLOW_SECONDS)
        return _JUDGE * judge + _THUMB * thumb + _COST * cost + _TIME * time


def classify_question(question: str) -> QuestionKind:
    """Return the kind of a question by what it lists."""
    if find_items(question) is not None:
        return QuestionKind.GROUP
    return QuestionKind.SEVERAL if split_questions(question) else QuestionKind.SINGLE
