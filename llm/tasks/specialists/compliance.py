"""Decides whether a document fulfils requirements, and which of its clauses contradict them."""

from typing import Literal

from pydantic import BaseModel, Field

from llm.port import Task
from llm.tasks.specialists.material import KnownRequirement, SpecialistInputs, TextUnit


class Inputs(SpecialistInputs):
    """Requirements, and the passages of a document; `shown` are those that a model reads."""

    document: str = Field(default="", description="its title")
    document_language: str = "en"
    rule_language: str = "en"
    requirements: tuple[KnownRequirement, ...]
    passages: tuple[TextUnit, ...]
    shown: tuple[str, ...] = Field(default=(), description="ids of the passages to read")


class RequirementVerdict(BaseModel, frozen=True):
    """The verdict about one requirement; the reason comes before what follows from it."""

    requirement_id: str
    note: str = Field(default="", description="the reason, in one sentence")
    evidence: tuple[str, ...] = Field(
        default=(), description="ids of the passages that show it; none for a gap"
    )
    status: Literal["COMPLIANT", "VIOLATION", "GAP"]
    confidence: float = Field(ge=0, le=1, description="the probability that the status is right")


class Output(BaseModel, frozen=True):
    """A verdict for each requirement of the inputs."""

    verdicts: tuple[RequirementVerdict, ...]
    notes: tuple[str, ...] = Field(default=(), description="what could not be judged, and why")


TASK = Task(name="compliance", inputs=Inputs, output=Output, max_output_tokens=4096)
