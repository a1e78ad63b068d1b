"""Writes a single answer from the results of all workers, in which each claim has its source."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Self

import structlog
from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts, DeskDomain, ProgressStep, ReadsLanguage
from agents.swarm.material import (
    USUAL_ROOM,
    ItemTable,
    NumberedSource,
    SwarmMaterial,
    WrittenFinding,
    choose_shown,
    find_closest,
    gather_material,
    list_unread,
    make_table,
)
from agents.swarm.swarm_plan import SwarmPlan
from agents.swarm.workers import LONGEST_PERSONA, WorkerOutput, read_ends
from citations.citing import Cited, cite
from citations.claims import parse_unsupported
from citations.links import keep_links, plain_line, plain_title
from citations.proof import ProofSource, SourceTexts
from citations.sources import cite_references, collect_allowed, references_of, with_addresses
from citations.verbatim import STRUCK, as_markdown
from envelope.conversation import AnswerStyle, Preferences
from envelope.outcome import HopOutcome, RetryAfter, Wrote
from envelope.role import Role
from envelope.sources import FoundPart, SearchResult, SourceReference, SourceUsed
from envelope.swarm import NO_DISSENT, NO_PERSONA, SEPARATE_PARTS, SHOWN_PART
from envelope.texts import Texts, explain_missing_answer, join_sentences
from llm.errors import NO_MODEL, ModelError, explain_failed_lookup, find_wait_seconds
from llm.port import Model
from llm.tasks.search import PromptSource
from llm.tasks.swarm import (
    SYNTHESIZE_FINDINGS,
    SynthesizeFindingsInputs,
    SynthesizeFindingsOutput,
    WorkerFinding,
)
from tools.dialogue import measure_room
from tools.passages import FoundPassage

log = structlog.get_logger("agents")
COUNCIL = "council"
_BETWEEN = "\n\n"
_LEVEL = "swarm"
_LONGEST_FACT = 300
_LONGEST_QUOTED = 400
_MOST_SHOWN = 3
_UNREADABLE = "unreadable"
"""The reason for a model whose text cites nothing."""
_NUMBER = re.compile(r"\[(\d{1,4})\]")
_LAID_OUT = re.compile(r"^[ \t]*(?:```|~~~|\||[-*+][ \t]|\d{1,3}[.)][ \t])", re.MULTILINE)
"""The beginning of a line in code, in a table, or in a list."""


class Reads(ReadsLanguage, BaseModel, frozen=True):
    """The plan, the workers' texts, and the complaints about an earlier answer."""

    canonical_question: str
    persona: str = ""
    answer_style: AnswerStyle = ""
    preferences: Preferences = Preferences()
    swarm_plan: dict[str, JsonValue] = {}
    task_ledger: dict[str, JsonValue] = {}
    worker_outputs: dict[str, JsonValue] = {}
    collected_info: dict[str, JsonValue] = {}
    quality_analysis: str = ""
    response: str = ""


