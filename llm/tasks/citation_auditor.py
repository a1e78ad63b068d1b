"""Checks citations: whether the source exists, says it, says all of it, and is well formatted."""

from typing import Literal

from pydantic import BaseModel, Field

from llm.port import Task
from llm.tasks.specialist_material import SpecialistInputs


class CitedStatement(BaseModel, frozen=True):
    """A statement with its citation, and the text of the passage; empty: nothing was found."""

    id: str
    statement: str
    citation: str
    passage: str = ""
    place: str = ""
    language: str = "en"
    known: tuple[str, ...] = Field(default=(), description="problems that code has proved")


class Inputs(SpecialistInputs):
    """The statements to check."""

    statements: tuple[CitedStatement, ...]


class CheckedStatement(BaseModel, frozen=True):
    """The findings about one statement."""

    id: str
    exists: bool = True
    says: Literal["yes", "partly", "no", "contradicts"]
    omitted: tuple[str, ...] = Field(default=(), description="conditions that it leaves out")
    is_well_formatted: bool = True
    problems: tuple[str, ...] = Field(default=(), description="sentences for people; none: good")


class Output(BaseModel, frozen=True):
    """The findings about all statements of the inputs."""

    statements: tuple[CheckedStatement, ...]


TASK = Task(name="citation_auditor", inputs=Inputs, output=Output, max_output_tokens=2048)
