"""Learns from the outcomes of swarms which strategy suits a kind of question. The value of an
outcome is weighted from the judge's score, the ratings of users, cost and time. No text is stored.
"""

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field, ValidationError

from tools.listed_parts import find_items, split_questions

if TYPE_CHECKING:
    from memory.learned_outcomes import LoggedOutcome

_JUDGE, _THUMB, _COST, _TIME = 0.6, 0.2, 0.1, 0.1
_DEAR_USD = 0.2
_SLOW_SECONDS = 120.0
_NEUTRAL = 0.5


class QuestionKind(StrEnum):
    """The kinds of questions by which strategies are compared."""

    GROUP = "group"
    SEVERAL = "several"
    SINGLE = "single"


DECAY = 0.99
"""What remains of the weight of an outcome when the next one of its kind and choice is noted."""
MOST_CHOICES = 24
LEAST_WEIGHT = 8.0
"""The weight of evidence, in outcomes, below which a choice is not compared."""
_SIGMAS = 4.0
_LEAST_GAIN = 0.05
_LEAST_DEVIATION = 0.05
_WORKER_STEPS = (1, 2, 4, 8, 16, 32)
ReadOutcomes = Callable[[], Awaitable["Sequence[LoggedOutcome]"]]
FindAdvice = Callable[[QuestionKind, str], Awaitable[tuple[str, ...]]]
"""Returns the advice for a kind of question; the second is the strategy that is used otherwise."""


class SwarmOutcome(BaseModel, frozen=True, extra="ignore"):
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


class ChoiceRecord(BaseModel, frozen=True, extra="ignore"):
    """The decaying sums of one choice: weights, values, squared values."""

    weight: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    count: int = Field(default=0, ge=0)

    @property
    def mean(self) -> float:
        """The mean value, 0 to 1."""
        return self.total / self.weight if self.weight else 0.0

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        if not self.weight:
            return math.inf
        variance = max(_LEAST_DEVIATION**2, self.squares / self.weight - self.mean**2)
        return math.sqrt(variance / self.weight)

    def add(self, value: float) -> "ChoiceRecord":
        """Return the record after one more outcome; values outside 0 to 1 are clipped."""
        bounded = min(1.0, max(0.0, value))
        return ChoiceRecord(
            weight=self.weight * DECAY + 1,
            total=self.total * DECAY + bounded,
            squares=self.squares * DECAY + bounded**2,
            count=self.count + 1,
        )


class SwarmMemory(BaseModel, frozen=True, extra="ignore"):
    """The records of one assistant, by kind of question and choice."""

    strategies: dict[str, dict[str, ChoiceRecord]] = {}
    workers: dict[str, dict[str, ChoiceRecord]] = {}


@dataclass(frozen=True, slots=True)
class OutcomeHistory:
    """The memory of an assistant, and the number of its outcomes.

    `unreadable` outcomes are of another version and are left out.
    """

    memory: SwarmMemory
    outcomes: int
    thumbs: int
    unreadable: int


def classify_question(question: str) -> QuestionKind:
    """Return the kind of a question by what it lists."""
    if find_items(question) is not None:
        return QuestionKind.GROUP
    return QuestionKind.SEVERAL if split_questions(question) else QuestionKind.SINGLE


def note_outcome(memory: SwarmMemory, outcome: SwarmOutcome) -> SwarmMemory:
    """Return the memory after one swarm."""
    value = outcome.value
    step = str(round_workers(outcome.workers))
    return SwarmMemory(
        strategies=_add(memory.strategies, outcome.kind, outcome.strategy[:60], value),
        workers=_add(memory.workers, outcome.kind, step, value),
    )


def advise(memory: SwarmMemory, kind: QuestionKind, *, configured: str = "") -> tuple[str, ...]:
    """Return which choices did better for a kind of question; a planning model reads it.

    `configured` is the strategy that is used otherwise: others must do better than it.
    """
    reasons = []
    strategies = memory.strategies.get(kind, {})
    best = _find_better(strategies, configured)
    if best is not None:
        gain = strategies[best].mean - _find_reference(strategies, best, configured).mean
        reasons.append(f"{best} did better by {gain:.2f} for {kind.value} questions")
    step = _find_better(memory.workers.get(kind, {}), "")
    if step is not None:
        reasons.append(f"{name_workers(int(step))} did best for {kind.value} questions")
    return tuple(reasons)


