r"""Writes the answer from what the specialists found, with `\cite{id}` for each claim."""

from typing import Literal

from pydantic import BaseModel, Field

from llm.port import Task
from llm.tasks.specialist_material import SpecialistInputs


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
    may_ask_again: bool = Field(default=False, description="whether one more round is possible")


class FurtherWork(BaseModel, frozen=True):
    """A specialist that has to work once more before there can be an answer."""

    specialist: str = Field(description="its name, such as extractor or compliance")
    focus: str = Field(description="what it has to find or decide, in one sentence")


class Output(BaseModel, frozen=True):
    """The answer, or its missing part."""

    status: Literal["answered", "insufficient_context"] = "answered"
    answer: str = Field(default="", description="Markdown; each claim ends with \\cite{id}")
    missing: str = Field(default="", description="what the sources do not say")
    further: FurtherWork | None = Field(
        default=None,
        description="null unless a round is possible and the answer would be wrong without it",
    )


TASK = Task(name="synthesis", inputs=Inputs, output=Output, max_output_tokens=4096)
