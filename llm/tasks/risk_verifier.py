"""Ranks the risks of violations and gaps."""

from typing import Literal

from pydantic import BaseModel, Field

from llm.port import Task
from llm.tasks.specialist_material import KnownRequirement, KnownVerdict, SpecialistInputs


class Inputs(SpecialistInputs):
    """The violated and unmet requirements with their verdicts."""

    requirements: tuple[KnownRequirement, ...]
    verdicts: tuple[KnownVerdict, ...]


class RankedRisk(BaseModel, frozen=True):
    """The risk of one violation or gap."""

    requirement_id: str
    category: Literal["Legal", "Financial", "Operational", "Compliance", "Reputational"]
    severity: int = Field(ge=1, le=5)
    likelihood: int = Field(ge=1, le=5)
    reason: str
    mitigation: str = Field(description="what would lessen it, in one sentence")


class Output(BaseModel, frozen=True):
    """The risks, the greatest first."""

    risks: tuple[RankedRisk, ...]


TASK = Task(name="risk_verifier", inputs=Inputs, output=Output, max_output_tokens=4096)
