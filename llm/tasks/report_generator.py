"""Writes the executive summary and the recommendations of a report; all else is composed."""

from pydantic import BaseModel, Field

from llm.port import Task
from llm.tasks.specialist_material import KnownRequirement, KnownVerdict, SpecialistInputs


class Inputs(SpecialistInputs):
    """What the specialists found, compressed."""

    document: str
    law: str
    counts: dict[str, int] = Field(default_factory=dict, description="verdicts by status")
    requirements: tuple[KnownRequirement, ...] = ()
    verdicts: tuple[KnownVerdict, ...] = ()
    risks: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    errors: tuple[str, ...] = Field(default=(), description="what specialists could not do")


class Recommendation(BaseModel, frozen=True):
    """What to change because of one finding."""

    requirement_id: str
    advice: str = Field(description="which clause to change or to add, with the words to put there")


class Output(BaseModel, frozen=True):
    """Sentences for the report."""

    summary: tuple[str, ...] = Field(default=(), description="at most five sentences")
    recommendations: tuple[Recommendation, ...] = Field(
        default=(), description="one for each finding, the most urgent first"
    )


TASK = Task(name="report_generator", inputs=Inputs, output=Output, max_output_tokens=4096)
