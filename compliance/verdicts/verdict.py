"""The verdict about one requirement and one document."""

from enum import StrEnum

from pydantic import BaseModel, Field

from compliance.requirements.requirement import TextPlace


class Status(StrEnum):
    """What a document does about a requirement."""

    COMPLIANT = "COMPLIANT"
    VIOLATION = "VIOLATION"
    GAP = "GAP"


class VerdictEvidence(BaseModel, frozen=True):
    """A passage that was read for a verdict; `score` compares it with others of the document."""

    place: TextPlace
    text: str
    score: float


class Verdict(BaseModel, frozen=True):
    """A status with its evidence, or with the places that were searched in vain.

    `confidence` is the estimated probability of the status, 0 to 1.
    """

    requirement_id: str
    status: Status
    confidence: float = Field(ge=0.0, le=1.0)
    evidence: tuple[VerdictEvidence, ...] = ()
    searched: tuple[TextPlace, ...] = ()
    note: str = ""
