"""Answers the question using only the sources, and cites a source for every claim."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Literal, Self

import structlog
from pydantic import Field, JsonValue

from agents.agent import Agent, AgentParts, DeskDomain, MayAsk, ProgressStep, ReadsLanguage
from agents.search.passages import show_passages
from citations.citing import Cited, SourcedText, cite
from citations.faults import CheckedAnswer, LanguageOf, check_draft
from citations.links import keep_links, list_removed_addresses, plain_line
from citations.marking import map_marks, read_marks, remove_marks
from citations.proof import ProofSource, SourceTexts
from citations.sources import cite_references, collect_allowed, references_of, with_addresses
from envelope.conversation import AnswerStyle, ClarificationReason, Preferences, Turn
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.run import DraftPublisher
from envelope.sources import (
    TOOL_SOURCE,
    AnswerDraft,
    FoundPassages,
    SearchStats,
    SourceReference,
    SourceUsed,
    WrittenAnswer,
)
from envelope.texts import Texts, explain_missing_answer, join_sentences
from knowledge.port import MATCHES_NOTHING
from llm.errors import NO_MODEL, ModelError
from llm.output_parsing import DraftReader, Silence, ask_and_follow
from llm.port import Model, ModelAnswer, TextListener
from llm.tasks.search import RESPOND, PromptSource, RespondInputs, RespondOutput

ENGLISH = "en"
log = structlog.get_logger("agents")

_UNCITED = "the answer does not cite a source"
_REASONS = {
    "insufficient_context": ClarificationReason.INSUFFICIENT_CONTEXT,
    "missing_details": ClarificationReason.MISSING_DETAILS,
}


MEANWHILE = "meanwhile"
"""The reason key of passages that are shown until the model begins to write."""
LAST_WRITING = 1_000
"""The value of `writing` for a draft with passages that replace a text begun by a model."""
SILENCE_SECONDS = 2.5
"""How long a model may be silent before the passages are shown. Including the preceding calls,
which may take a quarter of a call's time, a person waits at most about ten seconds for the first
text.
"""


class Reads(ReadsLanguage, frozen=True):
    """The sources, the question, and the complaints about an earlier answer."""

    search_context: str = ""
    augmented_prompt: str = ""
    source_references: tuple[SourceReference, ...] = ()
    canonical_question: str
    text: str = ""
    history: tuple[Turn, ...] = ()
    attempt: int = 0
    quality_analysis: str = ""
    judged_answer: WrittenAnswer | None = None
    original_answer: WrittenAnswer | None = None
    assumption: str = ""
    answer_style: AnswerStyle = ""
    preferences: Preferences = Preferences()
    shows_drafts: bool = False
    search_quality: Literal["excellent", "good", "poor"] = "good"
    search_stats: SearchStats = SearchStats()
    best_answer: dict[str, JsonValue] | None = None
    document_languages: tuple[str, ...] = ()
    common_terms: tuple[str, ...] = ()
    searches_again: bool = False


class Writes(MayAsk, frozen=True):
    """The answer with its sources, or the reason why there is none."""

    response: str = ""
    sources_used: tuple[SourceUsed, ...] = ()
    removed_links: tuple[str, ...] = ()
    original_answer: WrittenAnswer | None = None
    missing: str = ""
    searches_again: bool = False
    generation_confidence: float = Field(default=0.0, ge=0, le=1)
    generation_error: str = ""
    answer_model: str = ""
    draft_fallback: Literal["", "not_streamed"] = ""
    answered_by: Literal["", "model", "search"] = ""
    fallback_reason: str = ""
    model_failure: str = ""
    passages: FoundPassages | None = None


@dataclass(frozen=True, slots=True)
class _CitedText:
    """A text with citation marks, and the links that were removed from it."""

    cited: Cited
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _WrittenAnswer:
    """An answer from a model, the same answer with marks, and whether the model sent it in one
    piece.
    """

    given: ModelAnswer[RespondOutput]
    kept: _CitedText
    writing: int = 0
    is_unstreamed: bool = False


@dataclass(frozen=True, slots=True)
class _OutgoingAnswer:
    """An answer in its final form, in which sources are numbered and links lead to their pages."""

    text: str
    used: tuple[SourceUsed, ...]
    removed: tuple[str, ...]


def _read_clock() -> datetime:
    return datetime.now(UTC)


class ResponseAgent(Agent[Reads, Writes]):
    """Writes the answer, which is sent as the model wrote it.

    Rules add citation marks if a source is proven, remove marks of sources that do not exist, and
    allow links only to the pages of cited sources; see `citations.citing` and `citations.links`. An
    answer without any source is an error of the model.

    While the model writes, finished parts are checked by rules. If the channel shows drafts,
    accepted parts are published as a draft of the answer. The flow reaches this agent only after
    the guardrails, or to rephrase the last answer.

    The model is called once. After a complaint from the judge, it receives its earlier answer and
    the faults. After a failure, the next attempt uses the next model in the chain.
    """

    role = Role.RESPONSE
    step = ProgressStep.WRITE
    model_task = RESPOND
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        model: Model,
        texts: Texts,
        domain: DeskDomain | None = None,
        now: Callable[[], datetime] = _read_clock,
        shows_drafts: bool = False,
        language_of: LanguageOf | None = None,
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        self._silence_seconds = silence_seconds
        self._model = model
        self._texts = texts
        self._domain = DeskDomain() if domain is None else domain
        self._now = now
        self._shows_drafts = shows_drafts
        self._language_of = language_of

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        return cls(
            model=parts.model(RESPOND.name),
            texts=parts.texts,
            domain=DeskDomain.of(parts.settings),
            shows_drafts=parts.shows_drafts,
            language_of=parts.language_of,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        inputs = self._inputs(reads)
        if not inputs.sources:
            return Wrote(_asks("insufficient_context", "", ""))
        try:
            written = await self._write(reads, inputs)
        except ModelError as error:
            # In a thread, as below: every passage is searched for instructions to an assistant.
            writes = await asyncio.to_thread(self._fall_back, reads, error)
            if error.reason != NO_MODEL:
                await self._publish_found(reads, writes, writing=LAST_WRITING)
            return Wrote(writes)
        writes = self._make_writes(written, reads)
        if writes.response:
            answer = _OutgoingAnswer(writes.response, writes.sources_used, ())
            await self._publish_answer(reads, written.writing, lambda: answer)
        return Wrote(writes)

    def _inputs(self, reads: Reads) -> RespondInputs:
        earlier, analysis = self._recall_earlier(reads)
        original = reads.original_answer if earlier else None
        return RespondInputs(
            question=reads.canonical_question,
            language=reads.language,
            language_name=self._name(reads.reply_language, ENGLISH),
            augmented_prompt=reads.augmented_prompt,
            sources=tuple(_source(reads, reference) for reference in reads.source_references),
            domain_name=self._domain.name,
            domain_scope=self._domain.scope,
            names=self._domain.product_names,
            glossary=self._domain.glossary,
            tone=self._domain.tone,
            formatting=self._domain.formatting,
            today=self._now().date().isoformat(),
            history=tuple(_turn(turn) for turn in reads.history),
            assumption=reads.assumption,
            style=reads.answer_style or reads.preferences.style or "",
            analysis=analysis,
            earlier=earlier,
            refused=() if original is None else original.refused,
            attempt=reads.attempt,
        )

    async def _write(self, reads: Reads, inputs: RespondInputs) -> _WrittenAnswer:
        """Return the answer; publish its finished sentences while the model writes."""
        skip = 0 if reads.quality_analysis else reads.attempt - reads.searches_again
        listener = TextListener(RESPOND.name)
        keep = partial(_cite, reads=reads, sources=_collect_texts(reads))
        if self._find_publisher(reads) is None:
            given = await self._model.ask(RESPOND, inputs, self.run, skip=skip)
        else:
            given = await ask_and_follow(
                listener,
                lambda heard: self._model.ask(RESPOND, inputs, self.run, skip=skip, listener=heard),
                DraftReader(partial(self._publish, reads, keep)).read,
                Silence(self._silence_seconds, partial(self._publish_passages, reads)),
            )
        # In a thread: a very long answer must not block the event loop.
        kept = await asyncio.to_thread(keep, given.output.answer)
        return _WrittenAnswer(given, kept, listener.attempts, listener.is_unstreamed)

    async def _publish_passages(self, reads: Reads) -> None:
        """Show the passages as a draft until the model begins to write, which replaces them."""
        if reads.judged_answer is not None or reads.best_answer is not None:
            return
        writes = await asyncio.to_thread(self._show_passages, reads, MEANWHILE)
        await self._publish_found(reads, writes, writing=0)

    async def _publish_found(self, reads: Reads, writes: Writes, *, writing: int) -> None:
        publisher = self._find_publisher(reads)
        if publisher is None or writes.passages is None:
            return
        await publisher.publish(
            AnswerDraft(
                text=writes.response,
                language=reads.language,
                attempt=reads.attempt,
                writing=writing,
                is_quoted=True,
                sources=writes.sources_used,
            )
        )

    def _find_publisher(self, reads: Reads) -> DraftPublisher | None:
        may_show = self._shows_drafts and reads.shows_drafts
        return self.run.drafts if may_show else None

    async def _publish(
        self, reads: Reads, keep: Callable[[str], _CitedText], finished: str, writing: int
    ) -> None:
        """Publish finished parts that pass the checks that do not need a model."""
        await self._publish_answer(reads, writing, lambda: self._make_answer(keep(finished), reads))

    async def _publish_answer(
        self, reads: Reads, writing: int, make_answer: Callable[[], _OutgoingAnswer]
    ) -> None:
        publisher = self._find_publisher(reads)
        if publisher is None:
            return
        draft = await asyncio.to_thread(self._check_draft, reads, make_answer)
        if draft is None:
            return
        await publisher.publish(
            AnswerDraft(
                text=draft.text,
                language=reads.language,
                attempt=reads.attempt,
                writing=writing,
                sources=draft.used,
            )
        )

    def _check_draft(
        self, reads: Reads, make_answer: Callable[[], _OutgoingAnswer]
    ) -> SourcedText | None:
        made = make_answer()
        answer = CheckedAnswer(
            text=made.text,
            context=reads.search_context,
            references=reads.source_references,
            used=made.used,
            language=reads.language,
            said=_list_said(reads),
            typed=_list_typed(reads),
            assumption=reads.assumption,
        )
        return check_draft(answer, self._language_of)

    def _make_writes(self, written: _WrittenAnswer, reads: Reads) -> Writes:
        output, kept = written.given.output, written.kept.cited
        if output.status != "answered":
            return _ask_or_search(reads, output, written.given.model)
        if not kept.order:
            return _report_no_claims(reads, output, written.given.model)
        answer = self._make_answer(written.kept, reads)
        return Writes(
            response=answer.text,
            sources_used=answer.used,
            removed_links=answer.removed,
            original_answer=_keep_original(output.answer, answer, reads),
            missing=output.missing,
            generation_confidence=output.confidence,
            answer_model=written.given.model,
            answered_by="model",
            draft_fallback="not_streamed" if written.is_unstreamed else "",
        )

    def _fall_back(self, reads: Reads, error: ModelError) -> Writes:
        """Return the passages that the search found, unless an earlier answer can be sent."""
        described = f"{type(error).__name__}: {error}"
        if reads.best_answer is not None:
            return Writes(generation_error=described)
        if error.reason != NO_MODEL:
            log.warning("answered_by_search", reason=error.reason, error=described)
        return self._show_passages(reads, error.reason)

    def _show_passages(self, reads: Reads, reason: str) -> Writes:
        if reads.search_stats.matches_nothing:
            return _report_nothing_to_show(reason)
        references, context = reads.source_references, reads.search_context
        passages = show_passages(
            reads.canonical_question,
            references,
            context,
            reads.common_terms,
            lambda key, **values: self._look_up_text(key, reads.reply_language, **values),
        )
        if not passages.shown:
            return _report_nothing_to_show(reason)
        frame = "passages_poor" if reads.search_quality == "poor" else "passages_found"
        notice = join_sentences(
            " ".join(explain_missing_answer(self._texts, reason, reads.reply_language).split()),
            *self._note_uncompared(reads),
            self._look_up_text(frame, reads.reply_language),
        )
        notice = self._add_assumption(notice, reads)
        text = "\n\n".join((notice, passages.text))
        used = cite_references(passages.numbers, references)
        return Writes(
            response=text,
            sources_used=with_addresses(used, references, context, text),
            removed_links=passages.removed,
            answered_by="search",
            fallback_reason=reason,
            passages=FoundPassages(notice=notice, shown=passages.shown, marked=passages.marked),
        )

    def _note_uncompared(self, reads: Reads) -> tuple[str, ...]:
        """Return a notice about documents that could not be compared with the question, if nothing
        clear was found.

        Searches by tools do not report how clearly their passages match.
        """
        is_clear = "search_quality" in reads.model_fields_set and reads.search_quality != "poor"
        if is_clear or not reads.document_languages:
            return ()
        spoken = reads.reply_language
        names = ", ".join(self._name(code, spoken) for code in reads.document_languages)
        return (self._look_up_text("not_compared", spoken, document_languages=names),)

    def _make_answer(self, kept: _CitedText, reads: Reads) -> _OutgoingAnswer:
        references, context = reads.source_references, reads.search_context
        used, typed = cite_references(kept.cited.order, references), _list_typed(reads)
        # Links that are allowed only by a source that is no longer cited are removed as well.
        cited = references_of(used, references)
        safe = keep_links(kept.cited.text, collect_allowed(cited, context, typed, references))
        return _OutgoingAnswer(
            text=self._add_assumption(safe.text, reads),
            used=with_addresses(used, references, context, safe.text, typed),
            removed=(*kept.removed, *safe.removed),
        )

    def _recall_earlier(self, reads: Reads) -> tuple[str, str]:
        """Return the previous answer, with the numbers of the current sources, and what was missing
        from it.

        The judge has rejected that answer, or has requested a further search.
        """
        if not reads.quality_analysis:
            return "", ""
        original = reads.original_answer
        written = reads.judged_answer if original is None else original
        if written is None:
            return "", reads.quality_analysis
        numbers = {reference.chunk_id: reference.number for reference in reads.source_references}
        given = {
            source_used.number: numbers.get(source_used.chunk_id)
            for source_used in written.sources_used
        }
        return map_marks(written.text, given.get).strip(), reads.quality_analysis

    def _add_assumption(self, text: str, reads: Reads) -> str:
        """Return the answer below its assumption, if it makes one."""
        assumed = plain_line(remove_marks(reads.assumption))
        if not assumed:
            return text
        above = self._look_up_text("assumption", reads.reply_language, assumption=assumed)
        return f"{above}\n\n{text}"

    def _name(self, code: str, language: str) -> str:
        is_named = code in self._texts.languages
        return self._look_up_text(f"language_{code}", language) if is_named else code

    def _look_up_text(self, key: str, language: str, **values: str) -> str:
        """Return a fixed text on one line, so that it cannot open a list or a fence."""
        return " ".join(self._texts.text(key, language, **values).split())


def _cite(answer: str, reads: Reads, sources: SourceTexts) -> _CitedText:
    """Return an answer with citation marks, and with links only to its sources."""
    numbers = set(read_marks(answer))
    cited_here = [reference for reference in reads.source_references if reference.number in numbers]
    references, context = reads.source_references, reads.search_context
    allowed = collect_allowed(cited_here, context, _list_typed(reads), references)
    safe = keep_links(answer, allowed)
    return _CitedText(cite(safe.text, sources), safe.removed)


def _keep_original(written: str, answer: _OutgoingAnswer, reads: Reads) -> WrittenAnswer | None:
    """Return the answer as the model wrote it, if an address was removed from it."""
    refused = list_removed_addresses(answer.removed)
    if not refused:
        return None
    original = cite(written, _collect_texts(reads))
    used = cite_references(original.order, reads.source_references)
    return WrittenAnswer(text=original.text, sources_used=used, refused=refused)


def _collect_texts(reads: Reads) -> SourceTexts:
    """Return the texts of the sources, with the names under which an answer may list them."""
    return SourceTexts(
        ProofSource(
            number=reference.number,
            text=reads.search_context[slice(*reference.span)],
            names=tuple(
                filter(
                    None,
                    (
                        reference.title,
                        reference.chunk_id.removeprefix(TOOL_SOURCE),
                        *reference.crumbs,
                        *reference.heading_path,
                        reference.trail,
                        reference.path or "",
                        reference.url or "",
                    ),
                )
            ),
        )
        for reference in reads.source_references
    )


def _list_said(reads: Reads) -> tuple[str, ...]:
    """Return the person's own texts, whose words the model did not invent."""
    turns = (turn.text for turn in reads.history)
    return (reads.canonical_question, reads.assumption, *turns)


