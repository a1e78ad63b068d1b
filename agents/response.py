"""Answers the question from the sources alone and cites a source for every claim."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from typing import Literal, Self

from pydantic import BaseModel, Field

from agents.agent import Agent, AgentParts, AgentTexts, DraftPublisher
from agents.desk_domain import DeskDomain, ResponseSettings
from citations.citing import Cited, FindSource, keep_cited
from citations.claims import citations, without_citations
from citations.feedback import parse_unsupported
from citations.links import keep_links, plain_line
from citations.removal import SourcedText
from citations.sources import collect_allowed, references_of, with_addresses
from envelope.conversation import AnswerStyle, ClarificationReason, Turn
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.sources import AnswerDraft, SourceReference, SourceUsed
from llm.answer_checks.attribution import Attribution
from llm.answer_checks.claims import CheckedAnswer
from llm.answer_checks.draft_check import LanguageOf, check_draft
from llm.answer_checks.leads import is_covered_by
from llm.errors import ModelError
from llm.partial_answers.draft_reader import DraftReader
from llm.partial_answers.following import ask_and_follow
from llm.partial_answers.text_listener import TextListener
from llm.port import Model, ModelAnswer
from llm.tasks.respond import TASK, Inputs, Output, PromptSource

OFFLINE = "offline"
ENGLISH = "en"
_UNCITED = "expected sentences that a source says, found none in the answer"
_REASONS = {
    "insufficient_context": ClarificationReason.INSUFFICIENT_CONTEXT,
    "missing_details": ClarificationReason.MISSING_DETAILS,
}
_NAMED = frozenset(["ar", "cs", "de", "en", "es", "fr", "hi", "it", "ja", "pt", "ru", "uk", "zh"])
"""Languages whose names the fixed texts have (`language_de`, ...)."""


class Reads(BaseModel, frozen=True):
    """The sources, the question, and the complaints about an earlier answer."""

    search_context: str = ""
    source_references: tuple[SourceReference, ...] = ()
    language: str = "en"
    canonical_question: str
    history: tuple[Turn, ...] = ()
    attempt: int = 0
    quality_analysis: str = ""
    assumption: str = ""
    answer_style: AnswerStyle = ""
    within_scope: bool = False
    shows_drafts: bool = False


class Writes(BaseModel, frozen=True):
    """The answer with its sources, or the reason why there is none."""

    response: str = ""
    sources_used: tuple[SourceUsed, ...] = ()
    removed_links: tuple[str, ...] = ()
    missing: str = ""
    generation_confidence: float = Field(default=0.0, ge=0, le=1)
    generation_error: str = ""
    answer_model: str = ""
    draft_fallback: Literal["", "not_streamed"] = ""
    needs_clarification: bool = False
    clarification_reason: ClarificationReason | None = None
    clarification_message: str = ""


@dataclass(frozen=True, slots=True)
class _CitedText:
    """The claims of a text that have a source, and the links that were removed."""

    cited: Cited
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _WrittenAnswer:
    """An answer of a model, its part with sources, and whether the model sent it in one piece."""

    given: ModelAnswer[Output]
    kept: _CitedText
    writing: int = 0
    is_unstreamed: bool = False


@dataclass(frozen=True, slots=True)
class _OutgoingAnswer:
    """An answer as it is sent: its sources are numbered, its links lead to their pages."""

    text: str
    used: tuple[SourceUsed, ...]
    removed: tuple[str, ...]


def _read_clock() -> datetime:
    return datetime.now(UTC)


class ResponseAgent(Agent[Reads, Writes]):
    """Writes the answer; every claim that is sent has a source.

    While the model writes, each finished sentence is checked without a model. If the channel shows
    drafts and the guardrails have accepted the question, the sentences that pass are published as a
    draft of the answer.

    The model is called once. A claim without a citation gets the number of the source that supports
    it, or is removed; an answer without any supported claim is an error of the model. Links lead
    only to the pages of cited sources: see `citations.links`. After a failure without a judge's
    complaint, the next attempt uses the next model of the chain.
    """

    role = Role.RESPONSE
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        model: Model,
        texts: AgentTexts,
        domain: DeskDomain | None = None,
        now: Callable[[], datetime] = _read_clock,
        drafts: DraftPublisher | None = None,
        language_of: LanguageOf | None = None,
    ) -> None:
        self._model = model
        self._texts = texts
        self._domain = DeskDomain() if domain is None else domain
        self._now = now
        self._drafts = drafts
        self._language_of = language_of

    @classmethod
    def make(cls, parts: AgentParts[ResponseSettings]) -> Self:
        return cls(
            model=parts.model(TASK.name),
            texts=parts.texts,
            domain=DeskDomain.of(parts.settings),
            drafts=parts.drafts,
            language_of=parts.language_of,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        inputs = self._inputs(reads)
        if not inputs.sources:
            return Wrote(_asks("insufficient_context", "", ""))
        try:
            written = await self._write(reads, inputs)
        except ModelError as error:
            return Wrote(Writes(generation_error=f"{type(error).__name__}: {error}"))
        writes = self._make_writes(written, reads)
        if writes.response and writes.answer_model != OFFLINE:
            answer = _OutgoingAnswer(writes.response, writes.sources_used, ())
            await self._publish_answer(reads, written.writing, lambda: answer)
        return Wrote(writes)

    def _inputs(self, reads: Reads) -> Inputs:
        return Inputs(
            question=reads.canonical_question,
            language=reads.language,
            language_name=self._name(reads.language, ENGLISH),
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
            style=reads.answer_style,
            analysis=reads.quality_analysis,
            avoid=parse_unsupported(reads.quality_analysis),
            attempt=reads.attempt,
        )

    async def _write(self, reads: Reads, inputs: Inputs) -> _WrittenAnswer:
        """Return the answer; publish its finished sentences while the model writes."""
        skip = 0 if reads.quality_analysis else reads.attempt
        ask = partial(self._model.ask, TASK, inputs, skip=skip)
        listener = TextListener(TASK.name)
        find_source = cache(Attribution(inputs.sources).find)
        keep = partial(_keep_supported, reads=reads, inputs=inputs, find_source=find_source)
        if self._find_publisher(reads) is None:
            given = await ask()
        else:
            given = await ask_and_follow(
                listener, ask, DraftReader(partial(self._publish, reads, keep)).read
            )
        # In a thread: a very long answer must not block the event loop.
        kept = await asyncio.to_thread(keep, given.output.answer)
        return _WrittenAnswer(given, kept, listener.attempts, listener.is_unstreamed)

    def _find_publisher(self, reads: Reads) -> DraftPublisher | None:
        return self._drafts if reads.within_scope and reads.shows_drafts else None

    async def _publish(
        self, reads: Reads, keep: Callable[[str], _CitedText], finished: str, writing: int
    ) -> None:
        """Publish the finished sentences that pass the checks without a model."""
        await self._publish_answer(
            reads, writing, lambda: self._make_answer(keep(finished), "", reads)
        )

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
            question=reads.canonical_question,
            context=reads.search_context,
            references=reads.source_references,
            used=made.used,
            language=reads.language,
            assumption=reads.assumption,
        )
        return check_draft(answer, self._language_of)

    def _make_writes(self, written: _WrittenAnswer, reads: Reads) -> Writes:
        output, kept = written.given.output, written.kept.cited
        if output.status != "answered":
            return _asks(output.status, output.missing, written.given.model)
        if not kept.claims:
            return _report_no_claims(output.missing, written.given.model)
        answer = self._make_answer(written.kept, written.given.model, reads)
        share = kept.claims / (kept.claims + len(kept.dropped))
        return Writes(
            response=answer.text,
            sources_used=answer.used,
            removed_links=answer.removed,
            missing=output.missing,
            generation_confidence=output.confidence * share,
            answer_model=written.given.model,
            draft_fallback="not_streamed" if written.is_unstreamed else "",
        )

    def _make_answer(self, kept: _CitedText, model: str, reads: Reads) -> _OutgoingAnswer:
        references, context = reads.source_references, reads.search_context
        used = _select_used(kept.cited.order, references)
        # Links that only a source of removed claims allows are removed, too.
        safe = keep_links(
            kept.cited.text, collect_allowed(references_of(used, references), context)
        )
        return _OutgoingAnswer(
            text=self._add_notices(safe.text, used, model, reads),
            used=with_addresses(used, references, context, safe.text),
            removed=(*kept.removed, *safe.removed),
        )

    def _add_notices(
        self, text: str, used: tuple[SourceUsed, ...], model: str, reads: Reads
    ) -> str:
        """Return the answer, preceded by its assumption and by the language of its quotations."""
        above = []
        if assumed := plain_line(without_citations(reads.assumption)):
            above.append(self._look_up_text("assumption", reads.language, assumption=assumed))
        languages = dict.fromkeys(source.language for source in used if source.language)
        if model == OFFLINE and languages and reads.language not in languages:
            names = ", ".join(self._name(code, reads.language) for code in languages)
            above.append(self._look_up_text("quoted_frame", reads.language, quoted_language=names))
        return "\n\n".join((*above, text))

    def _name(self, code: str, language: str) -> str:
        return self._look_up_text(f"language_{code}", language) if code in _NAMED else code

    def _look_up_text(self, key: str, language: str, **values: str) -> str:
        """Return a fixed text on one line: it cannot open a list or a fence."""
        return " ".join(self._texts.text(key, language, **values).split())


def _keep_supported(
    answer: str, reads: Reads, inputs: Inputs, find_source: FindSource
) -> _CitedText:
    """Return the claims of an answer that have a source, with links only to these sources."""
    numbers = set(citations(answer))
    cited_here = [one for one in reads.source_references if one.number in numbers]
    safe = keep_links(answer, collect_allowed(cited_here, reads.search_context))
    used = [source for source in inputs.sources if source.number in numbers]
    places, texts = (source.place for source in used), (source.text for source in used)
    known_text = "\n".join((inputs.question, *places, *texts))
    kept = keep_cited(
        safe.text,
        {source.number for source in inputs.sources},
        may_lead=lambda lead: is_covered_by(lead, known_text),
        find_source=find_source,
        may_frame=lambda sentence: is_covered_by(sentence, known_text),
    )
    return _CitedText(kept, safe.removed)


def _source(reads: Reads, reference: SourceReference) -> PromptSource:
    start, end = reference.span
    path = dict.fromkeys((*reference.crumbs, *reference.heading_path))
    return PromptSource(
        number=reference.number,
        chunk_id=reference.chunk_id,
        place=_with_version(" > ".join(path) or reference.title, reference.version),
        language=reference.language,
        version=reference.version or "",
        text=reads.search_context[start:end],
        found=reference.found,
    )


def _with_version(place: str, version: str | None) -> str:
    return f"{place} (version {version})" if version else place


def _turn(turn: Turn) -> str:
    """Return a turn for the prompt, without citations: they would name sources of this answer."""
    return f"{turn.speaker}: {without_citations(turn.text)}"


def _select_used(
    order: tuple[int, ...], references: tuple[SourceReference, ...]
) -> tuple[SourceUsed, ...]:
    by_number = {reference.number: reference for reference in references}
    return tuple(
        SourceUsed.model_validate(
            by_number[given].model_dump(exclude={"span", "number", "found"}) | {"number": shown}
        )
        for shown, given in enumerate(order, start=1)
    )


def _report_no_claims(missing: str, model: str) -> Writes:
    """Return the missing parts that the model reports, else its failure to cite sources."""
    if missing:
        return _asks("insufficient_context", missing, model)
    return Writes(generation_error=f"{model}: {_UNCITED}", answer_model=model)


def _asks(status: str, missing: str, model: str) -> Writes:
    return Writes(
        needs_clarification=True,
        clarification_reason=_REASONS[status],
        clarification_message=missing or "The documents do not say enough to answer this.",
        answer_model=model,
    )
