"""Advises a strategy and a number of workers from earlier outcomes of one assistant.

For each kind of question and choice the memory has a decaying mean of values, and the weight of the
evidence behind it. Advice is given only where the difference of two choices is larger than what
chance explains; otherwise the configured choice stays. So a memory fed with noise does not drift:
a difference of means of noise stays below `_SIGMAS` standard errors.

Everything is bounded: kinds and choices are few, the weight of evidence converges to
`1 / (1 - decay)`, and the bonus of a strategy is at most `MOST_BONUS`.
"""

import math
from collections.abc import Mapping

from pydantic import BaseModel, Field

from agents.swarm.outcomes import QuestionKind, SwarmOutcome

DECAY = 0.99
"""What remains of the weight of an outcome when the next one of its kind and choice is noted."""
MOST_BONUS = 0.3
MOST_CHOICES = 24
LEAST_WEIGHT = 8.0
"""The weight of evidence, in outcomes, below which a choice is not compared."""
_SIGMAS = 4.0
_LEAST_GAIN = 0.05
_LEAST_DEVIATION = 0.05
_WORKER_STEPS = (1, 2, 4, 8, 16, 32)


class ChoiceRecord(BaseModel, frozen=True, extra="forbid"):
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


class SwarmMemory(BaseModel, frozen=True, extra="forbid"):
    """The records of one assistant, by kind of question and choice."""

    strategies: dict[str, dict[str, ChoiceRecord]] = {}
    workers: dict[str, dict[str, ChoiceRecord]] = {}


class SwarmAdvice(BaseModel, frozen=True, extra="forbid"):
    """A bonus or malus for strategies, and a number of workers; None: nothing was learned."""

    bonus: dict[str, float] = {}
    workers: int | None = None
    reasons: tuple[str, ...] = ()


def note_outcome(memory: SwarmMemory, outcome: SwarmOutcome) -> SwarmMemory:
    """Return the memory after one swarm."""
    value = outcome.value
    step = str(round_workers(outcome.workers))
    return SwarmMemory(
        strategies=_add(memory.strategies, outcome.kind, outcome.strategy[:60], value),
        workers=_add(memory.workers, outcome.kind, step, value),
    )


def advise(
    memory: SwarmMemory, kind: QuestionKind, *, configured: str = "", is_on: bool = True
) -> SwarmAdvice:
    """Return the advice for a kind of question; none where learning is off.

    `configured` is the strategy that is used otherwise: others must do better than it.
    """
    if not is_on:
        return SwarmAdvice()
    reasons = []
    strategies = memory.strategies.get(kind, {})
    bonus: dict[str, float] = {}
    best = _find_better(strategies, configured)
    if best is not None:
        gain = strategies[best].mean - _find_reference(strategies, best, configured).mean
        bonus[best] = round(min(MOST_BONUS, gain), 4)
        reasons.append(f"{best} did better by {gain:.2f} for {kind.value} questions")
    counts = memory.workers.get(kind, {})
    step = _find_better(counts, "")
    if step is not None:
        reasons.append(f"{name_workers(int(step))} did best for {kind.value} questions")
    return SwarmAdvice(
        bonus=bonus, workers=None if step is None else int(step), reasons=tuple(reasons)
    )


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
