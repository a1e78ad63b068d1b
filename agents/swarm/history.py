"""Reads the logged outcomes of an assistant into the memory from which advice is given."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from agents.swarm.advisor import SwarmAdvice, SwarmMemory, advise, note_outcome
from agents.swarm.outcomes import QuestionKind, SwarmOutcome

if TYPE_CHECKING:
    from memory.learned_outcomes import LoggedOutcome

ReadOutcomes = Callable[[], Awaitable["Sequence[LoggedOutcome]"]]
FindAdvice = Callable[[QuestionKind, str], Awaitable[SwarmAdvice]]
"""Returns the advice for a kind of question; the second is the strategy that is used otherwise."""


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

    async def find_advice(kind: QuestionKind, configured: str) -> SwarmAdvice:
        history = read_history(await read_outcomes())
        return advise(history.memory, kind, configured=configured)

    return find_advice
