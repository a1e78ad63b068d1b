r"""Writes the answer from the findings, with each `\cite{id}` converted to a numbered source."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from agents.agent import AgentRole, AgentTier, MayAsk, ProgressStep, ReadsLanguage
from agents.named_documents import offer_documents
from agents.review.audit import CitationAudit
from agents.review.findings import (
    Finding,
    describe_audit,
    describe_checklist,
    describe_closest,
    describe_notes,
    describe_review,
    list_errors,
)
from agents.review.passages import DocumentUnits, cut_document, name_documents
from agents.review.report_layout import name_review
from agents.review.requirements import Extraction
from agents.review.specialist import (
    NO_RESULT,
    GivenOutput,
    NoOutput,
    ReadsScope,
    SpecialistAgent,
)
from agents.review.verdicts import CollectedGaps, RankedRisks, ReviewResult, SynthesizedGap
from citations.citing import cite
from citations.links import keep_links
from citations.proof import ProofSource, SourceTexts
from citations.sources import cite_references, collect_allowed, references_of, with_addresses
from envelope.conversation import ClarificationOption, ClarificationReason
from envelope.outcome import Wrote
from envelope.role import Role
from envelope.sources import TOOL_SOURCE, SearchResult, SourceReference, SourceUsed
from envelope.specialists import (
    CitationCheck,
    ErrorSeverity,
    Extracted,
    FindingList,
    FurtherRound,
    ReportReference,
    SpecialistError,
    SpecialistName,
    StoredChecklist,
    StoredVerdicts,
    plan_further_round,
)
from envelope.tool_loop import NO_TRIAGE, Triage
from knowledge.library.library import WholeDocument
from llm.port import OFFLINE
from llm.tasks.review import (
    SYNTHESIS,
    FindingText,
    FurtherWork,
    SynthesisInputs,
    SynthesisOutput,
    SynthesisSource,
)
from tools.calls import CitedPassage
from tools.passages import cite_chunk, describe_place

_CITE = re.compile(r"\\cite\{([^{}\n]{1,1000})\}")
_MOST = 100
_LONGEST_FOCUS = 500
REVIEW = f"{TOOL_SOURCE}compliance_review"
"""The source of counts and statuses, which is the review itself."""
_REVIEW_TITLE = "review"
_MOST_SOURCES = 30
_MOST_REWRITES = 1
"""The number of answers that are written again from the same findings because parts are missing."""
_BETWEEN = "\n\n"
_LEVEL = "specialists"


@dataclass(frozen=True, slots=True)
class NumberedAnswer:
    """An answer with `[n]` instead of its citations, and the result for each citation."""

    text: str
    check: CitationCheck


class Reads(ReadsLanguage, ReadsScope, frozen=True):
    """The results and errors of all specialists."""

    canonical_question: str
    groups: tuple[str, ...] = ()
    attempt: int = 0
    quality_analysis: str = ""
    quality_decision: Literal["approve", "research", "regenerate"] = "approve"
    quality_score: float | None = None
    triage: Triage = NO_TRIAGE
    errors: tuple[SpecialistError, ...] = ()
    classification: tuple[dict[str, JsonValue], ...] = ()
    checklist: StoredChecklist | None = None
    verdicts: StoredVerdicts | None = None
    risks: FindingList | None = None
    citation_audit: FindingList | None = None
    gaps: FindingList | None = None
    review_report: ReportReference | None = None
    further_round: FurtherRound | None = None


class Writes(MayAsk, frozen=True):
    """The answer with its sources, or the question that has to be answered first."""

    response: str = ""
    sources_used: tuple[SourceUsed, ...] = ()
    source_references: tuple[SourceReference, ...] = ()
    search_context: str = ""
    search_results: tuple[SearchResult, ...] = ()
    answer_model: str = ""
    answered_by: Literal["", "model", "search"] = ""
    missing: str = ""
    citation_check: CitationCheck = CitationCheck()
    errors: tuple[SpecialistError, ...] = ()
    clarification_options: tuple[ClarificationOption, ...] = ()
    unknown_documents: tuple[str, ...] | None = None
    further_round: FurtherRound | None = None
    is_loop_over: bool = False


@dataclass(frozen=True, slots=True)
class _QuotedSource:
    """A passage that was read, with its citation."""

    citation: CitedPassage
    text: str


@dataclass(frozen=True, slots=True)
class _AnswerMaterial:
    """The findings with the ids of their sources, the sources by id in order, and the notes."""

    findings: tuple[FindingText, ...]
    sources: dict[str, _QuotedSource]
    notes: tuple[str, ...]

    def list_all(self) -> SynthesisOutput:
        """Return the findings and notes as a list, or the passages unchanged."""
        if not self.findings:
            passages = (f"{source.text} \\cite{{{name}}}" for name, source in self.sources.items())
            return SynthesisOutput(answer="\n\n".join(passages))
        noted = (FindingText(text=note, sources=(REVIEW,)) for note in self.notes)
        first, *others = (
            " ".join((finding.text, "".join(f"\\cite{{{name}}}" for name in finding.sources)))
            for finding in (*self.findings, *noted)
        )
        listed = "\n".join([first, "", *(f"- {other}" for other in others)]).strip()
        return SynthesisOutput(answer=listed)


class SynthesisAgent(SpecialistAgent[Reads, Writes]):
    """Writes the answer. Only passages that were read can be cited; a claim without one is omitted.

    If documents that the review needs are missing, the person is asked which ones are meant. If a
    rewritten answer still needs more sources, it is not written again, because its findings are all
    there is.
    """

    role = Role.SYNTHESIS
    step = ProgressStep.WRITE
    model_task = SYNTHESIS
    tier = AgentTier.ORCHESTRATOR
    agent_role = AgentRole.SYNTHESIZE
    reads = Reads
    writes = Writes

    async def examine(self, reads: Reads) -> Wrote[Writes]:
        missing = _find_missing_scope(reads)
        if missing:
            offers = await offer_documents(
                self.toolbox.library,
                reads.canonical_question,
                reads.groups,
                reads.language,
                self.run,
                reads.extracted,
            )
            return Wrote(_ask(missing).model_copy(update=offers))
        if reads.quality_decision == "research" and reads.attempt > _MOST_REWRITES:
            return Wrote(Writes(is_loop_over=True))
        silent = () if self.toolbox.is_offline else tuple(self._name_silent(reads))
        reads = reads.model_copy(update={"errors": (*reads.errors, *silent)})
        material = await self._collect(reads)
        if not material.sources:
            return Wrote(Writes(citation_check=CitationCheck(), errors=silent))
        inputs = SynthesisInputs(
            question=reads.canonical_question,
            language=reads.language,
            findings=material.findings,
            sources=tuple(
                SynthesisSource(
                    id=name,
                    place=describe_place(source.citation),
                    language=source.citation.language,
                    # Its text is that of the findings and notes.
                    text="" if name == REVIEW else source.text,
                )
                for name, source in material.sources.items()
            ),
            notes=(*material.notes, *_list_summaries(reads)),
            analysis=reads.quality_analysis,
            attempt=reads.attempt,
            may_ask_again=may_ask_again(reads),
        )
        if self.toolbox.is_offline:
            writes = _write(material.list_all(), OFFLINE, material, reads)
            by = "search" if self._is_unjudged(reads) else ""
            return Wrote(writes.model_copy(update={"answered_by": by}))
        given = await self._write(inputs, material, is_lost=reads.quality_score == 0)
        if (further := plan_further(given.output.further, reads)) is not None:
            return Wrote(Writes(further_round=further, errors=given.errors))
        if given.output.status != "answered" and not material.findings:
            return Wrote(_ask(given.output.missing, ClarificationReason.INSUFFICIENT_CONTEXT))
        writes = _write(given.output, given.decided_by, material, reads)
        if not writes.response and material.findings:
            # If the model cites nothing, the findings of the specialists are still shown.
            writes = _write(material.list_all(), given.decided_by, material, reads)
        return Wrote(writes.model_copy(update={"errors": (*silent, *given.errors)}))

    def _name_silent(self, reads: Reads) -> Iterator[SpecialistError]:
        """Yield an error for each planned specialist that left neither an output nor an error."""
        failed = {error.specialist for error in reads.errors}
        for name in find_silent(reads):
            if name not in failed:
                yield self.toolbox.make_error(NO_RESULT, specialist=name)

    def _is_unjudged(self, reads: Reads) -> bool:
        """Return whether no model has read the documents, so that the answer contains passages but
        no verdict.
        """
        judges = () if reads.verdicts is None else reads.verdicts.decided_by
        return self.toolbox.is_offline and not judges

    async def _write(
        self, inputs: SynthesisInputs, material: _AnswerMaterial, *, is_lost: bool
    ) -> GivenOutput[SynthesisOutput]:
        """Return the answer of the model or, if it gives none, a list of the findings.

        The findings are also listed if nothing of the previous answer remained after the check.
        """
        if is_lost and inputs.attempt and inputs.findings:
            text = "the answer failed the check: the findings were listed instead"
            error = self.toolbox.make_error(text, ErrorSeverity.MEDIUM)
            return GivenOutput(material.list_all(), OFFLINE, (error,))
        given = await self.toolbox.consult(SYNTHESIS, inputs)
        if isinstance(given, NoOutput):
            return GivenOutput(material.list_all(), OFFLINE, given.errors)
        return given

    async def _collect(self, reads: Reads) -> _AnswerMaterial:
        documents = await self._read(reads)
        units = {document.listed.id: cut_document(document) for document in documents}
        findings, notes = await self._describe(reads)
        noted = tuple(note.text for note in describe_notes(notes, reads.reply_language))
        sources: dict[str, _QuotedSource] = {}
        texts: list[FindingText] = []
        for finding in findings:
            names = [_find_chunk(place, units) for place in finding.places]
            own = [name for name in dict.fromkeys(names) if name]
            for name in own:
                if name not in sources and len(sources) < _MOST_SOURCES:
                    sources[name] = _find_source(name, documents)
            cited = tuple(name for name in own if name in sources)
            is_own = finding.is_verdict or not cited
            texts.append(
                FindingText(text=finding.text, sources=(*cited, REVIEW) if is_own else cited)
            )
        if findings:
            # Facts shown only by a place are cited by that place. A verdict with its reason is
            # cited as the review's: otherwise a check could not find the source of "there is no
            # such clause".
            own_texts = [text.text for text in texts if REVIEW in text.sources]
            own_texts += [*noted, *_list_summaries(reads)]
            sources[REVIEW] = _make_review_source(own_texts, reads)
        else:
            sources = {
                passage.citation.chunk_id: passage for passage in _list_passages(reads, documents)
            }
        return _AnswerMaterial(tuple(texts) if findings else (), sources, noted)

    async def _read(self, reads: Reads) -> list[WholeDocument]:
        extracted = reads.scope
        scope = [document.document_id for document in (*extracted.documents, *extracted.against)]
        names = scope if reads.checklist is not None else [*scope, *_list_found(extracted)]
        return await self.toolbox.read_documents(names, reads.groups)

    async def _describe(self, reads: Reads) -> tuple[tuple[Finding, ...], list[str]]:
        """Return the findings in the person's language, and the notes about them."""
        notes = [*reads.scope.notes]
        findings: tuple[Finding, ...] = ()
        if reads.checklist is not None:
            extraction = await self.toolbox.load(reads.checklist.reference, Extraction)
            notes += extraction.notes
            if reads.verdicts is None:
                law = reads.checklist.target_law
                findings = describe_checklist(
                    extraction,
                    law=law,
                    language=reads.reply_language,
                    read=reads.checklist.units_read,
                    unread=len(reads.checklist.units_unread),
                )
            else:
                review = await self.toolbox.load(reads.verdicts.reference, ReviewResult)
                notes += [note for note in review.notes if note not in notes]
                named = {
                    "law": reads.checklist.target_law,
                    "document": name_documents(
                        [document.title for document in reads.scope.documents]
                    ),
                    "language": reads.reply_language,
                }
                if self._is_unjudged(reads):
                    findings = describe_closest(extraction, review, **named)
                else:
                    order = await self._list_risky(reads.risks)
                    gaps = await self._list_gaps(reads.gaps)
                    findings = describe_review(extraction, review, order=order, gaps=gaps, **named)
        elif reads.citation_audit is not None and reads.citation_audit.reference:
            audit = await self.toolbox.load(reads.citation_audit.reference, CitationAudit)
            findings = describe_audit(audit, reads.reply_language)
        return findings, [*notes, *list_errors(reads.errors)]

    async def _list_risky(self, risks: FindingList | None) -> list[str]:
        if risks is None or not risks.reference:
            return []
        ranked = await self.toolbox.load(risks.reference, RankedRisks)
        return [risk.requirement_id for risk in ranked.risks]

    async def _list_gaps(self, gaps: FindingList | None) -> Sequence[SynthesizedGap]:
        if gaps is None or not gaps.reference:
            return ()
        return (await self.toolbox.load(gaps.reference, CollectedGaps)).gaps


