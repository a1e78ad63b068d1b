"""Composes the report of a review, which has seven parts including a compliance matrix."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pydantic import BaseModel, JsonValue
from pydantic_core import from_json

from agents.agent import AgentRole, ProgressStep
from agents.review.audit import CitationAudit
from agents.review.findings import list_errors
from agents.review.passages import DocumentUnits, cut_document, name_documents
from agents.review.report_layout import name_review
from agents.review.requirements import Extraction, TextPlace
from agents.review.review_report import (
    ReportedSection,
    ReportInputs,
    SectionState,
    compose_report,
    encode_report,
)
from agents.review.specialist import (
    NO_RESULT,
    LoopTurns,
    ReadsScope,
    SpecialistAgent,
    SpecialistReads,
)
from agents.review.verdicts import (
    CollectedGaps,
    RankedRisks,
    ReviewResult,
    Status,
    compress_requirements,
    compress_verdicts,
    describe_risk,
    divide_findings,
)
from envelope.outcome import Wrote
from envelope.role import Role
from envelope.specialists import (
    ErrorSeverity,
    FindingList,
    ReportReference,
    SpecialistError,
    SpecialistName,
    StoredChecklist,
    StoredVerdicts,
)
from envelope.tool_loop import NO_TRIAGE, Triage
from llm.tasks.review import (
    REPORT_GENERATOR,
    KnownVerdict,
    Recommendation,
    ReportGeneratorInputs,
    ReportGeneratorOutput,
)

LARGEST_INLINE = 24_000
"""Maximum size in bytes of a report that is stored in the envelope, because the result of a branch
is limited to 32 kB.
"""
_MOST_SENTENCES, _LONGEST = 5, 1_500
_FROM_VERDICTS = frozenset({"risks", "citations", "recommendations"})
"""Sections that are derived from the verdicts."""
_CLASSES = ("document_type", "domain", "complexity", "language", "sensitivity")


class Reads(SpecialistReads, ReadsScope, frozen=True):
    """The results and errors of all other specialists."""

    classification: tuple[dict[str, JsonValue], ...] = ()
    checklist: StoredChecklist | None = None
    verdicts: StoredVerdicts | None = None
    risks: FindingList | None = None
    citation_audit: FindingList | None = None
    gaps: FindingList | None = None
    errors: tuple[SpecialistError, ...] = ()
    sequence_notes: tuple[str, ...] = ()
    triage: Triage = NO_TRIAGE


class Writes(BaseModel, frozen=True):
    """The report, or the reference under which it is stored."""

    review_report: ReportReference | None = None
    errors: tuple[SpecialistError, ...] = ()


class ReportGeneratorAgent(SpecialistAgent[Reads, Writes]):
    """Composes the findings; a model adds a summary, and a recommendation for each finding.

    A link in the report consists of `#` and the id of its passage. Tasks that specialists could not
    complete are named in the report.
    """

    role = Role.REPORT_GENERATOR
    step = ProgressStep.WRITE
    model_task = REPORT_GENERATOR
    agent_role = AgentRole.REPORT
    reads = Reads
    writes = Writes

    async def examine(self, reads: Reads) -> Wrote[Writes]:
        if reads.checklist is None or reads.verdicts is None:
            text = "no report was written, because the output of compliance is missing"
            return Wrote(Writes(errors=(self.toolbox.make_error(text),)))
        documents = await self._cut(reads)
        inputs = await self._collect(reads, reads.checklist, reads.verdicts, documents)
        output, errors = await self._write(reads, inputs)
        inputs = replace(
            inputs,
            summary=tuple(_clean(output.summary[:_MOST_SENTENCES])),
            recommendations=_order_advice(output.recommendations),
            notes=(*inputs.notes, *list_errors(errors)),
            sections=_describe_sections(reads, inputs, output, errors),
        )
        report = compose_report(
            inputs,
            language=reads.language,
            link=lambda place: _make_link(place, documents),
            find_page=lambda place: _find_page(place, documents),
        )
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
                    undecided=len(reads.verdicts.undecided),
                    confidence=reads.verdicts.confidence,
                    bytes=len(encoded),
                    reference=await self.toolbox.store_bytes(encoded),
                    report=from_json(encoded) if is_small else None,
                ),
                errors=errors,
            )
        )

    async def _write(
        self, reads: Reads, inputs: ReportInputs
    ) -> tuple[ReportGeneratorOutput, tuple[SpecialistError, ...]]:
        """Return the texts that the model wrote about the findings, which are empty without a
        model, and the errors.

        The summary is taken from the first batch, which contains the most serious findings.
        """
        if self.toolbox.is_offline:
            return ReportGeneratorOutput(), ()
        batches = list(divide_findings(compress_verdicts(inputs.review.findings))) or [()]
        asked = [_make_task_inputs(reads, inputs, own) for own in batches]
        known = compress_requirements(inputs.extraction.requirements)
        toolbox = replace(self.toolbox, known=known)
        given = await toolbox.consult_each(REPORT_GENERATOR, asked, LoopTurns(), reads)
        advice = tuple(
            recommendation for output in given.outputs for recommendation in output.recommendations
        )
        summary = given.outputs[0].summary if given.outputs else ()
        return ReportGeneratorOutput(summary=summary, recommendations=advice), given.errors

    async def _cut(self, reads: Reads) -> dict[str, DocumentUnits]:
        names = [
            document.document_id for document in (*reads.scope.documents, *reads.scope.against)
        ]
        read = await self.toolbox.read_documents(names, reads.groups)
        return {document.listed.id: cut_document(document) for document in read}

    async def _collect(
        self,
        reads: Reads,
        checklist: StoredChecklist,
        verdicts: StoredVerdicts,
        documents: Mapping[str, DocumentUnits],
    ) -> ReportInputs:
        load, extracted = self.toolbox.load, reads.scope
        extraction = await load(checklist.reference, Extraction)
        review = await load(verdicts.reference, ReviewResult)
        risks, gaps, audit = RankedRisks(risks=()), CollectedGaps(gaps=()), None
        if reads.risks is not None and reads.risks.reference:
            risks = await load(reads.risks.reference, RankedRisks)
        if reads.gaps is not None and reads.gaps.reference:
            gaps = await load(reads.gaps.reference, CollectedGaps)
        if reads.citation_audit is not None and reads.citation_audit.reference:
            audit = await load(reads.citation_audit.reference, CitationAudit)
        document = name_documents(
            [reviewed_document.title for reviewed_document in extracted.documents]
        )
        return ReportInputs(
            title=name_review(document, checklist.target_law, reads.language),
            law=checklist.target_law,
            document=document,
            documents=extracted.documents,
            against=extracted.against,
            extraction=extraction,
            review=review,
            risks=risks.risks,
            gaps=gaps.gaps,
            audit=audit,
            classes=_list_classes(reads),
            headings={
                unit.unit_id: " > ".join(unit.heading_path) or units.title
                for units in documents.values()
                for unit in units.units
            },
            unit_texts={
                (unit.document_id, unit.unit_id): unit.text
                for document in documents.values()
                for unit in document.units
            },
            units_unread=checklist.units_unread,
            notes=(
                *extracted.notes, *extraction.notes, *review.notes, *reads.sequence_notes,
                *list_errors(reads.errors),
            ),
            is_judged=not self.toolbox.is_offline or bool(verdicts.decided_by),
            confidence=verdicts.confidence,
            made_on=self._today(),
            judges=tuple(sorted({*checklist.decided_by, *verdicts.decided_by} - {""})),
        )  # fmt: skip


def _describe_sections(
    reads: Reads,
    inputs: ReportInputs,
    output: ReportGeneratorOutput,
    errors: Sequence[SpecialistError],
) -> dict[str, ReportedSection]:
    """Return for each section whether its specialist ran, and with which result."""
    names = SpecialistName
    audit = inputs.audit
    # A recommendation for a requirement without a finding is not shown.
    found = {finding.requirement_id for finding in inputs.review.findings}
    shown = [each for each in output.recommendations if each.requirement_id in found]
    own = _find_state(reads, names.REPORT_GENERATOR, output, shown, errors)
    if errors and not (output.summary or output.recommendations):
        own = own.model_copy(update={"state": SectionState.FAILED})
    sections = {
        "findings": _judge_verdicts(inputs.review),
        "risks": _find_state(reads, names.RISK_VERIFIER, reads.risks, inputs.risks),
        "gaps": _find_state(
            reads,
            names.GAP_SYNTHESIZER,
            reads.gaps,
            [gap for gap in inputs.gaps if gap.kind != "regulatory"],
        ),
        "citations": _find_state(
            reads, names.CITATION_AUDITOR, audit, () if audit is None else audit.citations
        ),
        "recommendations": own,
        "classes": _find_state(
            reads, names.CLASSIFIER, reads.classification or None, reads.classification
        ),
    }
    if inputs.is_judged:
        return {
            name: _limit_by_verdicts(name, section, sections) for name, section in sections.items()
        }
    unjudged = {"state": SectionState.NOT_JUDGED}
    return {name: section.model_copy(update=unjudged) for name, section in sections.items()}


def _limit_by_verdicts(
    name: str, section: ReportedSection, sections: Mapping[str, ReportedSection]
) -> ReportedSection:
    """Return a section. If it is empty because verdicts are missing, it gets the state of the
    verdicts.
    """
    findings = sections["findings"]
    is_made = findings.state in (SectionState.RESULT, SectionState.NOTHING)
    is_empty = section.state is SectionState.NOTHING
    return findings if name in _FROM_VERDICTS and is_empty and not is_made else section


def _judge_verdicts(review: ReviewResult) -> ReportedSection:
    name = SpecialistName.COMPLIANCE.value
    undecided = review.of_status(Status.UNDECIDED)
    if not undecided:
        state = SectionState.RESULT if review.findings else SectionState.NOTHING
        return ReportedSection(state=state, specialist=name)
    is_lost = len(undecided) == len(review.verdicts)
    return ReportedSection(
        state=SectionState.FAILED if is_lost else SectionState.INCOMPLETE,
        specialist=name,
        reason="; ".join(dict.fromkeys(verdict.note for verdict in undecided if verdict.note)),
    )


def _find_state(
    reads: Reads,
    name: SpecialistName,
    output: object | None,
    items: Sequence[object],
    errors: Sequence[SpecialistError] = (),
) -> ReportedSection:
    """Return the state of the section of a specialist; `output` is None if it wrote nothing."""
    failures = [
        error.text
        for error in (*reads.errors, *errors)
        if error.specialist == name and error.severity is not ErrorSeverity.LOW
    ]
    reason = "; ".join(dict.fromkeys(failures))
    if output is not None and failures:
        state = SectionState.INCOMPLETE
    elif output is not None:
        state = SectionState.RESULT if items else SectionState.NOTHING
    elif failures or name in reads.triage.agent_sequence:
        state, reason = SectionState.FAILED, reason or NO_RESULT
    else:
        state = SectionState.NOT_REQUESTED
    return ReportedSection(state=state, specialist=name.value, reason=reason)


def _make_task_inputs(
    reads: Reads, inputs: ReportInputs, findings: tuple[KnownVerdict, ...]
) -> ReportGeneratorInputs:
    names = [finding.requirement_id for finding in findings]
    return ReportGeneratorInputs(
        question=reads.question,
        language=reads.language,
        document=inputs.document,
        law=inputs.law,
        counts={
            "requirements": len(inputs.review.verdicts),
            **{status.value.lower(): len(inputs.review.of_status(status)) for status in Status},
        },
        requirements=compress_requirements(inputs.extraction.requirements, names),
        verdicts=findings,
        risks=tuple(describe_risk(risk) for risk in inputs.risks if risk.requirement_id in names),
        gaps=tuple(gap.summary for gap in inputs.gaps if gap.kind != "regulatory"),
        errors=tuple(map(str, reads.errors)),
    )


def _order_advice(recommendations: Sequence[Recommendation]) -> dict[str, str]:
    """Return the recommendations by requirement, in the model's order; if there are two for one
    requirement, the first is used.
    """
    advice: dict[str, str] = {}
    for recommendation in recommendations:
        advice.setdefault(recommendation.requirement_id, recommendation.advice[:_LONGEST])
    return advice


def _clean(sentences: Sequence[str]) -> Iterator[str]:
    yield from filter(None, (" ".join(sentence.split())[:_LONGEST] for sentence in sentences))


def _make_link(place: TextPlace, documents: Mapping[str, DocumentUnits]) -> str:
    own = documents.get(place.document_id)
    name = "" if own is None else own.find_chunk(place)
    return f"#{name}" if name else ""


def _find_page(place: TextPlace, documents: Mapping[str, DocumentUnits]) -> int | None:
    own = documents.get(place.document_id)
    return None if own is None else own.pages.get(own.find_chunk(place))


def _list_classes(reads: Reads) -> dict[str, dict[str, str]]:
    """Return the five classes of each document, by document id, and the share of the document that
    was read.
    """
    classes = {
        str(classified.get("document_id")): {
            name: str(classified[name]) for name in _CLASSES if classified.get(name)
        }
        for classified in reads.classification
    }
    for classified in reads.classification:
        share = classified.get("share_read")
        if isinstance(share, float) and share < 1:
            classes[str(classified.get("document_id"))]["share_read"] = f"{share:.0%}"
    return classes
