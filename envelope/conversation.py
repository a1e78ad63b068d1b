"""The parts of a conversation that the payload contains."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, Field

PERSON_REPLY = "person reply"
"""The command that adds a person's answer to a conversation; its arguments are the language and the
text. Users cannot type it, because commands in messages contain no blanks.
"""
BY_PERSON = "person"
"""The author of such an answer (`answered_by`)."""
HANDED_OVER = "handed over"
"""The command that reports whether a person was asked; its arguments are the language, `sent` or
`failed`, and what becomes of an e-mail address that the user left: `mail_asked` (to confirm it),
`mail_confirmed` or `mail_failed`. Users cannot type it either.
"""
AnswerStyle = Literal["", "shorter", "simpler", "longer", "quoted", "usual"]
"""The form in which the user wants an answer; empty: they said nothing about it."""


class ClarificationReason(StrEnum):
    """The reason for which an agent asks back or refuses."""

    AMBIGUOUS_QUERY = "ambiguous_query"
    INSUFFICIENT_CONTEXT = "insufficient_context"
    SCOPE_UNCLEAR = "scope_unclear"
    MULTIPLE_TOPICS = "multiple_topics"
    MISSING_DETAILS = "missing_details"
    OUT_OF_SCOPE = "out_of_scope"
    QUALITY_INSUFFICIENT = "quality_insufficient"
    NO_DOCUMENTS = "no_documents"
    NO_TRANSLATION = "no_translation"
    MODEL_FAILED = "model_failed"
    INTERNAL_FAULT = "internal_fault"


REFUSALS = frozenset(
    {
        ClarificationReason.OUT_OF_SCOPE,
        ClarificationReason.INSUFFICIENT_CONTEXT,
        ClarificationReason.NO_DOCUMENTS,
        ClarificationReason.NO_TRANSLATION,
        ClarificationReason.MODEL_FAILED,
        ClarificationReason.INTERNAL_FAULT,
    }
)
"""Reasons that end a question without a pause or a clarification round: as `refused`, or as
`failed` for a fault of Refdesk.
"""
PauseKind = Literal["clarification", "information", "approval"]
FIELD_NAME = r"^[A-Za-z][A-Za-z0-9_]{0,63}$"


class Turn(BaseModel, frozen=True, extra="ignore"):
    """One message or one answer of a conversation.

    `meant` is the complete question if the text is a short reply such as "2" or "And 7?".
    `reason` is the `ClarificationReason` of an answer that asked back or refused. Only people with
    all of `groups` may read it.
    """

    speaker: Literal["user", "assistant"]
    text: str
    meant: str | None = None
    language: str | None = None
    outcome: str | None = None
    reason: str | None = None
    groups: tuple[str, ...] | None = None


class Preferences(BaseModel, frozen=True, extra="ignore"):
    """The language and the form in which the user wants answers; None: nothing is known.

    An `explicit` choice of a language takes precedence over a detected language.
    """

    language: str | None = None
    explicit: bool = False
    style: AnswerStyle | None = None

    def changed_by(self, chosen: "Preferences") -> "Preferences":
        """Return the preferences after a choice, which may be of the language or form alone."""
        return self.model_copy(update=chosen.model_dump(exclude_defaults=True))


class ConversationAct(StrEnum):
    """What a message does if it asks nothing new of the documents."""

    GREETING = "greeting"
    THANKS = "thanks"
    FAREWELL = "farewell"
    ACKNOWLEDGEMENT = "acknowledgement"
    EXIT = "exit"
    """The user ends the open question or the running work."""
    CAPABILITIES = "capabilities"
    PERSON = "person"
    """The user asks for a person."""
    STRAY_CHOICE = "stray_choice"
    NO_ANSWER_YET = "no_answer_yet"
    WHY = "why"
    REPHRASE = "rephrase"
    CORRECTION = "correction"
    PREFERENCE = "preference"
    """The user says how all further answers should be."""


class ClarificationOption(BaseModel, frozen=True, extra="ignore"):
    """What a question may mean: a place in the documents, to which `crumbs` lead.

    With `is_worded`, a model has worded what the question may mean, perhaps without a place.
    """

    label: str
    crumbs: tuple[str, ...] = ()
    is_worded: bool = False


class SuggestedAction(BaseModel, frozen=True, extra="ignore"):
    """A button that a channel can show; pressing it sends `value` as the next message.

    A `source` is a page to open instead: by `url`, or by the fields from which a channel makes a
    link.
    """

    label: str
    value: str
    kind: Literal["option", "skip", "exit", "source"] = "option"
    url: str | None = None
    crumbs: tuple[str, ...] = ()
    chunk_id: str | None = None
    path: str | None = None
    anchor: str | None = None


class InputField(BaseModel, frozen=True, extra="ignore"):
    """A typed value that the user is asked for; a date has the form 2026-01-31."""

    name: str = Field(pattern=FIELD_NAME)
    type: Literal["text", "number", "date", "choice"] = "text"
    choices: tuple[str, ...] = ()
    required: bool = True


class PauseQuestion(BaseModel, frozen=True, extra="ignore"):
    """One question of a pause: with a field it asks for a value, without one for an approval."""

    id: str = Field(min_length=1, max_length=128)
    text: str = Field(min_length=1, max_length=2_000)
    suggestions: tuple[str, ...] = ()
    field: InputField | None = None


class PauseReply(BaseModel, frozen=True, extra="ignore"):
    """A typed reply to a pause: the approval or its denial, or values of fields by name.

    None as a value: the user does not know it or does not say it, so the work goes on without it.
    """

    pause_id: str = Field(min_length=1, max_length=128)
    approve: bool | None = None
    fields: dict[str, str | int | float | None] = {}


class Pause(BaseModel, frozen=True, extra="ignore"):
    """A question to the user that waits for a reply; the next message may answer it. `groups` as in
    a `Turn`. The reply to a clarification begins at the start like any question, and continues in
    `flow` once it is recognised as the reply. A pause of another kind has `questions`, and its
    reply continues at the stage `resume_stage` of `flow`; `created` and `expires` are Unix seconds,
    `answers` the values that were given so far. Only `people`, the digests of who asked, may answer
    it; empty: everybody who may read it. `places` are the crumbs to the places in the documents
    that the `options` name, in their order. `tasks` are the titles of the open tasks that another
    topic would cancel. `remaining` are the other questions of the same message, to be offered after
    the answer. With `is_offer`, the message was answered and the pause only offers the questions
    that remain: a turn that chooses none of them is about something else. With `is_one_by_one`, it
    asks for one value at a time: no model could read a reply to all of its questions.
    """

    pause_id: str
    original_question: str
    original_text: str
    reason: ClarificationReason
    asked: str
    options: tuple[str, ...] = ()
    places: tuple[tuple[str, ...], ...] = ()
    round: int = Field(default=1, ge=1)
    best_answer: dict[str, object] | None = None
    groups: tuple[str, ...] | None = None
    remaining: tuple[str, ...] = ()
    is_offer: bool = False
    kind: PauseKind = "clarification"
    asked_by: str = ""
    questions: tuple[PauseQuestion, ...] = ()
    answers: dict[str, str | int | float | None] = {}
    created: float = 0.0
    expires: float = 0.0
    resume_stage: str = ""
    flow: str = ""
    language: str = ""
    people: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    is_one_by_one: bool = False


class QuestionTranslation(BaseModel, frozen=True):
    """A question in a language of the documents, for the search in these documents."""

    language: str = Field(description="ISO 639-1 code")
    question: str


class Understanding(BaseModel, frozen=True):
    """The parts of a combined call for essence and guardrails.

    Golden files of earlier versions have further fields, which are ignored.
    """

    canonical_question: str = Field(description="in English; stands alone")
    context_type: Literal["new_topic", "follow_up", "clarification"]
    verdict: Literal["within", "outside", "unclear"] | None = None
    analysis: str = Field(default="", description="what is unclear, or why it is outside")
    meanings: tuple[ClarificationOption, ...] = Field(
        default=(), description="what an unclear question could mean"
    )
    questions: tuple[str, ...] = Field(default=(), description="of a turn that asks several")
    translations: tuple[QuestionTranslation, ...] = Field(
        default=(), description="of the questions, in the languages of the documents"
    )
    wants_exit: bool = Field(default=False, description="the user gives the open question up")
    assumption: str = ""
    act: ConversationAct | None = None
    style: AnswerStyle = ""
    answer_language: str = ""
    from_now_on: bool = False
    signs: tuple[str, ...] = Field(default=(), description="of an attack, as a hint to the model")