def number_citations(answer: str, numbers: Mapping[str, int]) -> NumberedAnswer:
    """Return an answer in which citations are numbers of sources; ids without a number are
    removed.
    """
    used: dict[str, None] = {}
    invalid: dict[str, None] = {}

    def show(match: re.Match[str]) -> str:
        names = [name.strip() for name in match[1].split(",") if name.strip()]
        used.update(dict.fromkeys(name for name in names if name in numbers))
        invalid.update(dict.fromkeys(name for name in names if name not in numbers))
        return "".join(f"[{numbers[name]}]" for name in names if name in numbers)

    text = _CITE.sub(show, answer)
    check = CitationCheck(
        used_citations=tuple(used),
        invalid_citations=tuple(name[:200] for name in list(invalid)[:_MOST]),
        valid=not invalid,
    )
    return NumberedAnswer(text, check)


def find_silent(reads: "Reads") -> Iterator[SpecialistName]:
    """Yield the planned specialists without an output."""
    outputs: Mapping[SpecialistName, object] = {
        SpecialistName.EXTRACTOR: reads.extracted,
        SpecialistName.CLASSIFIER: reads.classification,
        SpecialistName.REQUIREMENT_EXTRACTOR: reads.checklist,
        SpecialistName.COMPLIANCE: reads.verdicts,
        SpecialistName.RISK_VERIFIER: reads.risks,
        SpecialistName.CITATION_AUDITOR: reads.citation_audit,
        SpecialistName.GAP_SYNTHESIZER: reads.gaps,
        SpecialistName.REPORT_GENERATOR: reads.review_report,
    }
    planned = reads.triage.agent_sequence
    yield from (name for name, output in outputs.items() if name in planned and not output)


