"""Puts the user's text into clean English."""

from collections.abc import Sequence
from typing import Protocol, Self

from pydantic import BaseModel, Field

from agents.agent import Agent, AgentParts
from envelope.conversation import ClarificationReason
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from knowledge.language.protecting import PlaceLost, Protected, protect
from llm.port import Model
from llm.tasks.translate import TASK, Inputs, Output


class Reads(BaseModel, frozen=True):
    """What was said, and in which language."""

    text: str = ""
    language: str = "en"


class Writes(BaseModel, frozen=True):
    """The text in clean English; confidence 0 says that it is the text as it came."""

    text_eng: str
    translation_confidence: float = Field(ge=0, le=1)
    corrections_made: bool = False
    corrections: tuple[str, ...] = ()
    translation_error: str = ""
    needs_clarification: bool = False
    clarification_reason: ClarificationReason | None = None
    clarification_message: str = ""


class TranslationSettings(Protocol):
    """The settings that this agent needs."""

    @property
    def product_names(self) -> tuple[str, ...]: ...


class TranslationAgent(Agent[Reads, Writes]):
    """Translate, or correct what is English already.

    Code, addresses, paths, identifiers and `product_names` are taken out before a model sees the
    text and come back byte for byte. Where the model loses one of them, the text stays as it came,
    with confidence 0, and `translation_error` says why.
    """

    role = Role.TRANSLATION
    reads = Reads
    writes = Writes

    def __init__(self, *, model: Model, product_names: Sequence[str] = ()) -> None:
        self._model = model
        self._product_names = tuple(product_names)

    @classmethod
    def make(cls, parts: AgentParts[TranslationSettings]) -> Self:
        return cls(model=parts.model(TASK.name), product_names=parts.settings.product_names)

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        protected = protect(reads.text, self._product_names)
        if not _has_words(protected):
            return Wrote(Writes(text_eng=reads.text, translation_confidence=1.0))
        inputs = Inputs(text=protected.text, language=reads.language)
        found = (await self._model.ask(TASK, inputs)).output
        return Wrote(_restore(reads.text, protected, found))


def _has_words(protected: Protected) -> bool:
    return any(letter.isalpha() for letter in protected.text)


def _restore(text: str, protected: Protected, found: Output) -> Writes:
    try:
        text_eng = protected.restore(found.text_eng)
        corrections = tuple(protected.restore_some(note) for note in found.corrections)
    except PlaceLost as lost:
        return _as_it_came(text, str(lost))
    if not text_eng.strip():
        return _as_it_came(text, "the model gave no text")
    return Writes(
        text_eng=text_eng,
        translation_confidence=found.confidence,
        corrections_made=bool(corrections),
        corrections=corrections,
    )


def _as_it_came(text: str, why: str) -> Writes:
    return Writes(text_eng=text, translation_confidence=0.0, translation_error=why)
