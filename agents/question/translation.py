"""Translates the text of the user into correct English."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol, Self

from pydantic import BaseModel, Field

from agents.agent import Agent, AgentParts
from envelope.conversation import ClarificationReason, Pause, Turn
from envelope.outcome import GaveUp, HopOutcome, Wrote
from envelope.role import Role
from envelope.understanding import Understanding
from knowledge.language.certainty import ENGLISH, is_certainly_english
from knowledge.language.port import Detector
from knowledge.language.protecting import PlaceholderLost, Protected, protect
from knowledge.port import ANSWER_CHARACTERS, SearchRequest
from llm.errors import ModelError
from llm.offline.dialogue.open_questions import without_offer
from llm.offline.essence_rules import stands_alone
from llm.offline.replies import plain_reply
from llm.partial_answers.following import ask_and_follow
from llm.partial_answers.question_reader import QuestionReader
from llm.partial_answers.text_listener import TextListener
from llm.port import Model
from llm.tasks import essence, understand
from llm.tasks.scope import Strictness
from llm.tasks.translate import TASK, Inputs, Output

if TYPE_CHECKING:
    from knowledge.search.early_embedding import EarlyEmbedding

EarlyResult = Literal["", "kept", "discarded"]


class Reads(BaseModel, frozen=True):
    """The text, its language, and its conversation."""

    text: str = ""
    language: str = "en"
    history: tuple[Turn, ...] = ()
    history_summary: str = ""
    open_pause: Pause | None = None


class Writes(BaseModel, frozen=True):
    """The text in correct English; with confidence 0 it is the unchanged text."""

    text_eng: str
    translation_confidence: float = Field(ge=0, le=1)
    corrections_made: bool = False
    corrections: tuple[str, ...] = ()
    translation_error: str = ""
    needs_clarification: bool = False
    clarification_reason: ClarificationReason | None = None
    clarification_message: str = ""
    understanding: Understanding | None = None
    decided_by: Literal["rules", "combined_call", "own_call"]
    asked_again: str = ""
    early_embedding: EarlyResult = ""


class TranslationSettings(Protocol):
    """The settings that this agent needs."""

    @property
    def product_names(self) -> tuple[str, ...]: ...

    @property
    def skip_certain_calls(self) -> bool: ...

    @property
    def combines_understanding(self) -> bool: ...

    @property
    def domain_name(self) -> str: ...

    @property
    def domain_scope(self) -> str: ...

    @property
    def guardrails_strictness(self) -> Strictness: ...


@dataclass(frozen=True, slots=True)
class CombinedCall:
    """The model of the task `understand`, and the facts about the desk that it receives."""

    model: Model
    domain_name: str
    domain_scope: str = ""
    strictness: Strictness = "medium"


class TranslationAgent(Agent[Reads, Writes]):
    """Translates the text, or corrects English text.

    Code, addresses, paths, identifiers and `product_names` are removed before the model call and
    put back byte for byte. If the model loses one of them, the text stays unchanged with confidence
    0, and `translation_error` states the reason.

    With a `detector`, rules decide in certain cases: an English turn that can be understood alone
    and a plain reply to an open question need no model. Otherwise one `combined` call, if
    configured, also returns essence and scope, and `understanding` carries these results. If it
    returns no usable translation, the agent makes a call for the translation alone, and
    `asked_again` states the reason.

    With an `early_embedding`, a vendor embeds the question as soon as the combined call has written
    it, while it writes the rest. `early_embedding` is "discarded" if the call ends with another
    question.
    """

    role = Role.TRANSLATION
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        model: Model,
        product_names: Sequence[str] = (),
        detector: Detector | None = None,
        combined: CombinedCall | None = None,
        early_embedding: "EarlyEmbedding | None" = None,
    ) -> None:
        self._model = model
        self._product_names = tuple(product_names)
        self._detector = detector
        self._combined = combined
        self._early = early_embedding

    @classmethod
    def make(cls, parts: AgentParts[TranslationSettings]) -> Self:
        settings = parts.settings
        combined = None
        if settings.combines_understanding:
            combined = CombinedCall(
                parts.model(understand.TASK.name),
                settings.domain_name,
                settings.domain_scope,
                settings.guardrails_strictness,
            )
        return cls(
            model=parts.model(TASK.name),
            product_names=settings.product_names,
            detector=parts.detector if settings.skip_certain_calls else None,
            combined=combined,
            early_embedding=parts.early_embedding,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        protected = protect(reads.text, self._product_names)
        if not _has_words(protected) or self._is_plain_reply(reads):
            return Wrote(_keep_unchanged(reads.text))
        is_english = self._detector is not None and is_certainly_english(
            protected.text, self._detector
        )
        if is_english and _stands_alone(reads):
            return Wrote(_keep_unchanged(reads.text))
        try:
            return Wrote(await self._ask(reads, protected, is_english=is_english))
        except ModelError as error:
            return GaveUp(f"{type(error).__name__}: {error}")

    async def _ask(self, reads: Reads, protected: Protected, *, is_english: bool) -> Writes:
        """Return the results of the combined call, else those of a call for the translation."""
        if self._combined is None:
            return await self._ask_own(reads, protected, is_english=is_english)
        reader = QuestionReader(partial(self._embed_early, reads, protected))
        try:
            return await self._ask_combined(self._combined, reads, protected, reader)
        except (ModelError, UnusableTranslationError) as error:
            noted: dict[str, str] = {"asked_again": f"{type(error).__name__}: {error}"}
        if reader.question is not None:
            noted["early_embedding"] = "discarded"
        writes = await self._ask_own(reads, protected, is_english=is_english)
        return writes.model_copy(update=noted)

    async def _ask_own(self, reads: Reads, protected: Protected, *, is_english: bool) -> Writes:
        """Return the translation of a call for it alone; certain English needs none."""
        if is_english:
            return _keep_unchanged(reads.text)
        inputs = Inputs(text=protected.text, language=reads.language)
        found = (await self._model.ask(TASK, inputs)).output
        return _restore(reads.text, protected, found)

    def _is_plain_reply(self, reads: Reads) -> bool:
        """Return whether rules recognise the turn as a button, a number or a stop word."""
        if self._detector is None or reads.open_pause is None:
            return False
        return plain_reply(reads.text, reads.open_pause) is not None

    async def _ask_combined(
        self, combined: CombinedCall, reads: Reads, protected: Protected, reader: QuestionReader
    ) -> Writes:
        inputs = understand.Inputs(
            text=protected.text,
            language=reads.language,
            history=reads.history,
            history_summary=reads.history_summary,
            open_pause=without_offer(reads.open_pause),
            domain_name=combined.domain_name,
            domain_scope=combined.domain_scope,
            strictness=combined.strictness,
        )
        ask = partial(combined.model.ask, understand.TASK, inputs)
        if self._early is None:
            return _take_combined(reads, protected, (await ask()).output)
        given = await ask_and_follow(TextListener(understand.TASK.name), ask, reader.read)
        writes = _take_combined(reads, protected, given.output)
        if reader.question is None:
            return writes
        is_kept = reader.question == given.output.canonical_question
        early: EarlyResult = "kept" if is_kept else "discarded"
        return writes.model_copy(update={"early_embedding": early})

    async def _embed_early(self, reads: Reads, protected: Protected, question: str) -> None:
        """Have the texts embedded that the search of a question is likely to need."""
        if self._early is not None:
            await self._early.embed(_predict_search(reads, protected, question))


class UnusableTranslationError(ValueError):
    """A combined call returned no usable translation."""


def _has_words(protected: Protected) -> bool:
    return any(letter.isalpha() for letter in protected.text)


def _stands_alone(reads: Reads) -> bool:
    return stands_alone(
        essence.Inputs(
            text=reads.text,
            history=reads.history,
            history_summary=reads.history_summary,
            open_pause=without_offer(reads.open_pause),
        )
    )


def _keep_unchanged(text: str) -> Writes:
    return Writes(text_eng=text, translation_confidence=1.0, decided_by="rules")


def _predict_search(reads: Reads, protected: Protected, question: str) -> SearchRequest:
    """Return the search of a question that leans on the newest turn, if there is one."""
    inputs = essence.Inputs(text=reads.text, history=reads.history)
    answers = [turn.text for turn in reads.history if turn.speaker == "assistant"]
    return SearchRequest(
        question=(protected.restore_some(question).strip() or reads.text).strip(),
        related=inputs.earlier[:1],
        previous_answer=answers[-1][:ANSWER_CHARACTERS] if answers else "",
    )


def _restore(text: str, protected: Protected, found: Output) -> Writes:
    try:
        text_eng = protected.restore(found.text_eng)
        corrections = tuple(protected.restore_some(note) for note in found.corrections)
    except PlaceholderLost as lost:
        return _as_it_came(text, str(lost))
    if not text_eng.strip():
        return _as_it_came(text, "the model gave no text")
    return Writes(
        text_eng=text_eng,
        translation_confidence=found.confidence,
        corrections_made=bool(corrections),
        corrections=corrections,
        decided_by="own_call",
    )


def _as_it_came(text: str, why: str) -> Writes:
    return Writes(
        text_eng=text,
        translation_confidence=0.0,
        translation_error=why,
        decided_by="own_call",
    )


def _take_combined(reads: Reads, protected: Protected, found: understand.Output) -> Writes:
    """Return the results of a combined call; raise `UnusableTranslationError` without a text."""
    more = found.details or understand.RareDetails()
    text_eng = _read_text_eng(reads, protected, found, more.text_eng)
    corrections = tuple(protected.restore_some(note) for note in more.corrections)
    leans_on_newest = found.context_type == "follow_up" and not more.related_turns
    return Writes(
        text_eng=text_eng,
        translation_confidence=more.confidence,
        corrections_made=bool(corrections),
        corrections=corrections,
        understanding=Understanding(
            canonical_question=protected.restore_some(found.canonical_question).strip() or text_eng,
            context_type=found.context_type,
            related_turns=(1,) if leans_on_newest else more.related_turns,
            assumption=protected.restore_some(more.assumption),
            questions=tuple(protected.restore_some(question) for question in more.questions),
            verdict=found.verdict,
            verdict_confidence=0.0 if found.verdict is None else more.verdict_confidence,
            **more.model_dump(include=_CARRIED),
        ),
        decided_by="combined_call",
    )


_CARRIED = {"clarification_result", "act", "style", "answer_language", "analysis"}


def _read_text_eng(reads: Reads, protected: Protected, found: understand.Output, given: str) -> str:
    """Return the turn in English.

    Unless the call gave it, that is an English turn that leans on another one, as it was typed;
    any other turn means its canonical question.
    """
    stays = reads.language == ENGLISH and found.context_type != "new_topic"
    text = given.strip() or ("" if stays else found.canonical_question.strip())
    if not text:
        if reads.language == ENGLISH:
            return reads.text
        raise UnusableTranslationError(
            f"expected a text in English, found none for one in {reads.language!r}"
        )
    try:
        return protected.restore(text)
    except PlaceholderLost as lost:
        raise UnusableTranslationError(str(lost)) from lost