def may_ask_again(reads: "Reads") -> bool:
    """Return whether specialists may run once more; one further round is enough for an answer."""
    return reads.further_round is None and reads.attempt == 0


def plan_further(wanted: FurtherWork | None, reads: "Reads") -> FurtherRound | None:
    """Return the round that a model requests, or None if it requests none or an impossible one."""
    name = wanted.specialist.strip().lower() if wanted is not None else ""
    is_known = name in set(SpecialistName) and name != SpecialistName.SYNTHESIS
    if wanted is None or not is_known or not may_ask_again(reads):
        return None
    names = plan_further_round(SpecialistName(name), reads.triage.agent_sequence)
    return FurtherRound(names=names, focus=wanted.focus[:_LONGEST_FOCUS])


def _find_missing_scope(reads: Reads) -> str:
    """Return what the person must specify before a review is possible, or ""."""
    planned, extracted = reads.triage.agent_sequence, reads.extracted
    if "compliance" not in planned or extracted is None or reads.verdicts is not None:
        return ""
    if extracted.documents and extracted.against:
        return ""
    return (
        "; ".join(extracted.notes)
        or "It is unclear which document is meant, and against which law."
    )


def _ask(message: str, reason: ClarificationReason = ClarificationReason.MISSING_DETAILS) -> Writes:
    return Writes(
        needs_clarification=True,
        clarification_reason=reason,
        clarification_message=message or "The passages that were found do not answer this.",
    )


