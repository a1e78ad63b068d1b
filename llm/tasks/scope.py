"""Asks whether a question is the desk's business."""

from typing import Literal

from pydantic import BaseModel, Field

from llm.port import PREPARING_SHARE, Task
from llm.tasks.confidence import Confidence

Strictness = Literal["low", "medium", "high"]
Verdict = Literal["within", "outside", "unclear"]


class Inputs(BaseModel, frozen=True):
    """The question, the desk's business, and the places that come nearest to the question."""

    question: str
    text: str = Field(default="", description="what the user typed")
    related: tuple[str, ...] = Field(default=(), description="earlier user turns, newest first")
    domain_name: str
    domain_scope: str = ""
    strictness: Strictness = "medium"
    nearest: tuple[str, ...] = Field(
        default=(), description="numbered places in the documents, best first"
    )
    signs: tuple[str, ...] = Field(
        default=(), description="kinds of attack whose wording was found in the turn; a hint"
    )
    reviews_documents: bool = Field(
        default=False, description="whether the desk checks documents against rules"
    )


class Output(BaseModel, frozen=True):
    """The verdict and why."""

    verdict: Verdict
    confidence: Confidence
    analysis: str = Field(description="one sentence")
    meanings: tuple[int, ...] = Field(
        default=(), description="only if unclear: the numbers of the places that it could mean"
    )


TASK = Task(
    name="scope", inputs=Inputs, output=Output, max_output_tokens=256, time_share=PREPARING_SHARE
)
