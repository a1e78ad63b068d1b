"""Answers the question from the sources alone, each claim with the source that says it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, Self

from pydantic import BaseModel, Field

from agents.agent import Agent, AgentParts, AgentTexts
from citations.citing import Cited, keep_cited
from citations.claims import citations, without_citations
from citations.feedback import parse_unsupported
from citations.links import keep_links, plain_line
from citations.sources import collect_allowed, references_of, with_addresses
from envelope.conversation import AnswerStyle, ClarificationReason, Turn
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.sources import SourceReference, SourceUsed
from llm.answer_checks.attribution import Attribution
from llm.answer_checks.leads import stands_in
from llm.errors import ModelError
from llm.port import Model, ModelAnswer
from llm.tasks.respond import TASK, Inputs, Output, PromptSource

OFFLINE = "offline"
ENGLISH = "en"
_UNCITED = "expected sentences that a source says, found none in the answer"
_REASONS = {
    "insufficient_context": ClarificationReason.INSUFFICIENT_CONTEXT,
    "missing_details": ClarificationReason.MISSING_DETAILS,
}
_NAMED = frozenset(["ar", "de", "en", "es", "fr", "hi", "it", "ja", "pt", "ru", "uk", "zh"])
"""Languages whose names the fixed texts have (`language_de`, ...)."""


class Reads(BaseModel, frozen=True):
    """The sources, the question, and what was wrong with an earlier answer."""

    search_context: str = ""
    source_references: tuple[SourceReference, ...] = ()
    language: str = "en"
    canonical_question: str
    history: tuple[Turn, ...] = ()
    attempt: int = 0
    quality_analysis: str = ""
    assumption: str = ""
    answer_style: AnswerStyle = ""


class Writes(BaseModel, frozen=True):
    """The answer with its sources, or why there is none."""

    response: str = ""
    sources_used: tuple[SourceUsed, ...] = ()
    removed_links: tuple[str, ...] = ()
    missing: str = ""
    generation_confidence: float = Field(default=0.0, ge=0, le=1)
    generation_error: str = ""
    answer_model: str = ""
    needs_clarification: bool = False
    clarification_reason: ClarificationReason | None = None
    clarification_message: str = ""


@dataclass(frozen=True, slots=True)
class DeskDomain:
    """The desk's settings: name, subject, untranslated names, terms with their use, and style.

    `tone` and `formatting` concern the form of answers and leave their content as it is.
    """

    name: str = ""
    scope: str = ""
    product_names: tuple[str, ...] = ()
    glossary: tuple[str, ...] = ()
    tone: str = ""
    formatting: str = ""


class ResponseSettings(Protocol):
    """The settings that this agent needs."""

    @property
    def domain_name(self) -> str: ...

    @property
    def domain_scope(self) -> str: ...

    @property
    def product_names(self) -> tuple[str, ...]: ...

    @property
    def domain_tone(self) -> str: ...

    @property
    def domain_formatting(self) -> str: ...

    @property
    def glossary(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class _Draft:
    """An answer as a model gave it, what is left of it with its sources, and what was removed."""

    given: ModelAnswer[Output]
    kept: Cited
    removed: tuple[str, ...]


def _read_clock() -> datetime:
    return datetime.now(UTC)


class ResponseAgent(Agent[Reads, Writes]):
    """Writes the answer; nothing leaves without the source that says it.

    The model is asked once. A claim without a citation gets the number of the source that says it,
    or is dropped; an answer of which nothing is left is an error of the model. Links go to the
    pages of cited sources alone: see `citations.links`. After a failure without a judge's complaint
    the attempt asks a model further down the chain.
    """

    role = Role.RESPONSE
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        model: Model,
        texts: AgentTexts,
        domain: DeskDomain = DeskDomain(),
        now: Callable[[], datetime] = _read_clock,
    ) -> None:
        self._model = model
        self._texts = texts
        self._domain = domain
        self._now = now

    @classmethod
    def make(cls, parts: AgentParts[ResponseSettings]) -> Self:
        settings = parts.settings
        domain = DeskDomain(
            name=settings.domain_name,
            scope=settings.domain_scope,
            product_names=settings.product_names,
            glossary=settings.glossary,
            tone=settings.domain_tone,
            formatting=settings.domain_formatting,
        )
        return cls(model=parts.model(TASK.name), texts=parts.texts, domain=domain)

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        inputs = self._inputs(reads)
        if not inputs.sources:
            return Wrote(_asks("insufficient_context", ""))
        try:
            draft = await self._draft(reads, inputs)
        except ModelError as error:
            return Wrote(Writes(generation_error=f"{type(error).__name__}: {error}"))
        return Wrote(self._make_writes(draft, reads))

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

    async def _draft(self, reads: Reads, inputs: Inputs) -> _Draft:
        skip = 0 if reads.quality_analysis else reads.attempt
        given = await self._model.ask(TASK, inputs, skip=skip)
        # In a thread: a very long answer must not block the event loop.
        return await asyncio.to_thread(_check_draft, given, reads, inputs)

    def _make_writes(self, draft: _Draft, reads: Reads) -> Writes:
        output, kept = draft.given.output, draft.kept
        if output.status != "answered":
            return _asks(output.status, output.missing)
        if not kept.claims:
            return _report_no_claims(output.missing, draft.given.model)
        references, context = reads.source_references, reads.search_context
        used = _select_used(kept.order, references)
        share = kept.claims / (kept.claims + len(kept.dropped))
        # What only sources hold that were dropped with their claims goes, too.
        safe = keep_links(kept.text, collect_allowed(references_of(used, references), context))
        return Writes(
            response=self._add_notices(safe.text, used, draft.given.model, reads),
            sources_used=with_addresses(used, references, context, safe.text),
            removed_links=(*draft.removed, *safe.removed),
            missing=output.missing,
            generation_confidence=output.confidence * share,
            answer_model=draft.given.model,
        )

    def _add_notices(
        self, text: str, used: tuple[SourceUsed, ...], model: str, reads: Reads
    ) -> str:
        """Return the answer below what was assumed, and what language is quoted."""
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


def _check_draft(given: ModelAnswer[Output], reads: Reads, inputs: Inputs) -> _Draft:
    """Return what is left of an answer: links to its sources alone, claims with theirs."""
    numbers = set(citations(given.output.answer))
    cited_here = [one for one in reads.source_references if one.number in numbers]
    safe = keep_links(given.output.answer, collect_allowed(cited_here, reads.search_context))
    used = [source for source in inputs.sources if source.number in numbers]
    places, texts = (source.place for source in used), (source.text for source in used)
    said = "\n".join((inputs.question, *places, *texts))
    kept = keep_cited(
        safe.text,
        {source.number for source in inputs.sources},
        may_lead=lambda lead: stands_in(lead, said),
        find_source=Attribution(inputs.sources).find,
        may_frame=lambda sentence: stands_in(sentence, said),
    )
    return _Draft(given, kept, safe.removed)


def _source(reads: Reads, reference: SourceReference) -> PromptSource:
    start, end = reference.span
    path = dict.fromkeys((*reference.crumbs, *reference.heading_path))
    return PromptSource(
        number=reference.number,
        chunk_id=reference.chunk_id,
        place=" > ".join(path) or reference.title,
        language=reference.language,
        text=reads.search_context[start:end],
        found=reference.found,
    )


def _turn(turn: Turn) -> str:
    """Return a turn as the prompt shows it: an old citation would name a source of today."""
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
    """Return what the model says is missing, else its failure to name sources."""
    if missing:
        return _asks("insufficient_context", missing)
    return Writes(generation_error=f"{model}: {_UNCITED}", answer_model=model)


def _asks(status: str, missing: str) -> Writes:
    return Writes(
        needs_clarification=True,
        clarification_reason=_REASONS[status],
        clarification_message=missing or "The documents do not say enough to answer this.",
    )
