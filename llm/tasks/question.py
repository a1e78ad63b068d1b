"""The tasks for understanding a question: translation, meaning, scope, and clarification."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field

from envelope.conversation import (
    AnswerStyle,
    ClarificationReason,
    Pause,
    QuestionTranslation,
    Turn,
)
from llm.port import PREPARING_SHARE, Task, keep_first_half

_PERCENT = 100


def _read_confidence(value: object) -> object:
    """Convert a percentage to a fraction, and a number that is out of range to 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or 0 <= value <= 1:
        return value
    return value / _PERCENT if 1 < value <= _PERCENT else 0.0


Confidence = Annotated[float, Field(ge=0, le=1), BeforeValidator(_read_confidence)]


class TranslateInputs(BaseModel, frozen=True):
    """A text whose protected parts are replaced by placeholders `⟦1⟧`, `⟦2⟧`, ..."""

    text: str
    language: str = Field(description="language of the text, ISO 639-1")


class TranslateOutput(BaseModel, frozen=True):
    """The text in English, with the same placeholders."""

    text_eng: str = Field(
        description="the text in clean English, with placeholders such as ⟦1⟧ unchanged"
    )
    confidence: Confidence = Field(description="how certain the meaning is")
    corrections: tuple[str, ...] = Field(
        default=(), description="the corrections, each in a few words: wrong -> right"
    )


TRANSLATE = Task(
    name="translate", inputs=TranslateInputs, output=TranslateOutput, time_share=PREPARING_SHARE
)
"""Translates text to clean English."""

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
    "preference",
    "exit",
]
"""The purpose of a turn that does not ask a new question; `exit` abandons the open
clarification.
"""


class EssenceInputs(BaseModel, frozen=True):
    """The last turn and the conversation before it."""

    text: str = Field(description="the text that the user typed")
    language: str = Field(default="", description="language of the last turn, ISO 639-1")
    text_eng: str = Field(
        default="", description="English translation of `text`; empty: not translated"
    )
    history: tuple[Turn, ...] = Field(default=(), description="previous turns, oldest first")
    history_summary: str = ""
    open_pause: Pause | None = Field(
        default=None, description="the open question of the desk to the user"
    )
    document_languages: tuple[str, ...] = Field(
        default=(),
        description="languages of the documents that differ from that of the turn, ISO 639-1",
    )


class EssenceOutput(BaseModel, frozen=True):
    """The standalone form of the question, and its relation to the conversation."""

    canonical_question: str
    context_type: ContextType
    questions: tuple[str, ...] = Field(
        default=(),
        description="only if the turn asks different things: each question, in the turn's "
        "language; the same question about several things is one",
    )
    translations: tuple[QuestionTranslation, ...] = Field(
        default=(), description="only if languages of the documents are listed"
    )
    act: Act | None = Field(
        default=None, description="only if the turn does not ask a new question"
    )
    style: AnswerStyle = Field(default="", description="only if the user requests a form of answer")
    answer_language: str = Field(
        default="", description="only if the user requests a language: its ISO 639-1 code"
    )
    from_now_on: bool = Field(
        default=False, description="whether this form and language apply to all further answers"
    )
    assumption: str = Field(
        default="",
        description="only if the user wants an answer without choosing an option: the assumed "
        "meaning",
    )


ESSENCE = Task(
    name="essence",
    inputs=EssenceInputs,
    output=EssenceOutput,
    max_output_tokens=512,
    time_share=PREPARING_SHARE,
)
"""Rewrites the last turn so that it can be understood without the conversation."""


class Meaning(BaseModel, frozen=True):
    """A possible meaning of an unclear question, as an option for the user."""

    label: str = Field(description="a few words in the user's language")
    place: int = Field(
        default=0, description="number of the nearest place about this meaning; 0: none"
    )


Strictness = Literal["low", "medium", "high"]
Verdict = Literal["within", "outside", "unclear"]


class ScopeInputs(BaseModel, frozen=True):
    """The question, the scope of the assistant, and the locations that match the question best."""

    question: str
    text: str = Field(default="", description="the text that the user typed")
    related: tuple[str, ...] = Field(default=(), description="earlier user turns, newest first")
    domain_name: str
    domain_scope: str = ""
    strictness: Strictness = "medium"
    nearest: tuple[str, ...] = Field(
        default=(), description="numbered locations in the documents, best match first"
    )
    signs: tuple[str, ...] = Field(
        default=(), description="kinds of attack whose wording occurs in the turn; only a hint"
    )
    reviews_documents: bool = Field(
        default=False, description="whether the desk checks documents against rules"
    )


class ScopeOutput(BaseModel, frozen=True):
    """The verdict and why."""

    verdict: Verdict
    confidence: Confidence
    analysis: str = Field(description="one sentence")
    meanings: tuple[Meaning, ...] = Field(
        default=(), description="only if unclear: the possible meanings, the most likely first"
    )


SCOPE = Task(
    name="scope",
    inputs=ScopeInputs,
    output=ScopeOutput,
    max_output_tokens=256,
    time_share=PREPARING_SHARE,
)
"""Decides whether a question is within the scope."""