def _list_typed(reads: Reads) -> tuple[str, ...]:
    """Return the text that the person typed, without earlier answers or text from a model, which
    may contain other addresses.
    """
    return (reads.text, *(turn.text for turn in reads.history if turn.speaker == "user"))


def _source(reads: Reads, reference: SourceReference) -> PromptSource:
    start, end = reference.span
    return PromptSource(
        number=reference.number,
        chunk_id=reference.chunk_id,
        place=_with_version(reference.trail, reference.version),
        language=reference.language,
        version=reference.version or "",
        text=reads.search_context[start:end],
        found=reference.found,
    )


def _with_version(place: str, version: str | None) -> str:
    return f"{place} (version {version})" if version else place


def _turn(turn: Turn) -> str:
    """Return a turn for the prompt, without citations, because they would refer to sources of this
    answer.
    """
    return f"{turn.speaker}: {remove_marks(turn.text)}"


def _report_no_claims(reads: Reads, output: RespondOutput, model: str) -> Writes:
    """Return the missing parts that the model reports or, if there are none, its failure to cite
    sources.
    """
    if output.missing:
        unanswered = output.model_copy(update={"status": "insufficient_context"})
        return _ask_or_search(reads, unanswered, model)
    return Writes(generation_error=f"{model}: {_UNCITED}", answer_model=model)


def _ask_or_search(reads: Reads, output: RespondOutput, model: str) -> Writes:
    """Return the details that the model asks for. If no source from the first search answers the
    question, the documents are searched once more for these details before the question is
    declined.
    """
    writes = _asks(output.status, output.missing, model)
    if output.status != "insufficient_context" or reads.attempt:
        return writes
    return writes.model_copy(update={"missing": output.missing, "searches_again": True})


def _report_nothing_to_show(reason: str) -> Writes:
    """Return a refusal: no model read the passages, and no passage can be shown or matches."""
    if reason == NO_MODEL:
        return _asks("insufficient_context", MATCHES_NOTHING, "")
    return Writes(
        needs_clarification=True,
        clarification_reason=ClarificationReason.MODEL_FAILED,
        clarification_message=MATCHES_NOTHING,
        model_failure=reason,
    )


def _asks(status: str, missing: str, model: str) -> Writes:
    return Writes(
        needs_clarification=True,
        clarification_reason=_REASONS[status],
        clarification_message=missing or "The passages found do not answer this question.",
        answer_model=model,
    )
