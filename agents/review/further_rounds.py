"""Decides about one more round of specialists, which the synthesis may ask for."""

from typing import Protocol

from envelope.ways.specialists import FurtherRound, SpecialistName, plan_further_round
from envelope.ways.tool_loop import Triage
from llm.tasks.specialists.synthesis import FurtherWork

_LONGEST_FOCUS = 500


class RoundReads(Protocol):
    """The rounds so far."""

    @property
    def further_round(self) -> FurtherRound | None: ...

    @property
    def attempt(self) -> int: ...

    @property
    def triage(self) -> Triage: ...


def may_ask_again(reads: RoundReads) -> bool:
    """Return whether specialists may work once more: one further round is enough for an answer."""
    return reads.further_round is None and reads.attempt == 0


def plan_further(wanted: FurtherWork | None, reads: RoundReads) -> FurtherRound | None:
    """Return the round that a model asks for; None: it asks for none, or for one that cannot be."""
    name = wanted.specialist.strip().lower() if wanted is not None else ""
    is_known = name in set(SpecialistName) and name != SpecialistName.SYNTHESIS
    if wanted is None or not is_known or not may_ask_again(reads):
        return None
    names = plan_further_round(SpecialistName(name), reads.triage.agent_sequence)
    return FurtherRound(names=names, focus=wanted.focus[:_LONGEST_FOCUS])
