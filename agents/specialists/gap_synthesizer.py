"""Collects the gaps of a review, of five kinds."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Self

from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts
from agents.specialists.specialist import CallsTools, LoopTurns, TeamSettings, Toolbox, add_focus
from compliance.assessment.gaps import SynthesizedGap
from compliance.auditing.citation_audit import CitationAudit
from compliance.requirements.requirement import Extraction
from compliance.team.compression import compress_requirements, compress_verdicts
from compliance.team.named_passages import NamedPassages, name_passages
from compliance.team.stored_results import CollectedGaps
from compliance.team.units import cut_document
from compliance.verdicts.review import ReviewResult
from envelope.conversation import Turn
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.ways.specialists import (
    Extracted,
    FindingList,
    SpecialistError,
    StoredChecklist,
    StoredVerdicts,
)
from llm.tasks.specialists.gap_synthesizer import TASK, FoundGap, Inputs

_MOST_SUMMARY = 5
_MOST_MET = 40
"""Compliant requirements that a model reads besides the violations and gaps."""


class Reads(BaseModel, frozen=True):
    """The checklist, its verdicts, the documents, the audit, and the loop of tools so far."""

    canonical_question: str
    text: str = ""
    history: tuple[Turn, ...] = ()
    round_focus: str = ""
    language: str = "en"
    groups: tuple[str, ...] = ()
    extracted: Extracted | None = None
    checklist: StoredChecklist | None = None
    verdicts: StoredVerdicts | None = None
    citation_audit: FindingList | None = None
    plan_messages: tuple[dict[str, JsonValue], ...] = ()
    multi_tool_results: dict[str, JsonValue] = {}


class Writes(BaseModel, frozen=True):
    """The gaps; or the calls of tools before."""

    gaps: FindingList | None = None
    errors: tuple[SpecialistError, ...] = ()
    tool_calls: tuple[dict[str, JsonValue], ...] = ()
    plan_messages: tuple[dict[str, JsonValue], ...] = ()


def _read_date() -> date:
    return datetime.now(UTC).date()


class GapSynthesizerAgent(Agent[Reads, Writes]):
    """Every verdict of a gap is a gap, whatever a model writes; it may add others."""

    role = Role.GAP_SYNTHESIZER
    reads = Reads
    writes = Writes

    def __init__(self, toolbox: Toolbox, today: Callable[[], date] = _read_date) -> None:
        self._toolbox = toolbox
        self._today = today

    @classmethod
    def make(cls, parts: AgentParts[TeamSettings]) -> Self:
        return cls(Toolbox.make(parts, TASK.name))

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        if reads.checklist is None or reads.verdicts is None:
            text = "expected the output of compliance, found none: there are no gaps to collect"
            return Wrote(Writes(errors=(self._toolbox.make_error(text),)))
        extraction = await self._toolbox.load(reads.checklist.reference, Extraction)
        review = await self._toolbox.load(reads.verdicts.reference, ReviewResult)
        passages = await self._name_passages(reads)
        every = Inputs(
            question=add_focus(reads.canonical_question, reads.round_focus),
            language=reads.language,
            requirements=compress_requirements(extraction.requirements),
            verdicts=compress_verdicts(review.verdicts),
            headings={
                one.id: " > ".join(one.place.heading_path)
                for one in extraction.requirements
                if one.place.heading_path
            },
            passages=passages.texts,
            document_language=passages.language,
            wrong_citations=await self._list_wrong(reads.citation_audit),
            today=self._today().isoformat(),
        )
        by_rules = (await self._toolbox.ask_rules(TASK, every)).gaps
        turns = LoopTurns.parse(reads.plan_messages, reads.multi_tool_results)
        given = await self._toolbox.consult(TASK, self._shorten(every), turns, reads)
        if isinstance(given, CallsTools):
            return Wrote(
                Writes(tool_calls=given.calls, plan_messages=(given.message,), errors=given.errors)
            )
        places = {one.id: one.place for one in extraction.requirements}
        gaps = [_convert(one, passages) for one in _merge(by_rules, given.output.gaps, set(places))]
        kinds: dict[str, int] = {}
        for one in gaps:
            kinds[one.kind] = kinds.get(one.kind, 0) + 1
        return Wrote(
            Writes(
                gaps=FindingList(
                    reference=await self._toolbox.store(CollectedGaps(gaps=tuple(gaps))),
                    items=len(gaps),
                    summary=tuple(f"{kind}: {count}" for kind, count in kinds.items()),
                    decided_by=given.decided_by,
                ),
                errors=given.errors,
            )
        )

    def _shorten(self, every: Inputs) -> Inputs:
        """Return the inputs of a model: findings, some met requirements, no whole document."""
        if self._toolbox.is_offline:
            return every
        found = [one for one in every.verdicts if one.status != "COMPLIANT"]
        met = [one for one in every.verdicts if one.status == "COMPLIANT"][:_MOST_MET]
        names = {one.requirement_id for one in (*found, *met)}
        return every.model_copy(
            update={
                "verdicts": (*found, *met),
                "requirements": tuple(one for one in every.requirements if one.id in names),
                "headings": {name: one for name, one in every.headings.items() if name in names},
                "shown": tuple(one.id for one in every.passages[:_MOST_MET]),
            }
        )

    async def _name_passages(self, reads: Reads) -> NamedPassages:
        found = reads.extracted if reads.extracted is not None else Extracted()
        names = [one.document_id for one in found.documents]
        read = await self._toolbox.library.read(names, reads.groups)
        return name_passages([cut_document(one) for one in read])

    async def _list_wrong(self, audit: FindingList | None) -> tuple[str, ...]:
        if audit is None or not audit.reference:
            return ()
        found = await self._toolbox.load(audit.reference, CitationAudit)
        return tuple(
            f"{one.label} {'; '.join(one.problems)}" for one in found.citations if not one.is_good
        )


def _merge(
    by_rules: tuple[FoundGap, ...], given: tuple[FoundGap, ...], known: set[str]
) -> list[FoundGap]:
    """Return the gaps of the verdicts, and those that were given about requirements that exist."""
    certain = [one for one in by_rules if one.kind == "regulatory"]
    others = [
        one for one in given if one.kind != "regulatory" and known.issuperset(one.requirement_ids)
    ]
    return [*certain, *others]


def _convert(one: FoundGap, passages: NamedPassages) -> SynthesizedGap:
    return SynthesizedGap(
        kind=one.kind,
        summary=one.summary[:2_000],
        requirement_ids=one.requirement_ids,
        places=tuple(passages.places[name] for name in one.passages if name in passages.places),
    )
