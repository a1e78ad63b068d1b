"""Writes one answer from what all workers found; each claim has its source."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts, AgentTexts
from agents.desk_domain import DeskDomain, ResponseSettings
from citations.citing import Cited, cite
from citations.feedback import parse_unsupported
from citations.links import keep_links
from citations.proof import CitedSource, SourceTexts
from citations.sources import collect_allowed, references_of, with_addresses
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.sources import FoundPart, SearchResult, SourceReference, SourceUsed
from llm.errors import ModelError
from llm.port import Model
from llm.tasks.respond import PromptSource
from llm.tasks.synthesize_findings import TASK, Inputs, WorkerFinding
from swarm.ledger.tasks import TaskLedger, TaskState
from swarm.planning.plan import SwarmPlan
from swarm.strategies.strategy_registry import StrategyRegistry, make_strategies
from swarm.synthesis.cited_report import CitedReport, NumberedSource, cite_report
from swarm.synthesis.report import SwarmReport
from swarm.synthesis.report_wording import (
    BY_WORDS,
    NO_PERSONA,
    UNCHECKED,
    ReportNote,
    ReportWording,
)
from swarm.workers.output import WorkerOutput, fail_worker
from swarm.workers.worker_task import read_outputs

OFFLINE = "offline"
_BETWEEN = "\n\n"
_LEVEL = "swarm"
_LONGEST_PERSONA = 200
_LONGEST_VALUE = 300
_NAMED = frozenset(["ar", "cs", "de", "en", "es", "fr", "hi", "it", "ja", "pt", "ru", "uk", "zh"])


class Reads(BaseModel, frozen=True):
    """The plan, what workers found, and the complaints about an earlier answer."""

    canonical_question: str
    language: str = "en"
    persona: str = ""
    swarm_plan: dict[str, JsonValue] = {}
    task_ledger: dict[str, JsonValue] = {}
    worker_outputs: dict[str, JsonValue] = {}
    collected_info: dict[str, JsonValue] = {}
    quality_analysis: str = ""


class Writes(BaseModel, frozen=True):
    """The answer with its sources; without any, nobody found anything."""

    response: str = ""
    sources_used: tuple[SourceUsed, ...] = ()
    search_results: tuple[SearchResult, ...] = ()
    search_context: str = ""
    source_references: tuple[SourceReference, ...] = ()
    removed_links: tuple[str, ...] = ()
    missing: str = ""
    answer_model: str = ""
    synthesis_fallback: str = ""
    report_notes: tuple[dict[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _Material:
    """The report of the rules with its sources, as they are shown to a model."""

    report: SwarmReport
    cited: CitedReport
    references: tuple[SourceReference, ...]
    context: str

    @property
    def prompt_sources(self) -> tuple[PromptSource, ...]:
        """The sources as a model reads them."""
        return tuple(
            PromptSource(
                number=one.number,
                chunk_id=one.citation.chunk_id,
                place=" > ".join((*one.citation.crumbs, *one.citation.heading_path))
                or one.citation.title,
                language=one.citation.language,
                version=one.citation.version or "",
                text=one.text,
            )
            for one in self.cited.sources
        )


class SynthesizeAgent(Agent[Reads, Writes]):
    """Asks a model to write from the findings; where it fails, the report of the rules is sent.

    A claim without a source is removed.
    """

    role = Role.SYNTHESIZE
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        model: Model,
        texts: AgentTexts,
        strategies: StrategyRegistry | None = None,
        domain: DeskDomain | None = None,
    ) -> None:
        self._model = model
        self._texts = texts
        self._strategies = make_strategies() if strategies is None else strategies
        self._domain = DeskDomain() if domain is None else domain

    @classmethod
    def make(cls, parts: AgentParts[ResponseSettings]) -> Self:
        return cls(
            model=parts.model(TASK.name),
            texts=parts.texts,
            domain=DeskDomain.of(parts.settings),
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        if not reads.swarm_plan:
            return Wrote(Writes(missing=reads.canonical_question))
        # In a thread: many findings are compared with each other.
        material = await asyncio.to_thread(self._compose, reads)
        if not material.cited.sources:
            return Wrote(Writes(missing="; ".join(material.report.missing)))
        inputs = self._make_inputs(reads, material)
        text, model, fallback, dissents = material.cited.text, OFFLINE, "", True
        try:
            given = await self._model.ask(TASK, inputs)
            text, model = given.output.answer, given.model
            dissents = given.output.dissents
        except ModelError as error:
            fallback = f"{type(error).__name__}: {error}"
        writes = await asyncio.to_thread(_make_writes, material, inputs, text)
        if not writes.response and model != OFFLINE:
            fallback = fallback or f"{model}: no claim has a source"
            model = OFFLINE
            writes = await asyncio.to_thread(_make_writes, material, inputs, material.cited.text)
        shown = _list_notes(material.report, reads.persona, model, dissents=dissents)
        notes = tuple(one.model_dump() for one in shown)
        ended = {"answer_model": model, "synthesis_fallback": fallback, "report_notes": notes}
        return Wrote(writes.model_copy(update=ended))

    def _compose(self, reads: Reads) -> _Material:
        plan = _prefer_given(SwarmPlan.model_validate(reads.swarm_plan), reads.collected_info)
        outputs = _read_ends(reads, plan)
        strategy = self._strategies.find(plan.strategy)
        # The voice is a model's alone: a quotation has none.
        wording = ReportWording(partial(self._texts.text, language=reads.language))
        report = strategy.synthesize_results(plan, outputs, wording)
        avoid = parse_unsupported(reads.quality_analysis)
        cited = cite_report(report, outputs, avoid=avoid)
        references = tuple(_refer(cited.sources))
        return _Material(
            report, cited, references, _BETWEEN.join(one.text for one in cited.sources)
        )

    def _make_inputs(self, reads: Reads, material: _Material) -> Inputs:
        plan = SwarmPlan.model_validate(reads.swarm_plan)
        numbers = {one.citation.chunk_id: one.number for one in material.cited.sources}
        names = {one.id: one.specialization or one.id for one in plan.workers}
        strategy = self._strategies.find(plan.strategy)
        return Inputs(
            question=reads.canonical_question,
            language=reads.language,
            language_name=self._name(reads.language),
            domain_name=self._domain.name,
            persona=reads.persona[:_LONGEST_PERSONA],
            strategy=plan.strategy,
            form=strategy.description,
            sources=material.prompt_sources,
            findings=tuple(
                WorkerFinding(
                    text=claim.text,
                    source=numbers[claim.source.chunk_id],
                    workers=tuple(names.get(one, one) for one in claim.worker_ids),
                    subject=claim.subject,
                )
                for claim in material.report.claims
            ),
            contradictions=tuple(_describe_contradictions(material.report, numbers)),
            missing=material.report.missing,
            analysis=reads.quality_analysis,
            avoid=parse_unsupported(reads.quality_analysis),
            report=material.cited.text,
        )

    def _name(self, language: str) -> str:
        return self._texts.text(f"language_{language}", "en") if language in _NAMED else language


def _prefer_given(plan: SwarmPlan, given: Mapping[str, JsonValue]) -> SwarmPlan:
    """Return a plan whose quotations prefer what the user has given, such as an aspect."""
    known = plan.question.casefold()
    values = (str(one)[:_LONGEST_VALUE] for one in given.values() if one is not None)
    fresh = tuple(one for one in values if one.casefold() not in known)
    if not fresh:
        return plan
    workers = (one.model_copy(update={"sides": (*one.sides, *fresh)}) for one in plan.workers)
    return plan.model_copy(update={"workers": tuple(workers)})


def _read_ends(reads: Reads, plan: SwarmPlan) -> dict[str, WorkerOutput]:
    """Return the outputs of the workers; one that failed without any has its error."""
    outputs = read_outputs(reads.worker_outputs)
    ledger = TaskLedger.model_validate(reads.task_ledger)
    for task in ledger.tasks:
        worker = plan.find_worker(task.task_id)
        is_lost = task.state is TaskState.FAILED and task.task_id not in outputs
        if is_lost and worker is not None:
            outputs[worker.id] = fail_worker(worker, task.error)
    return outputs


def _list_notes(
    report: SwarmReport, persona: str, model: str, *, dissents: bool
) -> Iterator[ReportNote]:
    """Yield the notes for this author: a model has a voice, and may see more dissent than rules."""
    is_offline = model == OFFLINE
    for note in report.notes:
        if is_offline or note.key in {BY_WORDS, UNCHECKED} or not dissents:
            yield note
    if persona and is_offline:
        yield ReportNote(key=NO_PERSONA)


def _make_writes(material: _Material, inputs: Inputs, text: str) -> Writes:
    references, context = material.references, material.context
    safe = keep_links(text, collect_allowed(references, context))
    kept = cite(safe.text, SourceTexts(_make_cited(inputs.sources)))
    used = _select_used(kept, references)
    allowed = collect_allowed(references_of(used, references), context)
    final = keep_links(kept.text, allowed)
    return Writes(
        response=final.text if kept.order else "",
        sources_used=with_addresses(used, references, context, final.text),
        search_results=tuple(_describe_result(one, material) for one in material.cited.sources),
        search_context=context,
        source_references=references,
        removed_links=(*safe.removed, *final.removed),
    )


def _make_cited(sources: Sequence[PromptSource]) -> Iterator[CitedSource]:
    return (CitedSource(one.number, one.text, (one.place,)) for one in sources)


def _refer(sources: Sequence[NumberedSource]) -> list[SourceReference]:
    references, start = [], 0
    for one in sources:
        span = (start, start + len(one.text))
        start = span[1] + len(_BETWEEN)
        fields = one.citation.model_dump(exclude={"document_id", "score"})
        found = (FoundPart(rank=one.number - 1, start=0, end=len(one.text)),)
        references.append(SourceReference(number=one.number, span=span, found=found, **fields))
    return references


def _describe_result(source: NumberedSource, material: _Material) -> SearchResult:
    reference = material.references[source.number - 1]
    fields = source.citation.model_dump()
    return SearchResult.model_validate(
        {**fields, "levels": (_LEVEL,), "span": reference.span, "found": reference.found}
    )


def _select_used(kept: Cited, references: Sequence[SourceReference]) -> tuple[SourceUsed, ...]:
    by_number = {one.number: one for one in references}
    return tuple(
        SourceUsed.model_validate(
            by_number[given].model_dump(exclude={"span", "is_cut", "number", "found"})
            | {"number": shown}
        )
        for shown, given in enumerate(kept.order, start=1)
    )


def _describe_contradictions(report: SwarmReport, numbers: Mapping[str, int]) -> Sequence[str]:
    return [
        f"[{numbers[one.one.source.chunk_id]}] {one.one.text} / "
        f"[{numbers[one.other.source.chunk_id]}] {one.other.text}: {one.reason}"
        for one in report.contradictions
    ]