class UnderstandInputs(BaseModel, frozen=True):
    """The last turn with placeholders such as `⟦1⟧`, the conversation, and matching locations."""

    text: str = Field(
        description="the text that the user typed, with placeholders for protected parts"
    )
    places: tuple[str, ...] = Field(
        default=(),
        description="the protected parts behind the placeholders, in order; long parts are "
        "truncated",
    )
    language: str = Field(description="language of the text, ISO 639-1")
    history: tuple[Turn, ...] = Field(default=(), description="previous turns, oldest first")
    history_summary: str = ""
    open_pause: Pause | None = Field(
        default=None, description="the open question of the desk to the user"
    )
    domain_name: str
    domain_scope: str = ""
    strictness: Strictness = "medium"
    nearest: tuple[str, ...] = Field(
        default=(),
        description="numbered locations, the best page first, each page before its sections",
    )
    signs: tuple[str, ...] = Field(
        default=(), description="kinds of attack whose wording occurs in the turn; only a hint"
    )
    reviews_documents: bool = Field(
        default=False, description="whether the desk checks documents against rules"
    )
    document_languages: tuple[str, ...] = Field(
        default=(),
        description="languages of the documents that differ from that of the turn, ISO 639-1",
    )


class RareDetails(BaseModel, frozen=True):
    """Details that only a few turns need; a field that does not apply stays empty."""

    corrections: tuple[str, ...] = Field(
        default=(), description="corrections of misspelt English words: wrong -> right"
    )
    questions: tuple[str, ...] = Field(
        default=(),
        description="only if the turn asks different things: each question, in the turn's "
        "language; the same question about several things is one",
    )
    translations: tuple[QuestionTranslation, ...] = Field(
        default=(), description="only if languages of the documents are listed"
    )
    meanings: tuple[Meaning, ...] = Field(
        default=(), description="only if unclear: the possible meanings, the most likely first"
    )
    reason: str = Field(
        default="", description="unless within: the unclear part, or why the question is outside"
    )
    act: Act | None = Field(
        default=None, description="only if the turn does not ask a new question"
    )
    style: AnswerStyle = Field(default="", description="only if the user requests a form of answer")
    answer_language: str = Field(
        default="", description="only if the user requests a language: its ISO 639-1 code"
    )
    from_now_on: bool = Field(
        default=False, description="whether this form and language apply to all further answers"
    )
    assumption: str = Field(
        default="",
        description="only if the user wants an answer without choosing an option: the assumed "
        "meaning",
    )


class UnderstandOutput(BaseModel, frozen=True):
    """The interpretation of a turn.

    The question comes first, so that it is known before the rest is written.
    """

    canonical_question: str = Field(
        default="", description="the question in English; empty: identical to the turn"
    )
    context_type: ContextType
    verdict: Verdict
    details: RareDetails | None = Field(default=None, description="null for most turns")


UNDERSTAND = Task(
    name="understand",
    inputs=UnderstandInputs,
    output=UnderstandOutput,
    max_output_tokens=1024,
    time_share=PREPARING_SHARE,
)
"""Decides in one call what the user's last turn means, and whether it is within the scope."""

LONGEST_ANSWER = 2_000
"""Maximum number of characters of an answer in the prompt."""


class AnsweredQuestion(BaseModel, frozen=True):
    """A question that the owner has answered, with the answer, which may be truncated."""

    number: int
    question: str
    answer: str


class MatchVerifiedInputs(BaseModel, frozen=True):
    """The user's question, and the most similar questions with verified answers."""

    question: str = Field(
        description="the question in a form that is understandable without the conversation"
    )
    text: str = Field(default="", description="the text that the user typed")
    answered: tuple[AnsweredQuestion, ...] = Field(description="the most similar question first")


class MatchVerifiedOutput(BaseModel, frozen=True):
    """The answered question with the same meaning, and the reason."""

    analysis: str = Field(description="one sentence")
    number: int = Field(
        ge=0, description="number of the answered question with the same meaning; 0: none"
    )


MATCH_VERIFIED = Task(
    name="match_verified",
    inputs=MatchVerifiedInputs,
    output=MatchVerifiedOutput,
    max_output_tokens=200,
    time_share=PREPARING_SHARE,
    shorten=keep_first_half("answered"),
)
"""Decides whether a question has the same meaning as one with a verified answer."""


class ClarifyInputs(BaseModel, frozen=True):
    """The reason for a clarification or refusal, and the fixed text to use if the model fails."""

    reason: ClarificationReason
    message: str = Field(default="", description="the unclear or missing information")
    question: str = Field(default="", description="the user's question in standalone form")
    options: tuple[str, ...] = Field(
        default=(), description="options that are shown below the text"
    )
    history: tuple[Turn, ...] = ()
    language: str = Field(description="language of the user, ISO 639-1")
    topic: str
    stage: str = Field(
        default="", description="stage of the flow that asks for clarification or refuses"
    )
    fixed_text: str = Field(
        description="the fixed text in the user's language if available, otherwise in English"
    )


class ClarifyOutput(BaseModel, frozen=True):
    """The text that is shown to the user."""

    text: str = Field(description="two sentences at most, in the user's language")


CLARIFY = Task(
    name="clarify",
    inputs=ClarifyInputs,
    output=ClarifyOutput,
    temperature=0.2,
    max_output_tokens=400,
    time_share=PREPARING_SHARE,
)
"""Words a clarification or a polite refusal."""


def list_earlier(history: tuple[Turn, ...]) -> tuple[str, ...]:
    """Return the user's earlier questions, newest first, each in its standalone form."""
    turns = (turn for turn in reversed(history) if turn.speaker == "user")
    return tuple(turn.text if turn.meant is None else turn.meant for turn in turns)
