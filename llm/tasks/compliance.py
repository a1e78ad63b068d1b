"""Compares a document with requirements: what each clause does to them, and the verdict of each.

The clauses are read first (`direction` clauses), so that a verdict knows every clause that another
reading has found to matter.
"""

from typing import Literal

from pydantic import BaseModel, Field

from llm.port import Task
from llm.tasks.specialist_material import KnownRequirement, SpecialistInputs, TextUnit

Effect = Literal["fulfils", "breaks", "unclear"]


class ClauseReading(BaseModel, frozen=True):
    """What a passage of the document does to a requirement."""

    passage: str = Field(description="its id")
    requirement_id: str
    effect: Effect
    reason: str = Field(default="", description="in one sentence")


class ComparedMeasures(BaseModel, frozen=True):
    """Numbers of a requirement and of a passage in the same unit, compared by code."""

    requirement_id: str
    passage: str
    lines: tuple[str, ...]


class Inputs(SpecialistInputs):
    """Requirements and passages of a document, and what is known about them."""

    direction: Literal["clauses", "requirements"] = "requirements"
    document: str = Field(default="", description="its title")
    law: str = Field(default="", description="its title")
    requirements: tuple[KnownRequirement, ...]
    passages: tuple[TextUnit, ...]
    is_whole: bool = Field(default=False, description="whether these are all of the document")
    comparisons: tuple[ComparedMeasures, ...] = ()
    readings: tuple[ClauseReading, ...] = Field(
        default=(), description="what the reading of the clauses has found"
    )


class QuotedPassage(BaseModel, frozen=True):
    """A part of a passage as evidence."""

    passage: str = Field(description="its id")
    quotation: str = Field(default="", description="the words that decide, copied exactly")


class RequirementVerdict(BaseModel, frozen=True):
    """The verdict about one requirement; the reason comes before what follows from it."""

    requirement_id: str
    reason: str = Field(default="", description="in one or two sentences")
    evidence: tuple[QuotedPassage, ...] = Field(default=(), description="none for a gap")
    status: Literal["COMPLIANT", "VIOLATION", "GAP", "UNDECIDED"]
    confidence: float = Field(ge=0, le=1, description="the probability that the status is right")


class Output(BaseModel, frozen=True):
    """What was asked for: the readings of the clauses, or a verdict for each requirement."""

    readings: tuple[ClauseReading, ...] = ()
    verdicts: tuple[RequirementVerdict, ...] = ()
    notes: tuple[str, ...] = Field(default=(), description="what could not be judged, and why")


TASK = Task(name="compliance", inputs=Inputs, output=Output, max_output_tokens=8192)
