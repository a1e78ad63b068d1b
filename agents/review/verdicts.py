"""The values that specialists store: parts of a checklist, verdicts, risks and gaps."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, Field

from agents.review.requirements import Extraction, Requirement, TextPlace, UnitAccount
from llm.tasks.review import ClauseReading

GapKind = Literal["regulatory", "coverage", "consistency", "citation", "temporal"]


class Status(StrEnum):
    """Whether a document fulfils a requirement; `UNDECIDED`: it was not judged."""

    COMPLIANT = "COMPLIANT"
    VIOLATION = "VIOLATION"
    GAP = "GAP"
    UNDECIDED = "UNDECIDED"


class VerdictEvidence(BaseModel, frozen=True):
    """A text of the reviewed document, word for word, and its place."""

    place: TextPlace
    text: str


class Verdict(BaseModel, frozen=True):
    """A status with its evidence and its reason; `confidence` is the model's, 0 to 1.

    `closest` are the passages that a search found for it, where nobody has judged it or where it
    is a gap. `comparisons` are amounts and periods of both texts, compared by code.
    """

    requirement_id: str
    status: Status
    confidence: float | None = Field(default=None, ge=0.0, le=1.0)
    evidence: tuple[VerdictEvidence, ...] = ()
    closest: tuple[VerdictEvidence, ...] = ()
    comparisons: tuple[str, ...] = ()
    note: str = ""


class ReviewResult(BaseModel, frozen=True):
    """Verdicts in the order of the requirements."""

    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...] = ()
    passages: int = 0

    def of_status(self, status: Status) -> tuple[Verdict, ...]:
        """Return the verdicts of one status."""
        return tuple(one for one in self.verdicts if one.status is status)

    @property
    def findings(self) -> tuple[Verdict, ...]:
        """The violations, then the gaps."""
        return (*self.of_status(Status.VIOLATION), *self.of_status(Status.GAP))


class RiskCategory(StrEnum):
    """The kind of damage."""

    LEGAL = "Legal"
    FINANCIAL = "Financial"
    OPERATIONAL = "Operational"
    COMPLIANCE = "Compliance"
    REPUTATIONAL = "Reputational"


class Risk(BaseModel, frozen=True):
    """One risk; severity and likelihood 1 to 5, `score` their product."""

    requirement_id: str
    category: RiskCategory
    severity: int = Field(ge=1, le=5)
    likelihood: int = Field(ge=1, le=5)
    reason: str
    mitigation: str

    @property
    def score(self) -> int:
        """The product of severity and likelihood, 1 to 25."""
        return self.severity * self.likelihood


class SynthesizedGap(BaseModel, frozen=True):
    """One gap; `requirement_ids` and `places` name its subject."""

    kind: GapKind
    summary: str
    requirement_ids: tuple[str, ...] = ()
    places: tuple[TextPlace, ...] = ()


class ExtractedPart(BaseModel, frozen=True):
    """What a part of a law demands, and the account of each of its units, in order."""

    requirements: tuple[Requirement, ...]
    units: tuple[UnitAccount, ...]
    notes: tuple[str, ...] = ()


class ReadClauses(BaseModel, frozen=True):
    """How clauses of the document affect the requirements."""

    readings: tuple[ClauseReading, ...] = ()
    notes: tuple[str, ...] = ()


class DecidedPart(BaseModel, frozen=True):
    """The verdicts of some requirements."""

    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...] = ()
    passages: int = 0


class RankedRisks(BaseModel, frozen=True):
    """The risks of a review, the greatest first."""

    risks: tuple[Risk, ...]


class CollectedGaps(BaseModel, frozen=True):
    """The gaps of a review, in the order of their kinds."""

    gaps: tuple[SynthesizedGap, ...]


def join_extractions(parts: Sequence[ExtractedPart]) -> Extraction:
    """Return the parts as one, with requirements numbered in order; every unit is there once.

    Definitions have numbers of their own, so that those of the requirements have no holes.

    Raises `ValueError` if a unit is there twice.
    """
    requirements: list[Requirement] = []
    accounts: list[UnitAccount] = []
    counts = {"REQ": 0, "DEF": 0}
    for part in parts:
        names: dict[str, str] = {}
        for one in part.requirements:
            prefix = "DEF" if one.is_definition else "REQ"
            counts[prefix] += 1
            names[one.id] = f"{prefix}-{counts[prefix]:03d}"
        requirements += [one.model_copy(update={"id": names[one.id]}) for one in part.requirements]
        accounts += [
            one.model_copy(
                update={"requirement_ids": tuple(names[name] for name in one.requirement_ids)}
            )
            for one in part.units
        ]
    seen = [one.unit_id for one in accounts]
    if len(set(seen)) != len(seen):
        twice = next(one for one in seen if seen.count(one) > 1)
        raise ValueError(f"expected every unit once, found {twice!r} twice")
    notes = _list_once(note for part in parts for note in part.notes)
    return Extraction(requirements=tuple(requirements), units=tuple(accounts), notes=notes)


def join_decisions(parts: Sequence[DecidedPart]) -> ReviewResult:
    """Return the verdicts of the parts as one result; of two about one requirement, the first."""
    verdicts = {one.requirement_id: one for part in reversed(parts) for one in part.verdicts}
    order = _list_once(one.requirement_id for part in parts for one in part.verdicts)
    return ReviewResult(
        verdicts=tuple(verdicts[name] for name in order),
        notes=_list_once(note for part in parts for note in part.notes),
        passages=max((part.passages for part in parts), default=0),
    )


def _list_once(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
