"""The parts of a conversation that the payload contains."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, Field


class Turn(BaseModel, frozen=True, extra="forbid"):
    """One message or one answer of a conversation.

    `meant` is the complete question if the text is a short reply such as "2" or "And 7?".
    `reason` is the `ClarificationReason` of an answer that asked back or refused. `groups` are
    those of the person to whom it was said: nobody reads it without them.
    """

    speaker: Literal["user", "assistant"]
    text: str
    meant: str | None = None
    language: str | None = None
    outcome: str | None = None
    reason: str | None = None
    groups: tuple[str, ...] | None = None


class Preferences(BaseModel, frozen=True, extra="forbid"):
    """The user's language; an `explicit` choice takes precedence over a detected language."""

    language: str | None = None
    explicit: bool = False


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
    INTERNAL_FAULT = "internal_fault"


REFUSALS = frozenset(
    {
        ClarificationReason.OUT_OF_SCOPE,
        ClarificationReason.INSUFFICIENT_CONTEXT,
        ClarificationReason.NO_DOCUMENTS,
        ClarificationReason.NO_TRANSLATION,
        ClarificationReason.INTERNAL_FAULT,
    }
)
"""Reasons that end a question without a pause and without a round: as `refused`, and a fault of the
desk as `failed`."""


class ConversationAct(StrEnum):
    """What a message does if it asks nothing new of the documents."""

    GREETING = "greeting"
    THANKS = "thanks"
    FAREWELL = "farewell"
    ACKNOWLEDGEMENT = "acknowledgement"
    CAPABILITIES = "capabilities"
    STRAY_CHOICE = "stray_choice"
    NO_ANSWER_YET = "no_answer_yet"
    WHY = "why"
    REPHRASE = "rephrase"
    CORRECTION = "correction"


AnswerStyle = Literal["", "shorter", "simpler", "longer", "quoted"]
"""The form in which the user wants the answer; empty: the usual one."""


class ClarificationOption(BaseModel, frozen=True, extra="forbid"):
    """A place in the documents that a question may mean; `crumbs` lead to it."""

    label: str
    crumbs: tuple[str, ...] = ()


class SuggestedAction(BaseModel, frozen=True, extra="forbid"):
    """A button that a channel can show; pressing it sends `value` as the next message.

    A `source` is a page to open instead: by `url`, or by what a channel finds it with.
    """

    label: str
    value: str
    kind: Literal["option", "skip", "exit", "source"] = "option"
    url: str | None = None
    crumbs: tuple[str, ...] = ()
    chunk_id: str | None = None
    path: str | None = None
    anchor: str | None = None


class Pause(BaseModel, frozen=True, extra="forbid"):
    """A clarification that waits for the user's reply; the next message may answer it.

    `groups` as in a `Turn`.
    `remaining` are the other questions of the same message, to be offered after the answer. With
    `is_offer`, the message was answered and the pause only offers the questions that remain: a turn
    that chooses none of them is about something else.
    """

    pause_id: str
    original_question: str
    original_text: str
    reason: ClarificationReason
    asked: str
    options: tuple[str, ...] = ()
    round: int = Field(default=1, ge=1)
    best_answer: dict[str, object] | None = None
    groups: tuple[str, ...] | None = None
    remaining: tuple[str, ...] = ()
    is_offer: bool = False
