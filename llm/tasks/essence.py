"""The task that makes the last turn understandable without its conversation."""

from typing import Literal

from pydantic import BaseModel, Field

from envelope.conversation import AnswerStyle, Pause, Turn
from llm.port import PREPARING_SHARE, Task

ContextType = Literal["new_topic", "follow_up", "clarification"]
ClarificationResult = Literal["search_again", "exit"]
Act = Literal[
    "greeting",
    "thanks",
    "farewell",
    "acknowledgement",
    "capabilities",
    "person",
    "why",
    "rephrase",
    "correction",
    "exit",
]
"""What a turn can do besides asking something new; `exit` gives the desk's open question up."""


def list_earlier(history: tuple[Turn, ...]) -> tuple[str, ...]:
    """Return what the user asked in earlier turns, newest first, each as a complete question."""
    turns = (turn for turn in reversed(history) if turn.speaker == "user")
    return tuple(turn.text if turn.meant is None else turn.meant for turn in turns)


class Inputs(BaseModel, frozen=True):
    """The last turn and the conversation before it."""

    text: str = Field(description="what the user typed")
    language: str = Field(default="", description="of the last turn, ISO 639-1")
    text_eng: str = Field(default="", description="the same in English, when it was translated")
    history: tuple[Turn, ...] = Field(default=(), description="oldest first")
    history_summary: str = ""
    open_pause: Pause | None = Field(default=None, description="the desk's open question")


class Output(BaseModel, frozen=True):
    """The question made to stand alone, and how it relates to the conversation."""

    canonical_question: str
    context_type: ContextType
    questions: tuple[str, ...] = Field(
        default=(), description="only of a turn with several questions: each in English"
    )
    act: Act | None = Field(default=None, description="only if the turn asks nothing new")
    style: AnswerStyle = Field(default="", description="only with `rephrase`")
    answer_language: str = Field(
        default="", description="only if the user asks for a language: its ISO 639-1 code"
    )
    assumption: str = Field(
        default="", description="only if the user wants an answer without choosing"
    )


TASK = Task(
    name="essence", inputs=Inputs, output=Output, max_output_tokens=512, time_share=PREPARING_SHARE
)
