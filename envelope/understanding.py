"""What one model call for several stages found out for the stages after the one that asked."""

from typing import Literal

from pydantic import BaseModel, Field

from envelope.conversation import AnswerStyle, ConversationAct


class Understanding(BaseModel, frozen=True):
    """The parts of a combined call for essence and guardrails, as the model gave them.

    Each stage checks its part before it uses it. `verdict` is None when the call gave none.
    """

    canonical_question: str = Field(description="in English; stands alone")
    context_type: Literal["new_topic", "follow_up", "clarification"]
    related_turns: tuple[int, ...] = Field(default=(), description="1 is the newest user turn")
    clarification_result: Literal["search_again", "exit"] | None = None
    assumption: str = ""
    act: ConversationAct | None = None
    style: AnswerStyle = ""
    answer_language: str = ""
    questions: tuple[str, ...] = ()
    verdict: Literal["within", "outside", "unclear"] | None = None
    verdict_confidence: float = Field(default=0.0, ge=0, le=1)
    analysis: str = Field(default="", description="why the verdict, in a few words")