def describe_memory(memory: SwarmMemory) -> list[dict[str, str | float | int]]:
    """Return the rows of `refdesk swarm stats`: kind, choice, outcomes, mean and its error."""
    return [
        {
            "kind": kind,
            "choice": choice if is_strategy else name_workers(int(choice)),
            "outcomes": record.count,
            "mean": round(record.mean, 4),
            "error": round(record.error, 4),
        }
        for is_strategy, table in ((True, memory.strategies), (False, memory.workers))
        for kind, choices in sorted(table.items())
        for choice, record in sorted(choices.items(), key=lambda pair: -pair[1].mean)
    ]


def round_workers(count: int) -> int:
    """Return the step, such as 1, 2, 4, 8, under which a number of workers is counted."""
    return max(step for step in _WORKER_STEPS if step <= max(1, count))


def name_workers(step: int) -> str:
    """Return the numbers of workers that are counted under a step."""
    if step == 1:
        return "1 worker"
    last = 2 * step - 1
    return f"{step} to {last} workers" if step < _WORKER_STEPS[-1] else f"{step} workers or more"


def write_outcome(outcome: SwarmOutcome) -> str:
    """Return an outcome as it is logged: without its thumb, which users give later."""
    return outcome.model_dump_json(exclude={"thumb"}, exclude_defaults=True)


def read_history(entries: "Iterable[LoggedOutcome]") -> OutcomeHistory:
    """Return what follows from outcomes, oldest first; later ones weigh more."""
    memory, read, thumbs, unreadable = SwarmMemory(), 0, 0, 0
    for entry in entries:
        try:
            outcome = SwarmOutcome.model_validate_json(entry.written)
        except ValidationError:
            unreadable += 1
            continue
        read += 1
        thumbs += bool(entry.thumb)
        thumb = min(1, max(-1, entry.thumb))
        memory = note_outcome(memory, outcome.model_copy(update={"thumb": thumb}))
    return OutcomeHistory(memory, read, thumbs, unreadable)


def make_advice(read_outcomes: ReadOutcomes | None) -> FindAdvice | None:
    """Return a function that gives advice from outcomes; None where nothing is learned."""
    if read_outcomes is None:
        return None

    async def find_advice(kind: QuestionKind, configured: str) -> tuple[str, ...]:
        history = read_history(await read_outcomes())
        return advise(history.memory, kind, configured=configured)

    return find_advice


def _add(
    table: Mapping[str, Mapping[str, ChoiceRecord]], kind: QuestionKind, choice: str, value: float
) -> dict[str, dict[str, ChoiceRecord]]:
    changed = {name: dict(choices) for name, choices in table.items()}
    own = changed.setdefault(kind.value, {})
    own[choice] = own.get(choice, ChoiceRecord()).add(value)
    if len(own) > MOST_CHOICES:
        del own[min((one for one in own if one != choice), key=lambda one: own[one].weight)]
    return changed


def _find_better(choices: Mapping[str, ChoiceRecord], configured: str) -> str | None:
    """Return the best choice, if it is better than the reference beyond chance."""
    known = {name: one for name, one in choices.items() if one.weight >= LEAST_WEIGHT}
    if len(known) < 2:
        return None
    best = max(sorted(known), key=lambda name: known[name].mean)
    if best == configured:
        return None
    reference = _find_reference(known, best, configured)
    gain = known[best].mean - reference.mean
    spread = math.hypot(known[best].error, reference.error)
    return best if gain >= max(_LEAST_GAIN, _SIGMAS * spread) else None


def _find_reference(
    choices: Mapping[str, ChoiceRecord], best: str, configured: str
) -> ChoiceRecord:
    if configured in choices and configured != best:
        return choices[configured]
    others = {name: one for name, one in choices.items() if name != best}
    return max(others.values(), key=lambda one: one.mean)
