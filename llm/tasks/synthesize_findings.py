"""Writes one answer from what several workers found, each claim with its source."""

from pydantic import BaseModel, Field

from llm.port import Task
from llm.tasks.respond import PromptSource


class WorkerFinding(BaseModel, frozen=True):
    """A quotation of a source, and the workers that found it."""

    text: str
    source: int = Field(ge=1, description="the number of the source")
    workers: tuple[str, ...]
    subject: str = ""


class Inputs(BaseModel, frozen=True):
    """The question, the findings with their sources, and the report of the rules."""

    question: str
    language: str = Field(description="of the answer, ISO 639-1")
    language_name: str = Field(default="", description="of the answer, in English")
    domain_name: str = Field(default="", description="the desk's name, as settings have it")
    persona: str = Field(default="", description="in whose voice the answer is written")
    strategy: str = Field(default="", description="how the question was divided")
    form: str = Field(default="", description="the form of the answer that the strategy wants")
    sources: tuple[PromptSource, ...]
    findings: tuple[WorkerFinding, ...]
    contradictions: tuple[str, ...] = ()
    missing: tuple[str, ...] = Field(default=(), description="what nobody found")
    analysis: str = Field(default="", description="what was wrong with the answer before")
    avoid: tuple[str, ...] = Field(default=(), description="claims that no source supports")
    report: str = Field(description="the report that the rules composed, with numbered sources")


class Output(BaseModel, frozen=True):
    """The answer."""

    answer: str = Field(description="Markdown; claims end with [n]")
    dissents: bool = Field(
        default=True, description="whether perspectives or sources in the answer disagree"
    )


TASK = Task(name="synthesize_findings", inputs=Inputs, output=Output, max_output_tokens=3072)
