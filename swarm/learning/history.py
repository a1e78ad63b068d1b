"""Reads the logged outcomes of an assistant into the memory from which advice is given."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import ValidationError

from swarm.learning.advisor import SwarmAdvice, SwarmMemory, advise, note_outcome
from swarm.learning.outcomes import QuestionKind, SwarmOutcome

FindAdvice = Callable[[QuestionKind, str], Awaitable[SwarmAdvice]]
"""Returns the advice for a kind of question; the second is the strategy that is used otherwise."""


class WrittenOutcome(Protocol):
    """One logged outcome: JSON of `SwarmOutcome` without its thumb, and the thumb, 1, -1 or 0."""

    @property
    def written(self) -> str: ...

    @property
    def thumb(self) -> int: ...


class OutcomeLog(Protocol):
    """Returns the outcomes of an assistant, oldest first; those of another one are never seen."""

    async def load(self, tenant: str, assistant: str) -> Sequence[WrittenOutcome]: ...


@dataclass(frozen=True, slots=True)
class OutcomeHistory:
    """The memory of an assistant, and the number of its outcomes.

    `unreadable` outcomes are of another version and are left out.
    """

    memory: SwarmMemory
    outcomes: int
    thumbs: int
    unreadable: int


def write_outcome(outcome: SwarmOutcome) -> str:
    """Return an outcome as it is logged: without its thumb, which users give later."""
    return outcome.model_dump_json(exclude={"thumb"}, exclude_defaults=True)


def read_history(entries: Iterable[WrittenOutcome]) -> OutcomeHistory:
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


def make_advice(log: OutcomeLog, tenant: str, assistant: str) -> FindAdvice:
    """Return a function that reads the outcomes of an assistant and gives advice from them."""

    async def find_advice(kind: QuestionKind, configured: str) -> SwarmAdvice:
        history = read_history(await log.load(tenant, assistant))
        return advise(history.memory, kind, configured=configured)

    return find_advice
