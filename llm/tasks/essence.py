"""The task that makes the last turn understandable without its conversation."""

from typing import Literal

from pydantic import BaseModel, Field

from envelope.conversation import AnswerStyle, ConversationAct, Pause, Turn
from llm.port import Task

ContextType = Literal["new_topic", "follow_up", "clarification"]
ClarificationResult = Literal["search_again", "exit"]


class Inputs(BaseModel, frozen=True):
    """The last turn and the conversation before it."""

    text: str = Field(description="what the user typed")
    language: str = Field(default="", description="of the last turn, ISO 639-1")
    text_eng: str = Field(default="", description="the same in English, when it was translated")
    history: tuple[Turn, ...] = Field(default=(), description="oldest first")
    history_summary: str = ""
    open_pause: Pause | None = Field(default=None, description="the desk's open question")

    @property
    def earlier(self) -> tuple[str, ...]:
        """What the user said or meant in earlier turns, newest first."""
        turns = (turn for turn in reversed(self.history) if turn.speaker == "user")
        return tuple(turn.text if turn.meant is None else turn.meant for turn in turns)


class Output(BaseModel, frozen=True):
    """The question made to stand alone, and how it relates to the conversation."""

    canonical_question: str
    context_type: ContextType
    related_turns: tuple[int, ...] = Field(
        default=(), description="earlier user turns it leans on; 1 is the newest"
    )
    clarification_result: ClarificationResult | None = Field(
        default=None, description="only when the desk has an open question"
    )
    assumption: str = Field(
        default="", description="what is assumed because the user skipped the desk's question"
    )
    act: ConversationAct | None = Field(
        default=None, description="only when the turn asks nothing new of the documents"
    )
    style: AnswerStyle = Field(default="", description="only with `rephrase`")
    answer_language: str = Field(
        default="", description="only when the user asks for a language: its ISO 639-1 code"
    )
    questions: tuple[str, ...] = Field(
        default=(), description="only when the turn asks several unrelated questions: each of them"
    )


TASK = Task(name="essence", inputs=Inputs, output=Output, max_output_tokens=512)
