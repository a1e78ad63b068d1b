"""The values of a review: verdicts with their evidence, risks and gaps. A model decides them."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, Field

from agents.review.requirements.requirement import TextPlace

GapKind = Literal["regulatory", "coverage", "consistency", "citation", "temporal"]


class Status(StrEnum):
    """What a document does about a requirement; `UNDECIDED`: nobody has judged it."""

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
