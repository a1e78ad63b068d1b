"""Composes the report of a review: seven parts, with a compliance matrix."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Self

from pydantic import BaseModel, JsonValue
from pydantic_core import from_json

from agents.agent import Agent, AgentParts
from agents.specialists.specialist import CallsTools, TeamSettings, Toolbox, add_focus
from compliance.assessment.document_kind import ClassifiedDimension, DocumentClassification
from compliance.auditing.citation_audit import CitationAudit
from compliance.reporting.report import ReportInputs, ReportText, ReviewReport, compose_report
from compliance.reporting.report_json import encode_report
from compliance.requirements.requirement import Extraction, TextPlace
from compliance.team.compression import compress_requirements, compress_verdicts
from compliance.team.findings import list_errors
from compliance.team.named_passages import name_passages
from compliance.team.stored_results import CollectedGaps, RankedRisks
from compliance.team.units import DocumentUnits, cut_document, name_documents
from compliance.verdicts.review import ReviewResult
from envelope.conversation import Turn
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.ways.specialists import (
    Extracted,
    FindingList,
    ReportReference,
    SpecialistError,
    StoredChecklist,
    StoredVerdicts,
)
from llm.tasks.specialists.report_generator import TASK, Inputs, Output

LARGEST_INLINE = 24_000
"""Bytes of a report that travels in the envelope: the result of a branch has at most 32 kB."""
_MOST_SENTENCES, _MOST_ADVICE, _LONGEST = 5, 20, 600
_MOST_FINDINGS = 60


class Reads(BaseModel, frozen=True):
    """What all others have found, and what went wrong."""

    canonical_question: str
    text: str = ""
    history: tuple[Turn, ...] = ()
    round_focus: str = ""
    language: str = "en"
    groups: tuple[str, ...] = ()
    extracted: Extracted | None = None
    classification: tuple[dict[str, JsonValue], ...] = ()
    checklist: StoredChecklist | None = None
    verdicts: StoredVerdicts | None = None
    risks: FindingList | None = None
    citation_audit: FindingList | None = None
    gaps: FindingList | None = None
    errors: tuple[SpecialistError, ...] = ()
    sequence_notes: tuple[str, ...] = ()


class Writes(BaseModel, frozen=True):
    """The report, or where it is stored."""

    review_report: ReportReference | None = None
    errors: tuple[SpecialistError, ...] = ()


def _read_date() -> date:
    return datetime.now(UTC).date()


class ReportGeneratorAgent(Agent[Reads, Writes]):
    """The parts are composed from the findings; a model adds a summary and recommendations.

    A link of the report is `#` and the id of the passage that it leads to. What specialists could
    not do is named in the report.
    """

    role = Role.REPORT_GENERATOR
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
            text = "expected the output of compliance, found none: there is nothing to report"
            return Wrote(Writes(errors=(self._toolbox.make_error(text),)))
        documents = await self._cut(reads)
        inputs = await self._collect(reads, reads.checklist, reads.verdicts, documents)
        given = await self._toolbox.consult(TASK, _make_task_inputs(reads, inputs), reads=reads)
        if isinstance(given, CallsTools):
            raise TypeError("expected a report, found calls of tools that were not offered")
        report = compose_report(
            inputs, language=reads.language, link=lambda place: _make_link(place, documents)
        )
        report = _add_sentences(report, given.output)
        encoded = encode_report(report)
        is_small = len(encoded) <= LARGEST_INLINE
        return Wrote(
            Writes(
                review_report=ReportReference(
                    title=report.title,
                    language=report.language,
                    requirements=reads.verdicts.requirements,
                    compliant=reads.verdicts.compliant,
                    violations=reads.verdicts.violations,
                    gaps=reads.verdicts.gaps,
                    bytes=len(encoded),
                    reference=await self._toolbox.work.put(encoded),
                    report=from_json(encoded) if is_small else None,
                ),
                errors=given.errors,
            )
        )

    async def _cut(self, reads: Reads) -> dict[str, DocumentUnits]:
        found = reads.extracted if reads.extracted is not None else Extracted()
        names = [one.document_id for one in (*found.documents, *found.against)]
        read = await self._toolbox.library.read(names, reads.groups)
        return {one.listed.id: cut_document(one) for one in read}

    async def _collect(
        self,
        reads: Reads,
        checklist: StoredChecklist,
        verdicts: StoredVerdicts,
        documents: Mapping[str, DocumentUnits],
    ) -> ReportInputs:
        load, found = self._toolbox.load, reads.extracted
        found = found if found is not None else Extracted()
        extraction = await load(checklist.reference, Extraction)
        risks, gaps, audit = RankedRisks(risks=()), CollectedGaps(gaps=()), None
        if reads.risks is not None and reads.risks.reference:
            risks = await load(reads.risks.reference, RankedRisks)
        if reads.gaps is not None and reads.gaps.reference:
            gaps = await load(reads.gaps.reference, CollectedGaps)
        if reads.citation_audit is not None and reads.citation_audit.reference:
            audit = await load(reads.citation_audit.reference, CitationAudit)
        reviewed = [
            documents[one.document_id] for one in found.documents if one.document_id in documents
        ]
        notes = (*extraction.notes, *reads.sequence_notes, *list_errors(reads.errors))
        return ReportInputs(
            law=checklist.target_law,
            document=name_documents([one.title for one in found.documents]),
            extraction=extraction.model_copy(update={"notes": notes}),
            review=await load(verdicts.reference, ReviewResult),
            risks=risks.risks,
            gaps=gaps.gaps,
            audit=audit,
            classification=_find_classification(reads),
            passages=len(name_passages(reviewed).texts),
            made_on=self._today(),
            judges=tuple(sorted({*checklist.decided_by, *verdicts.decided_by})),
        )


def _make_task_inputs(reads: Reads, inputs: ReportInputs) -> Inputs:
    findings = compress_verdicts(inputs.review.verdicts, only_findings=True)[:_MOST_FINDINGS]
    names = [one.requirement_id for one in findings]
    counts = {"violations": len(inputs.review.violations), "gaps": len(inputs.review.gaps)}
    return Inputs(
        question=add_focus(reads.canonical_question, reads.round_focus),
        language=reads.language,
        document=inputs.document,
        law=inputs.law,
        counts={"requirements": len(inputs.review.verdicts), **counts},
        requirements=compress_requirements(inputs.extraction.requirements, names),
        verdicts=findings,
        risks=() if reads.risks is None else reads.risks.summary,
        gaps=() if reads.gaps is None else reads.gaps.summary,
        errors=tuple(map(str, reads.errors)),
    )


def _add_sentences(report: ReviewReport, output: Output) -> ReviewReport:
    """Return the report with the sentences of a model in its first and its sixth part."""
    parts = list(report.parts)
    summary = tuple(ReportText(one) for one in _clean(output.summary, _MOST_SENTENCES))
    advice = tuple(ReportText(one) for one in _clean(output.recommendations, _MOST_ADVICE))
    parts[0] = replace(parts[0], paragraphs=(*parts[0].paragraphs, *summary))
    if advice:
        parts[5] = replace(parts[5], items=(*advice, *parts[5].items))
    return replace(report, parts=tuple(parts))


def _clean(sentences: Sequence[str], most: int) -> Iterator[str]:
    for one in sentences[:most]:
        plain = " ".join(one.split())[:_LONGEST]
        if plain:
            yield plain


def _make_link(place: TextPlace, documents: Mapping[str, DocumentUnits]) -> str:
    own = documents.get(place.document_id)
    name = "" if own is None else own.find_chunk(place)
    return f"#{name}" if name else ""


def _find_classification(reads: Reads) -> DocumentClassification | None:
    """Return the classes of the first reviewed document."""
    found = reads.extracted
    names = [] if found is None else [one.document_id for one in found.documents]
    own = next((one for one in reads.classification if one.get("document_id") in names), None)
    if own is None:
        return None
    return DocumentClassification.model_validate(
        {
            **{
                name: ClassifiedDimension(value=str(own.get(name) or "other"), share=1.0)
                for name in ("document_type", "domain", "sensitivity")
            },
            "complexity": own.get("complexity"),
            "complexity_score": 0,
            "language": own.get("language"),
        }
    )
