"""The task that judges whether sources support each claim of an answer, and its completeness."""

from typing import Literal

from pydantic import BaseModel, Field

from llm.port import Task


class JudgedSource(BaseModel, frozen=True):
    """A source that the writer of the answer had, under the number that the answer gives it.

    Sources that the answer does not cite have the numbers after those that it cites.
    """

    number: int = Field(ge=1)
    place: str = Field(description="title, crumbs and headings, joined")
    text: str


class Claim(BaseModel, frozen=True):
    """A claim of the answer, its citations, and the findings of the checks without a model."""

    number: int = Field(ge=1)
    text: str
    cites: tuple[int, ...] = Field(default=(), description="numbers of sources; empty: it frames")
    evidence: str = Field(description="the texts of what it cites")
    note: str = Field(default="", description="what a check without a model found missing")


class Inputs(BaseModel, frozen=True):
    """The question, the answer, its sources, and its claims one by one."""

    question: str
    language: str = Field(description="of the user, ISO 639-1")
    language_name: str = Field(default="", description="of the user, in English")
    answer: str
    claims: tuple[Claim, ...]
    sources: tuple[JudgedSource, ...] = ()
    attempt: int = 0
    foreign: bool = Field(default=False, description="the sources are in another language")


class ClaimVerdict(BaseModel, frozen=True):
    """Whether one claim is supported by what it cites; the reason comes before the verdict."""

    number: int
    reason: str = Field(default="", description="in at most ten words, before the verdict")
    support: float = Field(ge=0, le=1)
    supported: bool


class Output(BaseModel, frozen=True):
    """A verdict for each claim, and the decision.

    Models write the fields in this order: reasons come before what follows from them.
    """

    verdicts: tuple[ClaimVerdict, ...]
    missing: tuple[str, ...] = Field(default=(), description="what was asked and is not answered")
    completeness: float = Field(ge=0, le=1, description="how far the answer meets the question")
    language_matches: bool = Field(description="the answer is in the user's language")
    analysis: str = Field(
        default="", description="for whoever writes the next answer; empty when it is approved"
    )
    decision: Literal["approve", "research", "regenerate", "clarify"]


TASK = Task(name="judge", inputs=Inputs, output=Output, max_output_tokens=2048)
