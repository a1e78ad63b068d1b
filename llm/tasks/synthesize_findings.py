"""Writes one answer from what several workers wrote, each claim with its source."""

from pydantic import BaseModel, Field

from llm.port import Task
from llm.tasks.respond import PromptSource


class WorkerFinding(BaseModel, frozen=True):
    """What a worker wrote, with the numbers of its sources; empty: it found nothing."""

    worker: str = Field(description="its part or perspective")
    objective: str
    text: str
    sources: tuple[int, ...] = Field(default=(), description="numbers of what it found, best first")
    problem: str = Field(default="", description="why it has no result")


class Inputs(BaseModel, frozen=True):
    """The question, what the workers wrote, and the passages that they found."""

    question: str
    language: str = Field(description="of the answer, ISO 639-1")
    language_name: str = Field(default="", description="of the answer, in English")
    domain_name: str = Field(default="", description="the desk's name, as settings have it")
    domain_scope: str = Field(default="", description="the subject of the documents")
    persona: str = Field(default="", description="in whose voice the answer is written")
    form: str = Field(default="", description="the form of the answer that the strategy wants")
    items: tuple[str, ...] = Field(default=(), description="the rows of the table, if it is one")
    criteria: tuple[str, ...] = Field(default=(), description="the columns of the table")
    sources: tuple[PromptSource, ...]
    findings: tuple[WorkerFinding, ...]
    facts: tuple[str, ...] = Field(default=(), description="that the user gave")
    left_out: int = Field(default=0, ge=0, description="passages for which there was no room")
    analysis: str = Field(default="", description="what was wrong with the answer before")
    avoid: tuple[str, ...] = Field(default=(), description="claims that no source supports")
    before: str = Field(default="", description="the answer before, which is written anew")


class TableCell(BaseModel, frozen=True):
    """What was found about one item and one criterion."""

    item: str = Field(description="as it is listed")
    criterion: str = Field(description="as it is listed")
    finding: str = Field(
        default="", description="in a few words that end with [n]; empty: no source says it"
    )


class FoundContradiction(BaseModel, frozen=True):
    """Two sources of which only one can be right about the same thing."""

    about: str = Field(description="what they say differently, in one sentence with both numbers")
    one: int = Field(ge=1, description="the number of a source")
    other: int = Field(ge=1, description="the number of the other source")


class Output(BaseModel, frozen=True):
    """The answer, and what it lacks."""

    answer: str = Field(description="Markdown; claims end with [n]; without the table of `cells`")
    cells: tuple[TableCell, ...] = Field(
        default=(), description="where items and criteria are given: one for each of both"
    )
    contradictions: tuple[FoundContradiction, ...] = ()
    missing: tuple[str, ...] = Field(
        default=(), description="what was asked and no source says, a few words each"
    )
    dissents: bool = Field(default=False, description="whether perspectives in the answer disagree")


TASK = Task(name="synthesize_findings", inputs=Inputs, output=Output, max_output_tokens=6144)
