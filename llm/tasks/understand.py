"""Asks in one call what the user's last turn means, and whether it is the desk's business."""

from pydantic import BaseModel, Field

from envelope.conversation import AnswerStyle, Pause, Turn
from llm.port import PREPARING_SHARE, Task
from llm.tasks.essence import Act, ContextType
from llm.tasks.scope import Strictness, Verdict


class Inputs(BaseModel, frozen=True):
    """The last turn with places such as `⟦1⟧`, its conversation, and what the documents hold."""

    text: str = Field(description="what the user typed, protected parts as places")
    language: str = Field(description="of the text, ISO 639-1")
    history: tuple[Turn, ...] = Field(default=(), description="oldest first")
    history_summary: str = ""
    open_pause: Pause | None = Field(default=None, description="the desk's open question")
    domain_name: str
    domain_scope: str = ""
    strictness: Strictness = "medium"
    nearest: tuple[str, ...] = Field(default=(), description="numbered pages, the best first")
    signs: tuple[str, ...] = Field(
        default=(), description="kinds of attack whose wording was found in the turn; a hint"
    )
    reviews_documents: bool = Field(
        default=False, description="whether the desk checks documents against rules"
    )


class RareDetails(BaseModel, frozen=True):
    """What few turns need; a field that does not apply stays empty."""

    corrections: tuple[str, ...] = Field(
        default=(), description="misspelt English words: wrong -> right"
    )
    questions: tuple[str, ...] = Field(
        default=(), description="only of a turn with several questions: each in English"
    )
    meanings: tuple[int, ...] = Field(
        default=(), description="only if unclear: the numbers of the pages that it could mean"
    )
    reason: str = Field(
        default="", description="unless within: what is unclear, or why it is outside"
    )
    act: Act | None = Field(default=None, description="only if the turn asks nothing new")
    style: AnswerStyle = Field(default="", description="only with `rephrase`")
    answer_language: str = Field(
        default="", description="only if the user asks for a language: its ISO 639-1 code"
    )
    assumption: str = Field(
        default="", description="only if the user wants an answer without choosing"
    )


class Output(BaseModel, frozen=True):
    """What most turns need; the user waits for each token.

    The question is first: it is known before the rest is written.
    """

    canonical_question: str = Field(
        default="", description="in English; empty: the turn is this question already"
    )
    context_type: ContextType
    verdict: Verdict
    details: RareDetails | None = Field(default=None, description="null for most turns")


TASK = Task(
    name="understand",
    inputs=Inputs,
    output=Output,
    max_output_tokens=1024,
    time_share=PREPARING_SHARE,
)
