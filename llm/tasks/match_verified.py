"""Asks whether a question means the same as one that the owner of the desk has answered."""

from pydantic import BaseModel, Field

from llm.port import PREPARING_SHARE, Task

LONGEST_ANSWER = 2_000
"""Characters of an answer that are shown."""


class AnsweredQuestion(BaseModel, frozen=True):
    """A question that the owner has answered, with the answer, perhaps cut."""

    number: int
    question: str
    answer: str


class Inputs(BaseModel, frozen=True):
    """The question of the user, and the answered questions that come nearest to it."""

    question: str = Field(description="in a form that needs no conversation")
    text: str = Field(default="", description="what the user typed")
    answered: tuple[AnsweredQuestion, ...] = Field(description="the nearest first")


class Output(BaseModel, frozen=True):
    """The answered question that means the same, and why."""

    analysis: str = Field(description="one sentence")
    number: int = Field(ge=0, description="of the answered question; 0: none means the same")


TASK = Task(
    name="match_verified",
    inputs=Inputs,
    output=Output,
    max_output_tokens=200,
    time_share=PREPARING_SHARE,
)
