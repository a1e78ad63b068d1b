"""Collects gaps of five kinds from the verdicts, the document and the audit of citations."""

from typing import Literal

from pydantic import BaseModel, Field

from llm.port import Task
from llm.tasks.specialist_material import (
    KnownRequirement,
    KnownVerdict,
    SpecialistInputs,
    TextUnit,
)


class Inputs(SpecialistInputs):
    """All requirements with verdicts, some passages of the document, and wrong citations."""

    requirements: tuple[KnownRequirement, ...]
    verdicts: tuple[KnownVerdict, ...]
    headings: dict[str, str] = Field(
        default_factory=dict, description="the heading of each requirement in the law, by its id"
    )
    passages: tuple[TextUnit, ...] = ()
    wrong_citations: tuple[str, ...] = ()
    today: str = Field(default="", description="the date in UTC, as 2026-01-31")


class FoundGap(BaseModel, frozen=True):
    """One gap."""

    kind: Literal["regulatory", "coverage", "consistency", "citation", "temporal"]
    summary: str
    requirement_ids: tuple[str, ...] = ()
    passages: tuple[str, ...] = Field(default=(), description="ids of the passages it is about")


class Output(BaseModel, frozen=True):
    """The gaps, in the order of their kinds."""

    gaps: tuple[FoundGap, ...]


TASK = Task(name="gap_synthesizer", inputs=Inputs, output=Output, max_output_tokens=4096)