def _list_summaries(reads: Reads) -> list[str]:
    """Return a summary of the other specialists' results."""
    titles = {
        document.document_id: document.title
        for document in (*reads.scope.documents, *reads.scope.against)
    }
    notes = [
        f"{titles.get(str(classified.get('document_id')), classified.get('document_id'))}: "
        f"{classified.get('document_type')}, {classified.get('domain')}, "
        f"{classified.get('sensitivity')}"
        for classified in reads.classification
    ]
    if reads.citation_audit is not None and reads.checklist is not None:
        notes += reads.citation_audit.summary
    if reads.review_report is not None:
        notes.append(f"the report is {reads.review_report.title!r}")
    return notes


def _list_found(extracted: Extracted) -> list[str]:
    return list(dict.fromkeys(passage.document_id for passage in extracted.chunks_data))


def _list_passages(reads: Reads, documents: Sequence[WholeDocument]) -> Iterable[_QuotedSource]:
    """Yield the passages selected by the extractor that still exist in their documents."""
    for passage in reads.scope.chunks_data[:_MOST_SOURCES]:
        document = next((each for each in documents if each.listed.id == passage.document_id), None)
        if document is not None:
            yield _find_source(passage.chunk_id, [document], passage.content)


def _find_chunk(place: object, units: Mapping[str, DocumentUnits]) -> str:
    own = units.get(getattr(place, "document_id", ""))
    return "" if own is None else own.find_chunk(place)  # type: ignore[arg-type] # a place


