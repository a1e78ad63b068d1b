"""Asks whether each claim of an answer stands in the source it cites, and whether it is enough."""

from typing import Literal

from pydantic import BaseModel, Field

from llm.port import Task


class Claim(BaseModel, frozen=True):
    """A claim of the answer and the text of what it cites."""

    number: int = Field(ge=1)
    text: str
    evidence: str


class Inputs(BaseModel, frozen=True):
    """The question, the answer, and its claims one by one."""

    question: str
    language: str = Field(description="of the user, ISO 639-1")
    answer: str
    claims: tuple[Claim, ...]
    attempt: int = 0
    foreign: bool = Field(default=False, description="the sources are in another language")


class ClaimVerdict(BaseModel, frozen=True):
    """Whether one claim is supported by what it cites."""

    number: int
    supported: bool
    support: float = Field(ge=0, le=1)
    reason: str = ""


class Output(BaseModel, frozen=True):
    """A verdict for each claim, and what is to be done."""

    verdicts: tuple[ClaimVerdict, ...]
    completeness: float = Field(ge=0, le=1, description="how far the answer meets the question")
    language_matches: bool = Field(description="the answer is in the user's language")
    decision: Literal["approve", "research", "regenerate", "clarify"]
    missing: tuple[str, ...] = Field(default=(), description="what was asked and is not answered")
    analysis: str = ""


TASK = Task(name="judge", inputs=Inputs, output=Output, max_output_tokens=2048)
