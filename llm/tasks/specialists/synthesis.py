r"""Writes the answer from what the specialists found, with `\cite{id}` for each claim."""

from typing import Literal

from pydantic import BaseModel, Field

from llm.port import Task
from llm.tasks.specialists.material import SpecialistInputs


class FindingText(BaseModel, frozen=True):
    """A finding in one sentence, and the ids of the sources that show it."""

    text: str
    sources: tuple[str, ...]


class SynthesisSource(BaseModel, frozen=True):
    """A passage that was really read; only these may be cited."""

    id: str
    place: str
    language: str | None = None
    text: str


class Inputs(SpecialistInputs):
    """The findings in the user's language, and the sources."""

    language_name: str = Field(default="", description="of the answer, in English")
    findings: tuple[FindingText, ...] = ()
    sources: tuple[SynthesisSource, ...]
    notes: tuple[str, ...] = Field(
        default=(), description="what was left out, added, assumed, or went wrong"
    )
    analysis: str = Field(default="", description="what was wrong with the answer before")
    attempt: int = 0


class Output(BaseModel, frozen=True):
    """The answer, or its missing part."""

    status: Literal["answered", "insufficient_context"] = "answered"
    answer: str = Field(default="", description="Markdown; each claim ends with \\cite{id}")
    missing: str = Field(default="", description="what the sources do not say")


TASK = Task(name="synthesis", inputs=Inputs, output=Output, max_output_tokens=4096)