def _find_source(name: str, documents: Sequence[WholeDocument], text: str = "") -> _QuotedSource:
    for document in documents:
        for number, chunk in enumerate(document.chunks):
            if chunk.chunk.chunk_id == name:
                return _QuotedSource(cite_chunk(document, number), text or chunk.chunk.text)
    document = documents[0]
    return _QuotedSource(
        CitedPassage(chunk_id=name, document_id=document.listed.id, title=document.listed.title),
        text,
    )


def _make_review_source(texts: Iterable[str], reads: Reads) -> _QuotedSource:
    """Return the review as the source of counts, statuses, and notes, with the title of its
    report.
    """
    title = _REVIEW_TITLE
    if reads.checklist is not None and reads.extracted is not None:
        document = name_documents(
            [reviewed_document.title for reviewed_document in reads.extracted.documents]
        )
        title = name_review(document, reads.checklist.target_law, reads.reply_language)
    citation = CitedPassage(chunk_id=REVIEW, document_id=REVIEW, title=title)
    return _QuotedSource(citation, "\n".join(texts))


def _write(output: SynthesisOutput, model: str, material: _AnswerMaterial, reads: Reads) -> Writes:
    """Return the answer with only those claims that have a source, and with links to these
    sources.
    """
    numbers = {name: number for number, name in enumerate(material.sources, start=1)}
    answer = number_citations(output.answer, numbers)
    context, references = _lay_out(material.sources)
    sources = (
        ProofSource(
            source_reference.number,
            context[slice(*source_reference.span)],
            (source_reference.title,),
        )
        for source_reference in references
    )
    safe = keep_links(answer.text, collect_allowed(references, context))
    kept = cite(safe.text, SourceTexts(sources))
    if not kept.order:
        return Writes(citation_check=answer.check, answer_model=model)
    used = cite_references(kept.order, references)
    return Writes(
        response=kept.text,
        sources_used=with_addresses(used, references_of(used, references), context, kept.text),
        source_references=references,
        search_context=context,
        search_results=tuple(
            _make_result(source, reference)
            for (name, source), reference in zip(material.sources.items(), references, strict=True)
            if name != REVIEW
        ),
        answer_model=model,
        missing=output.missing,
        citation_check=answer.check,
    )


def _lay_out(sources: Mapping[str, _QuotedSource]) -> tuple[str, tuple[SourceReference, ...]]:
    """Return the texts of the sources as one text, and the location of each source in it."""
    references = []
    start = 0
    for number, source in enumerate(sources.values(), start=1):
        span = (start, start + len(source.text))
        start = span[1] + len(_BETWEEN)
        fields = source.citation.model_dump(exclude={"document_id", "score"})
        references.append(SourceReference(number=number, span=span, **fields))
    return _BETWEEN.join(source.text for source in sources.values()), tuple(references)


def _make_result(source: _QuotedSource, reference: SourceReference) -> SearchResult:
    fields = source.citation.model_dump()
    return SearchResult.model_validate({**fields, "levels": (_LEVEL,), "span": reference.span})
