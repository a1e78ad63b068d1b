"""The facts of a question: given by the user, verified in a source, to look up, or guessed.

A guess becomes a verified fact only with a source; a fact is never verified by another guess.
"""

from collections.abc import Iterable
from enum import StrEnum

from pydantic import BaseModel

from swarm.planning.plan import SwarmPlan
from swarm.synthesis.merged_claims import MergedClaim

MOST_FACTS = 200


class FactStatus(StrEnum):
    """How far a fact is known, in the order of growing certainty."""

    GUESSED = "guessed"
    TO_LOOK_UP = "to_look_up"
    GIVEN = "given"
    VERIFIED = "verified"


_ORDER = tuple(FactStatus)


class RecordedFact(BaseModel, frozen=True, extra="forbid"):
    """A statement with its status; `sources` are chunk ids, for a verified one at least one."""

    text: str
    status: FactStatus
    sources: tuple[str, ...] = ()


class FactLedger(BaseModel, frozen=True, extra="forbid"):
    """Facts in the order in which they were recorded, each once."""

    facts: tuple[RecordedFact, ...] = ()

    def record(self, text: str, status: FactStatus, sources: Iterable[str] = ()) -> "FactLedger":
        """Return the ledger with a fact; a fact that is there becomes more certain, never less.

        Raises `ValueError` for a verified fact without a source.
        """
        named = tuple(dict.fromkeys(sources))
        if status is FactStatus.VERIFIED and not named:
            raise ValueError(f"expected a source of the verified fact {text[:80]!r}, found none")
        fact = RecordedFact(text=text[:1_000], status=status, sources=named)
        known = next((one for one in self.facts if one.text == fact.text), None)
        if known is None:
            return FactLedger(facts=(*self.facts, fact)[-MOST_FACTS:])
        best = max(known, fact, key=lambda one: _ORDER.index(one.status))
        sources_of_both = tuple(dict.fromkeys((*known.sources, *named)))
        joined = best.model_copy(update={"sources": sources_of_both})
        return FactLedger(facts=tuple(joined if one is known else one for one in self.facts))

    def list_by(self, status: FactStatus) -> tuple[RecordedFact, ...]:
        """Return the facts of a status."""
        return tuple(one for one in self.facts if one.status is status)


def open_facts(plan: SwarmPlan, given: Iterable[str] = ()) -> FactLedger:
    """Return the facts at the start: what the user gave, and what the workers are to look up."""
    ledger = FactLedger()
    for text in given:
        ledger = ledger.record(text, FactStatus.GIVEN)
    for worker in plan.workers:
        ledger = ledger.record(worker.objective, FactStatus.TO_LOOK_UP)
    return ledger


def verify_facts(ledger: FactLedger, claims: Iterable[MergedClaim]) -> FactLedger:
    """Return the ledger with the claims that have a source as verified facts."""
    for claim in claims:
        ledger = ledger.record(claim.text, FactStatus.VERIFIED, (claim.source.chunk_id,))
    return ledger
