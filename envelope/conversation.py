"""The parts of a conversation that the payload contains."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, Field

PERSON_REPLY = "person reply"
"""The command that adds an answer from a staff member to a conversation; its arguments are the
language and the text. Users cannot enter it, because commands in messages do not contain spaces.
"""
BY_PERSON = "person"
"""The author (`answered_by`) of an answer from a staff member."""
HANDED_OVER = "handed over"
"""The command that reports whether a person was asked; its arguments are the language, `sent` or
`failed`, and the state of an email address that the user entered: `mail_asked` (confirmation
requested), `mail_confirmed` or `mail_failed`. Users cannot enter this command either.
"""
AnswerStyle = Literal["", "shorter", "simpler", "longer", "quoted", "usual"]
"""The style of answers that the user prefers; empty if the user has not chosen one."""


class ClarificationReason(StrEnum):
    """Why an agent asks for clarification or refuses to answer."""

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
"""Reasons that end a question as `refused`, or as `failed` for a fault of Refdesk, without a pause
or a clarification round.
"""
PauseKind = Literal["clarification", "information", "approval"]
FIELD_NAME = r"^[A-Za-z][A-Za-z0-9_]{0,63}$"


class Turn(BaseModel, frozen=True, extra="ignore"):
    """One message or one answer in a conversation.

    `meant` is the complete question if the text is a short reply such as "2" or "And 7?". `reason`
    is the `ClarificationReason` of a clarification or refusal. Only people who belong to all of
    `groups` may read the turn.
    """

    speaker: Literal["user", "assistant"]
    text: str
    meant: str | None = None
    language: str | None = None
    outcome: str | None = None
    reason: str | None = None
    groups: tuple[str, ...] | None = None


class Preferences(BaseModel, frozen=True, extra="ignore"):
    """The language and style of answers that the user prefers; None if unknown.

    An `explicit` choice of a language takes precedence over a detected language.
    """

    language: str | None = None
    explicit: bool = False
    style: AnswerStyle | None = None

    def changed_by(self, chosen: "Preferences") -> "Preferences":
        """Return the preferences updated with the fields that are set in `chosen`."""
        return self.model_copy(update=chosen.model_dump(exclude_defaults=True))


class ConversationAct(StrEnum):
    """The purpose of a message that is not a new question about the documents."""

    GREETING = "greeting"
    THANKS = "thanks"
    FAREWELL = "farewell"
    ACKNOWLEDGEMENT = "acknowledgement"
    EXIT = "exit"
    """The user ends the open question or the running work."""
    CAPABILITIES = "capabilities"
    PERSON = "person"
    """The user asks to talk to a person."""
    STRAY_CHOICE = "stray_choice"
    NO_ANSWER_YET = "no_answer_yet"
    WHY = "why"
    REPHRASE = "rephrase"
    CORRECTION = "correction"
    PREFERENCE = "preference"
    """The user chooses the style or language of all further answers."""


class ClarificationOption(BaseModel, frozen=True, extra="ignore"):
    """A possible meaning of a question: the location in the documents with these `crumbs`.

    If `is_worded` is true, a model wrote the label, and there may be no location.
    """

    label: str
    crumbs: tuple[str, ...] = ()
    is_worded: bool = False


class SuggestedAction(BaseModel, frozen=True, extra="ignore"):
    """A button that a channel can show; clicking it sends `value` as the next message.

    An action of the kind `source` opens a page instead: its `url`, or a link that the channel
    builds from the other fields.
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
    """A typed value that the user is asked for; a date has the format 2026-01-31."""

    name: str = Field(pattern=FIELD_NAME)
    type: Literal["text", "number", "date", "choice"] = "text"
    choices: tuple[str, ...] = ()
    required: bool = True


class PauseQuestion(BaseModel, frozen=True, extra="ignore"):
    """A question in a pause, which asks for the value of `field` or, if there is no field, for an
    approval.
    """

    id: str = Field(min_length=1, max_length=128)
    text: str = Field(min_length=1, max_length=2_000)
    suggestions: tuple[str, ...] = ()
    field: InputField | None = None


class PauseReply(BaseModel, frozen=True, extra="ignore"):
    """A structured reply to a pause: an approval, a denial, or values of fields by name.

    A value of None means that the user cannot or will not provide it, so that the work continues
    without it.
    """

    pause_id: str = Field(min_length=1, max_length=128)
    approve: bool | None = None
    fields: dict[str, str | int | float | None] = {}


class Pause(BaseModel, frozen=True, extra="ignore"):
    """A question to the user that waits for a reply; the next message may answer it.

    - `kind`: a reply to a clarification is processed from the start like any question, and
      continues in `flow` once it is recognized as the reply. Other kinds have `questions`, and
      their reply continues at the stage `resume_stage` of `flow`.
    - `groups`: as in a `Turn`. `people`: digests of the people who may answer; if empty, everybody
      who may read it.
    - `created`, `expires`: Unix seconds. `answers`: the values given so far, by field.
    - `places`: for each of `options`, the breadcrumbs of its location in the documents.
    - `tasks`: titles of the open tasks that a change of topic would cancel.
    - `remaining`: the other questions in the same message, to be offered after the answer.
    - `is_offer`: the message was answered, and the pause only offers the remaining questions; a
      message that chooses none of them is a new question.
    - `is_one_by_one`: asks for one value at a time, because no model could read a reply to all
      questions at once.
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
    """A question, translated into a language of the documents for the search in these documents."""

    language: str = Field(description="ISO 639-1 code")
    question: str


class Understanding(BaseModel, frozen=True):
    """The output of a combined call for essence and guardrails.

    Envelopes from earlier versions have further fields, which are ignored.
    """

    canonical_question: str = Field(
        description="question in English, understandable without context"
    )
    context_type: Literal["new_topic", "follow_up", "clarification"]
    verdict: Literal["within", "outside", "unclear"] | None = None
    analysis: str = Field(
        default="", description="the unclear part, or why the question is outside the scope"
    )
    meanings: tuple[ClarificationOption, ...] = Field(
        default=(), description="possible meanings of an unclear question"
    )
    questions: tuple[str, ...] = Field(
        default=(), description="questions of a message that contains several"
    )
    translations: tuple[QuestionTranslation, ...] = Field(
        default=(), description="translations of the questions into the languages of the documents"
    )
    wants_exit: bool = Field(default=False, description="the user abandons the open question")
    assumption: str = ""
    act: ConversationAct | None = None
    style: AnswerStyle = ""
    answer_language: str = ""
    from_now_on: bool = False
    signs: tuple[str, ...] = Field(
        default=(), description="signs of an attack, as a hint to the model"
    )