class Writes(BaseModel, frozen=True):
    """The answer with its sources; if there are no sources, nothing was found."""

    response: str = ""
    sources_used: tuple[SourceUsed, ...] = ()
    search_results: tuple[SearchResult, ...] = ()
    search_context: str = ""
    source_references: tuple[SourceReference, ...] = ()
    removed_links: tuple[str, ...] = ()
    missing: str = ""
    answer_model: str = ""
    answered_by: Literal["", "model", "search"] = ""
    fallback_reason: str = ""
    synthesis_fallback: str = ""
    report_notes: tuple[dict[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _Sources:
    """The sources of an answer, as displayed and as cited."""

    numbered: tuple[NumberedSource, ...]
    references: tuple[SourceReference, ...]
    context: str

    @classmethod
    def of(cls, numbered: Sequence[NumberedSource]) -> "_Sources":
        context = _BETWEEN.join(source.text for source in numbered)
        return cls(tuple(numbered), tuple(_refer(numbered)), context)


@dataclass(frozen=True, slots=True)
class _Written:
    """A text that cites the given numbers, a table below it, and further text below the table.

    If it quotes passages unchanged, each below its number, no further marks are added.
    """

    text: str
    table: ItemTable | None = None
    below: str = ""
    has_passages: bool = False


class SynthesizeAgent(Agent[Reads, Writes]):
    """Has a model write the answer from the workers' texts, with their passages as sources.

    Without a model, or if it fails, the closest passages are shown: one for each item, or a
    statement that nothing was found. A claim without a source is removed.
    """

    role = Role.SYNTHESIZE
    step = ProgressStep.WRITE
    model_task = SYNTHESIZE_FINDINGS
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        model: Model,
        texts: Texts,
        domain: DeskDomain | None = None,
        uses_model: bool = True,
    ) -> None:
        self._model = model
        self._texts = texts
        self._domain = DeskDomain() if domain is None else domain
        self._uses_model = uses_model

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        return cls(
            model=parts.model(SYNTHESIZE_FINDINGS.name),
            texts=parts.texts,
            domain=DeskDomain.of(parts.settings),
            uses_model=parts.uses_model,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        if not reads.swarm_plan:
            return Wrote(Writes(missing=reads.canonical_question))
        plan = SwarmPlan.model_validate(reads.swarm_plan)
        outputs = read_ends(reads.worker_outputs, reads.task_ledger, plan)
        if not self._uses_model:
            return Wrote(await asyncio.to_thread(self._show, reads, plan, outputs, NO_MODEL))
        room = measure_room(self._model.name) or USUAL_ROOM
        material = gather_material(plan, outputs, room)
        if not material.sources:
            return Wrote(Writes(missing=reads.canonical_question))
        inputs = self._make_inputs(reads, plan, material)
        try:
            given = await self._model.ask(SYNTHESIZE_FINDINGS, inputs, self.run)
        except ModelError as error:
            left = await asyncio.to_thread(
                self._show_findings, reads, plan, outputs, material, error
            )
            seconds = find_wait_seconds(error)
            reason = f"{error.reason}: {error}"
            return left if seconds is None else RetryAfter(seconds, reason, otherwise=left)
        unread = self._describe_unread(reads, plan, outputs)
        written = self._read(reads, inputs, given.output, unread)
        writes = await asyncio.to_thread(self._make_writes, reads, written, material.sources)
        if not writes.response:
            shown = await asyncio.to_thread(self._show, reads, plan, outputs, _UNREADABLE)
            fallback = f"{given.model}: no claim has a source"
            return Wrote(shown.model_copy(update={"synthesis_fallback": fallback}))
        ended = {
            "answer_model": given.model,
            "answered_by": "model",
            "missing": "; ".join(given.output.missing),
            "report_notes": tuple(_list_notes(plan, written, given.output)),
        }
        return Wrote(writes.model_copy(update=ended))

    def _make_inputs(
        self, reads: Reads, plan: SwarmPlan, material: SwarmMaterial
    ) -> SynthesizeFindingsInputs:
        return SynthesizeFindingsInputs(
            question=reads.canonical_question,
            language=reads.language,
            language_name=self._name(reads.reply_language),
            domain_name=self._domain.name,
            domain_scope=self._domain.scope,
            persona=reads.persona[:LONGEST_PERSONA],
            strategy=plan.strategy,
            style=reads.answer_style or reads.preferences.style or "",
            items=plan.items if plan.criteria else (),
            criteria=plan.criteria if plan.items else (),
            sources=tuple(map(_make_prompt_source, material.sources)),
            findings=tuple(
                WorkerFinding(
                    worker=finding.worker,
                    objective=finding.objective,
                    text=finding.text,
                    sources=finding.sources,
                    problem=f"could not be looked up: {finding.problem}"
                    if finding.is_failed
                    else finding.problem,
                )
                for finding in material.findings
            ),
            facts=tuple(
                f"{name}: {value}"[:_LONGEST_FACT]
                for name, value in reads.collected_info.items()
                if value is not None
            ),
            left_out=material.left_out,
            analysis=reads.quality_analysis,
            avoid=parse_unsupported(reads.quality_analysis),
            before=reads.response if reads.quality_analysis else "",
        )

    def _read(
        self,
        reads: Reads,
        inputs: SynthesizeFindingsInputs,
        output: SynthesizeFindingsOutput,
        unread: Mapping[str, str],
    ) -> _Written:
        """Return the parts of a model's text, with the sources that it refers to."""
        known = {source.number for source in inputs.sources}
        cells = {
            (cell.item, cell.criterion): cell.finding
            for cell in output.cells
            if known.intersection(map(int, _NUMBER.findall(cell.finding)))
        }
        table = make_table(inputs.items, inputs.criteria, cells, unread) if inputs.items else None
        lines = [
            f"- {' '.join(contradiction.about.split())} "
            f"[{contradiction.one}][{contradiction.other}]"
            for contradiction in output.contradictions
            if {contradiction.one, contradiction.other} <= known
            and contradiction.one != contradiction.other
        ]
        lead = self._texts.text("report_contradictions", reads.reply_language)
        below = "\n".join((lead, "", *lines)) if lines else ""
        return _Written(output.answer, table, below)

    def _describe_unread(
        self, reads: Reads, plan: SwarmPlan, outputs: Mapping[str, WorkerOutput]
    ) -> dict[str, str]:
        """Return the items that no worker was able to look up, each with its explanation."""
        return {
            item: explain_failed_lookup(self._texts, error, reads.reply_language)
            for item, error in list_unread(plan, outputs).items()
        }

    def _show_findings(
        self,
        reads: Reads,
        plan: SwarmPlan,
        outputs: Mapping[str, WorkerOutput],
        material: SwarmMaterial,
        error: ModelError,
    ) -> Wrote[Writes]:
        """Return the workers' texts, part by part, if no model can combine them into one answer.

        If they wrote nothing, the closest passages are shown.
        """
        fallback = f"{type(error).__name__}: {error}"
        written = Writes()
        if any(finding.text and finding.sources for finding in material.findings):
            blocks = (self._write_finding(reads, finding) for finding in material.findings)
            parts = _Written(_BETWEEN.join(filter(None, blocks)))
            written = self._make_writes(reads, parts, material.sources)
        if not written.response:
            log.warning("answered_by_search", reason=error.reason, error=fallback)
            written = self._show(reads, plan, outputs, error.reason)
            return Wrote(written.model_copy(update={"synthesis_fallback": fallback}))
        reason = self._texts.text(f"reason_{error.reason}", reads.reply_language)
        ended = {
            "answered_by": "model",
            "report_notes": (
                *_note_parts(worker.subject or worker.objective for worker in plan.workers),
                {"key": SEPARATE_PARTS, "value": reason},
            ),
            "synthesis_fallback": fallback,
        }
        return Wrote(written.model_copy(update=ended))

    def _write_finding(self, reads: Reads, finding: WrittenFinding) -> str:
        """Return the part of a worker below its item or brief, or a notice about its failure."""
        head = f"**{as_markdown(plain_line(finding.item or finding.objective))}**"
        if finding.is_failed:
            why = explain_failed_lookup(self._texts, finding.problem, reads.reply_language)
            return f"{head}: {why}"
        nothing = self._texts.text("report_nothing", reads.reply_language)
        return f"{head}\n\n{finding.text}" if finding.text else f"{head}: {nothing}"

    def _show(
        self, reads: Reads, plan: SwarmPlan, outputs: Mapping[str, WorkerOutput], reason: str
    ) -> Writes:
        """Return the closest passages unchanged: one for each item or, if there are no items, those
        of all workers.

        `reason` states why no model wrote an answer; see `llm.errors.REASONS`.
        """
        closest = find_closest(plan, outputs)
        passages = [passage for passage in closest.values() if passage is not None]
        if not passages:
            passages = list(choose_shown(plan, outputs, _MOST_SHOWN))
        unique = {
            passage.citation.chunk_id: passage for passage in passages if passage.text.strip()
        }
        sources = [
            NumberedSource(number=number, citation=passage.citation, text=passage.text)
            for number, passage in enumerate(unique.values(), start=1)
        ]
        if not sources:
            return Writes(missing=reads.canonical_question)
        # A cell would break code, tables and lists, so they are written below their place, as in
        # the document.
        fits_cells = closest and not any(_is_laid_out(source.text) for source in sources)
        unread = self._describe_unread(reads, plan, outputs)
        table = self._make_closest(reads, closest, sources, unread) if fits_cells else None
        nothing = self._texts.text("report_nothing", reads.reply_language)
        lost = [
            f"**{as_markdown(plain_line(one))}**: {unread.get(one, nothing)}"
            for one, passage in closest.items()
            if not passage
        ]
        blocks = "\n\n".join((*(_write_block(source, closest) for source in sources), *lost))
        written = _Written(blocks, has_passages=True) if table is None else _Written("", table)
        writes = self._make_writes(reads, written, sources)
        say = partial(self._texts.text, language=reads.reply_language)
        why = explain_missing_answer(self._texts, reason, reads.reply_language)
        notice = join_sentences(why, say("passages_found"))
        notes = _note_parts(closest)
        notes += [{"key": NO_PERSONA, "value": ""}] if reads.persona else []
        ended = {
            "response": f"{notice}\n\n{writes.response}" if writes.response else "",
            "answered_by": "search",
            "fallback_reason": reason,
            "report_notes": tuple(notes),
        }
        return writes.model_copy(update=ended)

    def _make_closest(
        self,
        reads: Reads,
        closest: Mapping[str, FoundPassage | None],
        sources: Sequence[NumberedSource],
        unread: Mapping[str, str],
    ) -> ItemTable:
        numbers = {source.citation.chunk_id: source.number for source in sources}
        column = self._texts.text("report_closest", reads.reply_language)
        cells = {
            (item, column): f"{_quote(passage.text)} [{numbers[passage.citation.chunk_id]}]"
            for item, passage in closest.items()
            if passage is not None
        }
        return make_table(tuple(closest), (column,), cells, unread)

    def _make_writes(
        self, reads: Reads, written: _Written, numbered: Sequence[NumberedSource]
    ) -> Writes:
        """Return the answer with the sources that it cites, numbered in order of appearance."""
        sources = _Sources.of(numbered)
        references, context = sources.references, sources.context
        table = ""
        if written.table is not None:
            say = partial(self._texts.text, language=reads.reply_language)
            table = written.table.render(say("report_item"), say("report_nothing"))
        text = _BETWEEN.join(part for part in (written.text, table, written.below) if part)
        safe = keep_links(text, collect_allowed(references, context))
        if written.has_passages:
            kept = Cited(safe.text, tuple(source.number for source in numbered))
        else:
            cited = (
                ProofSource(source.number, source.text, (_name_place(source),))
                for source in numbered
            )
            kept = cite(safe.text, SourceTexts(cited))
        used = cite_references(kept.order, references)
        final = keep_links(kept.text, collect_allowed(references_of(used, references), context))
        return Writes(
            response=final.text if used else "",
            sources_used=with_addresses(used, references, context, final.text),
            search_results=tuple(_describe_result(source, sources) for source in numbered),
            search_context=context,
            source_references=references,
            removed_links=(*safe.removed, *final.removed),
        )

    def _name(self, language: str) -> str:
        is_named = language in self._texts.languages
        return self._texts.text(f"language_{language}", "en") if is_named else language


def _is_laid_out(text: str) -> bool:
    """Return whether a passage contains code, a table, or a list, whose line breaks are
    significant.
    """
    return _LAID_OUT.search(text) is not None


def _write_block(source: NumberedSource, closest: Mapping[str, FoundPassage | None]) -> str:
    """Return a passage unchanged, below its location and the items for which it is the closest
    passage.
    """
    chunk = source.citation.chunk_id
    items = [
        item
        for item, passage in closest.items()
        if passage is not None and passage.citation.chunk_id == chunk
    ]
    lead = f"{plain_line(', '.join(items))}: " if items else ""
    place = as_markdown(f"{lead}{plain_title(_name_place(source))}")
    return f"**{place}** [{source.number}]\n\n{as_markdown(source.text)}"


def _quote(text: str) -> str:
    """Return the beginning of a passage as one line of Markdown, truncated at the end of a word."""
    line = " ".join(text.split())
    if len(line) > _LONGEST_QUOTED:
        line = line[:_LONGEST_QUOTED].rpartition(" ")[0] or line[:_LONGEST_QUOTED]
        line += f"{STRUCK if line.count(STRUCK) % 2 else ''} …"
    return as_markdown(line)


def _list_notes(
    plan: SwarmPlan, written: _Written, output: SynthesizeFindingsOutput
) -> Iterator[dict[str, str]]:
    if written.table is not None:
        yield from _note_parts(written.table.items)
    if plan.strategy == COUNCIL and not output.dissents:
        yield {"key": NO_DISSENT, "value": ""}


def _note_parts(parts: Iterable[str]) -> list[dict[str, str]]:
    """Return a note for each part whose result, or absence, is stated in the answer."""
    return [{"key": SHOWN_PART, "value": part} for part in dict.fromkeys(parts)]


def _name_place(source: NumberedSource) -> str:
    place = (*source.citation.crumbs, source.citation.title, *source.citation.heading_path)
    return " > ".join(dict.fromkeys(place))


def _make_prompt_source(source: NumberedSource) -> PromptSource:
    return PromptSource(
        number=source.number,
        chunk_id=source.citation.chunk_id,
        place=_name_place(source),
        language=source.citation.language,
        version=source.citation.version or "",
        text=source.text,
    )


def _refer(sources: Sequence[NumberedSource]) -> Iterator[SourceReference]:
    start = 0
    for source in sources:
        span = (start, start + len(source.text))
        start = span[1] + len(_BETWEEN)
        fields = source.citation.model_dump(exclude={"document_id", "score"})
        parts = (FoundPart(rank=source.number - 1, start=0, end=len(source.text)),)
        yield SourceReference(number=source.number, span=span, found=parts, **fields)


def _describe_result(source: NumberedSource, sources: _Sources) -> SearchResult:
    reference = sources.references[source.number - 1]
    fields = source.citation.model_dump()
    return SearchResult.model_validate(
        {**fields, "levels": (_LEVEL,), "span": reference.span, "found": reference.found}
    )
