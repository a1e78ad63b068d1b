"""Asks for the wording of a question back, or of a polite refusal."""

from pydantic import BaseModel, Field

from envelope.conversation import ClarificationReason, Turn
from llm.port import PREPARING_SHARE, Task


class Inputs(BaseModel, frozen=True):
    """Why the desk asks or declines, and the fixed text that it would say otherwise."""

    reason: ClarificationReason
    message: str = Field(default="", description="what is unclear or missing")
    question: str = Field(default="", description="the user's question, standing alone")
    options: tuple[str, ...] = Field(default=(), description="places shown below the text")
    history: tuple[Turn, ...] = ()
    language: str = Field(description="of the user, ISO 639-1")
    topic: str
    stage: str = Field(default="", description="who in the flow asks")
    fixed_text: str = Field(description="in the user's language where there is one, else English")


class Output(BaseModel, frozen=True):
    """The wording."""

    text: str = Field(description="two sentences at most, in the user's language")


TASK = Task(
    name="clarify",
    inputs=Inputs,
    output=Output,
    temperature=0.2,
    max_output_tokens=400,
    time_share=PREPARING_SHARE,
)
