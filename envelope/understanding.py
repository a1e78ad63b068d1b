"""What one model call for several stages found out for the stages after the one that asked."""

from typing import Literal

from pydantic import BaseModel, Field

from envelope.conversation import AnswerStyle, ClarificationOption, ConversationAct


class Understanding(BaseModel, frozen=True):
    """The parts of a combined call for essence and guardrails.

    Golden files of earlier versions hold further fields, which nobody reads any more.
    """

    canonical_question: str = Field(description="in English; stands alone")
    context_type: Literal["new_topic", "follow_up", "clarification"]
    verdict: Literal["within", "outside", "unclear"] | None = None
    analysis: str = Field(default="", description="what is unclear, or why it is outside")
    meanings: tuple[ClarificationOption, ...] = Field(
        default=(), description="places in the documents that an unclear question could mean"
    )
    questions: tuple[str, ...] = Field(default=(), description="of a turn that asks several")
    wants_exit: bool = Field(default=False, description="the user gives the open question up")
    assumption: str = ""
    act: ConversationAct | None = None
    style: AnswerStyle = ""
    answer_language: str = ""
    signs: tuple[str, ...] = Field(default=(), description="of an attack, as a hint to the model")
