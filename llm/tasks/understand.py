"""Asks in one call for the translation, the essence and the scope of the user's last turn."""

from pydantic import BaseModel, Field

from envelope.conversation import AnswerStyle, ConversationAct, Pause, Turn
from llm.port import Task
from llm.tasks.essence import ClarificationResult, ContextType
from llm.tasks.scope import Strictness, Verdict


class Inputs(BaseModel, frozen=True):
    """The last turn with places such as `⟦1⟧`, its conversation, and the desk's subject."""

    text: str = Field(description="what the user typed, protected parts as places")
    language: str = Field(description="of the text, ISO 639-1")
    history: tuple[Turn, ...] = Field(default=(), description="oldest first")
    history_summary: str = ""
    open_pause: Pause | None = Field(default=None, description="the desk's open question")
    domain_name: str
    domain_scope: str = ""
    strictness: Strictness = "medium"


class RareDetails(BaseModel, frozen=True):
    """What few turns need. A field that is left out has the value that most turns have."""

    text_eng: str = Field(
        default="", description="the turn in English, if it says more than the question"
    )
    confidence: float = Field(
        default=0.9, ge=0, le=1, description="how sure you are of the meaning"
    )
    corrections: tuple[str, ...] = Field(default=(), description="wrong -> right")
    related_turns: tuple[int, ...] = Field(
        default=(), description="earlier user turns it leans on, if not 1 alone, the newest"
    )
    clarification_result: ClarificationResult | None = Field(
        default=None, description="only when the desk has an open question"
    )
    assumption: str = ""
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
    verdict_confidence: float = Field(default=0.9, ge=0, le=1)
    analysis: str = Field(default="", description="why not within, in a few words")


class Output(BaseModel, frozen=True):
    """The three parts. The user waits for each token, so rare fields are in one optional object.

    The question is first: it is known before the rest is written.
    """

    canonical_question: str = Field(
        default="", description="in English; empty: an English turn as it is"
    )
    context_type: ContextType
    verdict: Verdict | None = None
    details: RareDetails | None = None


TASK = Task(name="understand", inputs=Inputs, output=Output, max_output_tokens=1024)
