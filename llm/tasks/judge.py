"""The task that judges whether sources support an answer, and how far it meets the question."""

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
    is_cut: bool = Field(default=False, description="its section says more than `text`")


class Passage(BaseModel, frozen=True):
    """A passage of the answer that needs a verdict, and what a check without a model found."""

    number: int = Field(ge=1)
    text: str
    note: str = ""


class Inputs(BaseModel, frozen=True):
    """The question, the answer, its sources, and the passages that need a verdict."""

    question: str
    language: str = Field(description="of the user, ISO 639-1")
    language_name: str = Field(default="", description="of the user, in English")
    answer: str
    passages: tuple[Passage, ...] = ()
    sources: tuple[JudgedSource, ...] = ()
    missing: str = Field(default="", description="what the writer did not find in the sources")
    attempt: int = 0


class Verdict(BaseModel, frozen=True):
    """Whether sources support a passage; the reason comes before the verdict."""

    passage: int = Field(ge=0, description="its number; 0 for another one that you doubt")
    quote: str = Field(description="the words it is about, exactly as they stand in the answer")
    reason: str = Field(default="", description="in at most ten words, before the verdict")
    supported: bool


class Output(BaseModel, frozen=True):
    """The verdicts, the measures, and the decision.

    Models write the fields in this order: reasons come before what follows from them.
    """

    claims_read: int = Field(ge=0, description="how many claims of the answer were compared")
    verdicts: tuple[Verdict, ...] = Field(
        default=(), description="one for each numbered passage and for each claim in doubt"
    )
    missing: tuple[str, ...] = Field(default=(), description="what was asked and is not answered")
    completeness: float = Field(ge=0, le=1, description="how far the answer meets the question")
    accuracy: float = Field(ge=0, le=1, description="how far the sources say what it says")
    language_matches: bool = Field(description="the answer is in the user's language")
    analysis: str = Field(
        default="", description="for whoever writes the next answer; empty when it is approved"
    )
    decision: Literal["approve", "regenerate", "research", "clarify"]


TASK = Task(name="judge", inputs=Inputs, output=Output, max_output_tokens=2048)
