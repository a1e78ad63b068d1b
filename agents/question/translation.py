"""Translates the user's text into correct English. A combined call also determines its meaning."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from pydantic import BaseModel, Field

from agents.agent import Agent, AgentParts, MayAsk, ProgressStep
from agents.question.meanings import list_places, number_places, word_meanings
from agents.question.replies import (
    ClarificationReply,
    find_chosen_question,
    normalise,
    plain_reply,
)
from envelope.conversation import (
    ClarificationOption,
    ConversationAct,
    Pause,
    QuestionTranslation,
    Turn,
    Understanding,
)
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.run import Run
from envelope.specialists import ReviewScope
from envelope.tool_loop import WayName
from knowledge.errors import KnowledgeError
from knowledge.language.corpus_languages import ReadLanguages, choose_foreign
from knowledge.language.protecting import PlaceholderLost, Protected, protect
from knowledge.port import ANSWER_CHARACTERS, Searcher, SearchRequest
from knowledge.search.query import ENGLISH
from llm.errors import ModelError, has_unusable_output, name_failure
from llm.injection import BUDGET_SECONDS, inspect_within
from llm.output_parsing import QuestionReader, ask_and_follow
from llm.port import Model, TextListener, find_model
from llm.tasks.question import (
    TRANSLATE,
    UNDERSTAND,
    Meaning,
    RareDetails,
    Strictness,
    TranslateInputs,
    TranslateOutput,
    UnderstandInputs,
    UnderstandOutput,
    list_earlier,
)

if TYPE_CHECKING:
    from knowledge.search.question_vectors import EarlyEmbedding

EarlyResult = Literal["", "kept", "discarded"]
NEAREST = 8
"""The number of pages, and of sections in them, that are shown to the model."""
_LOOKED_AT = 24
"""The number of hits from which the pages and sections are selected."""
LONGEST_PLACE = 300
"""The number of characters of a protected part that are shown to the model."""


class Reads(BaseModel, frozen=True):
    """The text, its language, and its conversation."""

    text: str = ""
    language: str = "en"
    history: tuple[Turn, ...] = ()
    history_summary: str = ""
    open_pause: Pause | None = None
    groups: tuple[str, ...] = ()
    review: ReviewScope | None = None


class Writes(MayAsk, frozen=True):
    """The text in correct English. If the confidence is 0, the text is unchanged. A combined call
    does not state a confidence.
    """

    text_eng: str
    translation_confidence: float | None = Field(default=None, ge=0, le=1)
    corrections_made: bool = False
    corrections: tuple[str, ...] = ()
    translation_error: str = ""
    understanding: Understanding | None = None
    scope_error: str = ""
    decided_by: Literal["rules", "combined_call", "own_call"]
    model_error: str = ""
    model_failure: str = ""
    early_embedding: EarlyResult = ""


@dataclass(frozen=True, slots=True)
class CombinedCall:
    """The model of the task `understand`, and the facts about the desk that it receives."""

    model: Model
    searcher: Searcher
    domain_name: str
    domain_scope: str = ""
    strictness: Strictness = "medium"
    reviews_documents: bool = False
    early_embedding: "EarlyEmbedding | None" = None
    inspection_seconds: float = BUDGET_SECONDS
    read_languages: ReadLanguages | None = None

    async def find_foreign_languages(self, reads: Reads) -> tuple[str, ...]:
        """Return the languages of the documents into which the question must be translated."""
        if self.read_languages is None:
            return ()
        return choose_foreign(await self.read_languages(reads.groups), reads.language)


class TranslationAgent(Agent[Reads, Writes]):
    """Translates the text, or corrects English text.

    Code, addresses, paths, identifiers, and `product_names` are removed before the model call and
    put back byte for byte. If the model omits one of them, the text stays unchanged with confidence
    0, and `translation_error` states the reason.

    If configured, a single `combined` call also returns essence and scope, which are stored in
    `understanding`. Before this call, the index is searched, so that the model receives the
    locations that are most similar to the turn, and the signs of an attack, if there are any.
    Without a combined call, the agent asks only for the translation. If no model answers, the text
    is used as typed.

    With an early embedding, a vendor embeds the question as soon as the combined call has written
    it, while the rest is being written. `early_embedding` is "discarded" if the call ends with a
    different question.
    """

    role = Role.TRANSLATION
    step = ProgressStep.UNDERSTAND
    model_task = TRANSLATE
    needs_index = True
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        model: Model | None,
        product_names: Sequence[str] = (),
        combined: CombinedCall | None = None,
    ) -> None:
        self._model = model
        self._product_names = tuple(product_names)
        self._combined = combined

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        settings = parts.settings
        if not settings.combines_understanding:
            model = find_model(parts.model(TRANSLATE.name))
            return cls(model=model, product_names=settings.product_names)
        combined = CombinedCall(
            parts.model(UNDERSTAND.name),
            parts.searcher,
            settings.domain_name,
            settings.domain_scope,
            settings.guardrails_strictness,
            settings.way in {WayName.SPECIALISTS, WayName.AUTO},
            parts.early_embedding,
            read_languages=parts.read_languages,
        )
        return cls(model=None, product_names=settings.product_names, combined=combined)

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        if (reply := _find_reply(reads)) is not None:
            question = await self._find_foreign_question(reads, reply)
            if question is None:
                return Wrote(_keep_typed(reads, confidence=1.0))
            reads = reads.model_copy(update={"text": question, "open_pause": None})
        elif reads.review is not None or not reads.text.strip():
            return Wrote(_keep_typed(reads, confidence=1.0))
        return Wrote(await self._translate(reads))

    async def _find_foreign_question(self, reads: Reads, reply: ClarificationReply) -> str | None:
        """Return the question that the user chose from several, if there are documents in other
        languages.
        """
        pause = reads.open_pause
        question = None if pause is None else find_chosen_question(pause, reply)
        is_foreign = reads.language != ENGLISH
        if self._combined is not None and question is not None and not is_foreign:
            is_foreign = bool(await self._combined.find_foreign_languages(reads))
        return question if is_foreign else None

    async def _translate(self, reads: Reads) -> Writes:
        protected = protect(reads.text, self._product_names)
        try:
            if self._combined is not None:
                return await self._understand(self._combined, reads, protected)
            if self._model is not None:
                inputs = TranslateInputs(text=protected.text, language=reads.language)
                output = (await self._model.ask(TRANSLATE, inputs, self.run)).output
                return _restore(reads, protected, output)
        except ModelError as error:
            return self._keep_failed(reads, error)
        return _keep_typed(reads)

    def _keep_failed(self, reads: Reads, error: ModelError) -> Writes:
        described = f"{type(error).__name__}: {error}"
        writes = _keep_typed(reads, described).model_copy(
            update={"model_failure": name_failure(error)}
        )
        if self._combined is None or not has_unusable_output(error):
            return writes
        return writes.model_copy(update={"scope_error": described})

    async def _understand(
        self, combined: CombinedCall, reads: Reads, protected: Protected
    ) -> Writes:
        places = await _find_places(combined, reads, self.run)
        if places is None:
            return _keep_typed(reads)
        inspection = await inspect_within(combined.inspection_seconds, reads.text)
        inputs = UnderstandInputs(
            text=protected.text,
            places=tuple(map(_shorten, protected.parts)),
            language=reads.language,
            history=reads.history,
            history_summary=reads.history_summary,
            open_pause=_find_question(reads),
            domain_name=combined.domain_name,
            domain_scope=combined.domain_scope,
            strictness=combined.strictness,
            nearest=number_places(places),
            signs=inspection.kinds,
            reviews_documents=combined.reviews_documents,
            document_languages=await combined.find_foreign_languages(reads),
        )
        output, early = await _ask(combined, reads, protected, inputs, self.run)
        writes = _take(reads, protected, output, places, inputs)
        return writes.model_copy(update={"early_embedding": early}) if early else writes


async def _ask(
    combined: CombinedCall, reads: Reads, protected: Protected, inputs: UnderstandInputs, run: Run
) -> tuple[UnderstandOutput, EarlyResult]:
    """Return the output, and whether the question that was embedded in the meantime can be used."""
    embedding = combined.early_embedding
    if embedding is None:
        return (await combined.model.ask(UNDERSTAND, inputs, run)).output, ""

    async def embed(question: str) -> None:
        await embedding.embed(_predict_search(reads, protected, question, run))

    reader = QuestionReader(embed)
    given = await ask_and_follow(
        TextListener(UNDERSTAND.name),
        lambda listener: combined.model.ask(UNDERSTAND, inputs, run, listener=listener),
        reader.read,
    )
    output = given.output
    if reader.question is None:
        return output, ""
    return output, "kept" if reader.question == output.canonical_question else "discarded"


async def _find_places(
    combined: CombinedCall, reads: Reads, run: Run
) -> Sequence[ClarificationOption] | None:
    """Return the pages and sections most similar to the turn, with the best page first.

    Returns None if there are no documents, so that nothing can be answered. Pages whose meaning was
    compared with the turn precede those that only share words with it. The search stage reuses this
    search if the question does not change. If a vendor creates the embeddings, only words are
    compared, because an embedding takes as long as the call that would wait for it.
    """
    earlier = list_earlier(reads.history)
    request = SearchRequest(
        run=run,
        question=reads.text,
        text=reads.text,
        text_eng=reads.text if reads.language == ENGLISH else "",
        language=reads.language or None,
        related=earlier[:1],
        limit=_LOOKED_AT,
        groups=reads.groups,
        by_words=combined.early_embedding is not None,
    )
    try:
        findings = await combined.searcher.search(request)
    except KnowledgeError:
        # The search stage will have the same fault and report it.
        return ()
    if findings.documents == 0:
        return None
    hits = sorted(findings.hits, key=lambda hit: hit.place.language in findings.uncompared)
    return list_places(hits, NEAREST)


def _shorten(part: str) -> str:
    return part if len(part) <= LONGEST_PLACE else f"{part[:LONGEST_PLACE]} [...]"


def _find_reply(reads: Reads) -> ClarificationReply | None:
    """Return the choice that the turn clearly makes, if the desk offered one."""
    return None if reads.open_pause is None else plain_reply(reads.text, reads.open_pause)


def _find_question(reads: Reads) -> Pause | None:
    """Return the pause that is waiting for an answer, unless it only offers further questions."""
    pause = reads.open_pause
    return None if pause is None or pause.is_offer else pause


def _keep_typed(reads: Reads, model_error: str = "", *, confidence: float | None = None) -> Writes:
    """Return the text as typed; English text does not need a translation."""
    is_english = reads.language == ENGLISH
    return Writes(
        text_eng=reads.text,
        translation_confidence=float(is_english) if confidence is None else confidence,
        decided_by="rules",
        **({"model_error": model_error} if model_error else {}),
    )


def _predict_search(reads: Reads, protected: Protected, question: str, run: Run) -> SearchRequest:
    """Return the search for a question that is based on the latest turn, if there is one."""
    answers = [turn.text for turn in reads.history if turn.speaker == "assistant"]
    return SearchRequest(
        run=run,
        question=(protected.restore_some(question).strip() or reads.text).strip(),
        related=list_earlier(reads.history)[:1],
        previous_answer=answers[-1][:ANSWER_CHARACTERS] if answers else "",
    )


def _restore(reads: Reads, protected: Protected, output: TranslateOutput) -> Writes:
    """Return the output of a call that only translates."""
    text_eng, error = reads.text, ""
    try:
        text_eng = protected.restore(output.text_eng)
    except PlaceholderLost as lost:
        error = str(lost)
    if not output.text_eng.strip():
        error = "the model returned no text"
    if error:
        return Writes(
            text_eng=reads.text,
            translation_confidence=0.0,
            translation_error=error,
            decided_by="own_call",
        )
    corrections = tuple(map(protected.restore_some, output.corrections))
    return Writes(
        text_eng=text_eng,
        translation_confidence=output.confidence,
        corrections_made=bool(corrections),
        corrections=corrections,
        decided_by="own_call",
    )


def _take(
    reads: Reads,
    protected: Protected,
    output: UnderstandOutput,
    places: Sequence[ClarificationOption],
    inputs: UnderstandInputs,
) -> Writes:
    """Return the results of a combined call."""
    more = output.details or RareDetails()
    is_english = reads.language == ENGLISH
    question, error = _restore_question(reads, protected, output.canonical_question)
    # A turn that leans on others is in English what was typed, if that is English.
    leans = output.context_type != "new_topic"
    text_eng = reads.text if error or (leans and is_english) else question
    corrections = tuple(map(protected.restore_some, more.corrections))
    is_changed = is_english and not leans and normalise(text_eng) != normalise(reads.text)
    writes = Writes(
        text_eng=text_eng,
        translation_confidence=0.0 if error else None,
        corrections_made=bool(corrections) or is_changed,
        corrections=corrections,
        understanding=Understanding(
            canonical_question=question,
            context_type=output.context_type,
            verdict=output.verdict,
            analysis=protected.restore_some(more.reason),
            meanings=word_meanings(
                _restore_labels(protected, more.meanings),
                places,
                (reads.text, question, inputs.domain_name, inputs.domain_scope),
            ),
            questions=tuple(map(protected.restore_some, more.questions)),
            translations=_restore_translations(protected, more.translations),
            wants_exit=more.act == "exit",
            assumption=protected.restore_some(more.assumption),
            act=None if more.act in {None, "exit"} else ConversationAct(str(more.act)),
            style=more.style,
            answer_language=more.answer_language,
            from_now_on=more.from_now_on,
            signs=inputs.signs,
        ),
        decided_by="combined_call",
    )
    return writes.model_copy(update={"translation_error": error}) if error else writes


def _restore_labels(protected: Protected, given: Sequence[Meaning]) -> list[Meaning]:
    return [
        meaning.model_copy(update={"label": protected.restore_some(meaning.label)})
        for meaning in given
    ]


def _restore_translations(
    protected: Protected, given: Sequence[QuestionTranslation]
) -> tuple[QuestionTranslation, ...]:
    return tuple(
        QuestionTranslation(
            language=translation.language, question=protected.restore_some(translation.question)
        )
        for translation in given
    )


def _restore_question(reads: Reads, protected: Protected, given: str) -> tuple[str, str]:
    """Return the canonical question and, if it differs from the model's output, the reason, which
    is otherwise empty.
    """
    if not given.strip():
        return reads.text, ""
    try:
        return protected.restore(given).strip(), ""
    except PlaceholderLost as lost:
        kept = reads.text if reads.language == ENGLISH else protected.restore_some(given).strip()
        return kept, str(lost)
