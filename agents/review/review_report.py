"""The report of a review as values: every finding with quotations from both sides, and their
locations.

These values are returned by `--report FILE.json` and the HTTP interface, and printed by
`agents.review.report_layout`. All texts are already safe, and links lead to passages of the
documents.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from pydantic import BaseModel, TypeAdapter, ValidationError

from agents.review.audit import CitationAudit
from agents.review.requirements import Extraction, ReportFormatError, Requirement, TextPlace
from agents.review.verdicts import (
    ReviewResult,
    Risk,
    RuleVerdict,
    Status,
    SynthesizedGap,
    VerdictEvidence,
)
from citations.addresses import find_addresses
from citations.links import clean_text, plain_line
from citations.printed_report import PrintedReport
from citations.verbatim import show_literal
from envelope.specialists import ReviewedDocument

_BROKEN = str.maketrans({".": "[.]", ":": "[:]", "@": "[@]"})
LinkMaker = Callable[[TextPlace], str]
"""Returns the URL of a location in our own reader, or an empty string."""
PageFinder = Callable[[TextPlace], int | None]
"""Returns the page of a location in its file, or None if the file has no pages."""
_PRINTED = TypeAdapter(PrintedReport)
_OBJECT = TypeAdapter(dict[str, object])
_PARTS = "parts"
"""An attribute that exists only in reports of earlier versions, which were stored as printed."""


class QuotedPlace(BaseModel, frozen=True):
    """A quotation from a document and its location; `page` is the 1-based page of the file."""

    document_id: str
    document: str
    file: str = ""
    heading: str = ""
    page: int | None = None
    words: str = ""
    link: str = ""


class ReportedRisk(BaseModel, frozen=True):
    """The risk of a finding; severity and likelihood are from 1 to 5, and the score is from 1 to
    25.
    """

    category: str
    severity: int
    likelihood: int
    score: int
    reason: str
    mitigation: str


class ReportedRequirement(BaseModel, frozen=True):
    """A requirement with its verdict; requirements are numbered from 1 by `number`.

    `evidence` contains the text of the document on which the verdict is based; if there is none,
    `closest` contains the passages that a search found. `urgency` is the rank of its recommendation
    in the model's order, with 1 for the most urgent.
    """

    number: int
    id: str
    kind: str
    severity: str
    addressee: str = ""
    applicability: str = ""
    requirement: str
    law: QuotedPlace
    status: str
    confidence: float | None = None
    reason: str = ""
    evidence: tuple[QuotedPlace, ...] = ()
    closest: tuple[QuotedPlace, ...] = ()
    comparisons: tuple[str, ...] = ()
    recommendation: str = ""
    urgency: int | None = None
    risk: ReportedRisk | None = None


class ReportedGap(BaseModel, frozen=True):
    """A gap that is not a single requirement, such as a contradiction within the document."""

    kind: str
    summary: str
    requirements: tuple[str, ...] = ()
    places: tuple[QuotedPlace, ...] = ()


class ReportedCitation(BaseModel, frozen=True):
    """A citation that was audited, with its problems."""

    label: str
    claim: str
    place: str = ""
    says: str = "unjudged"
    problems: tuple[str, ...] = ()


class ReportedDocument(BaseModel, frozen=True):
    """A document in the review: `role` is `document` or `law`; its classes, if any, come from a
    model.
    """

    role: str
    id: str
    title: str
    file: str = ""
    language: str = ""
    units: int = 0
    classes: dict[str, str] = {}


class UnitWithoutDuty(BaseModel, frozen=True):
    """A unit of a law that has no requirements, with the reason."""

    heading: str
    reason: str


class SectionState(StrEnum):
    """The state of a section of a report, because an empty section alone is not a finding.

    `nothing` means that the specialist ran and had nothing to report.
    """

    RESULT = "result"
    INCOMPLETE = "incomplete"
    NOTHING = "nothing"
    NOT_REQUESTED = "not_requested"
    FAILED = "failed"
    NOT_JUDGED = "not_judged"


class ReportedSection(BaseModel, frozen=True):
    """The state of a section, the specialist that produces it, and why it failed or is
    incomplete.
    """

    state: SectionState
    specialist: str
    reason: str = ""


class ReviewReport(BaseModel, frozen=True):
    """All results of a review. `is_judged` is false if no model is in use.

    `confidence` is the mean of the model's confidence in its verdicts, from 0 to 1, or None if it
    was not measured. `sections` states for each part of the review whether it was carried out; it
    is empty in reports of earlier versions.
    """

    title: str
    language: str
    is_judged: bool
    law: str
    document: str
    made_on: str = ""
    judges: tuple[str, ...] = ()
    documents: tuple[ReportedDocument, ...] = ()
    counts: dict[str, int] = {}
    confidence: float | None = None
    summary: tuple[str, ...] = ()
    requirements: tuple[ReportedRequirement, ...] = ()
    definitions: tuple[str, ...] = ()
    gaps: tuple[ReportedGap, ...] = ()
    citations: tuple[ReportedCitation, ...] = ()
    units: int = 0
    units_without: tuple[UnitWithoutDuty, ...] = ()
    units_unread: tuple[str, ...] = ()
    passages: int = 0
    notes: tuple[str, ...] = ()
    sections: dict[str, ReportedSection] = {}

    @property
    def findings(self) -> tuple[ReportedRequirement, ...]:
        """The violations, followed by the gaps, each sorted by risk."""
        return tuple(
            requirement
            for status in (Status.VIOLATION, Status.GAP)
            for requirement in sorted(
                (each for each in self.requirements if each.status == status.value), key=_rank
            )
        )

    @property
    def undecided(self) -> tuple[ReportedRequirement, ...]:
        """The requirements without a verdict."""
        return tuple(
            requirement
            for requirement in self.requirements
            if requirement.status == Status.UNDECIDED.value
        )


@dataclass(frozen=True, slots=True)
class ReportInputs:
    """The inputs from which a report is composed; `recommendations` are ordered by urgency.

    `judges` contains the models that made the decisions; without a model, `is_judged` is false.
    `headings` contains the headings of units, by unit id, and `unit_texts` the texts by document
    and unit.
    """

    title: str
    law: str
    document: str
    documents: Sequence[ReviewedDocument]
    against: Sequence[ReviewedDocument]
    extraction: Extraction
    review: ReviewResult
    risks: Sequence[Risk] = ()
    gaps: Sequence[SynthesizedGap] = ()
    audit: CitationAudit | None = None
    classes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    summary: Sequence[str] = ()
    recommendations: Mapping[str, str] = field(default_factory=dict)
    headings: Mapping[str, str] = field(default_factory=dict)
    unit_texts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    units_unread: Sequence[str] = ()
    notes: Sequence[str] = ()
    made_on: date | None = None
    judges: Sequence[str] = ()
    is_judged: bool = True
    sections: Mapping[str, ReportedSection] = field(default_factory=dict)
    confidence: float | None = None


class _Composer:
    def __init__(self, inputs: ReportInputs, link: LinkMaker, find_page: PageFinder) -> None:
        self._inputs = inputs
        self._link = link
        self._find_page = find_page
        self._documents = {
            document.document_id: document for document in (*inputs.documents, *inputs.against)
        }
        self._risks = {risk.requirement_id: risk for risk in inputs.risks}
        self._urgency = {name: rank for rank, name in enumerate(inputs.recommendations, start=1)}

    def list_requirements(self) -> Iterator[ReportedRequirement]:
        verdicts = {verdict.requirement_id: verdict for verdict in self._inputs.review.verdicts}
        for number, rule in enumerate(self._inputs.extraction.rules, start=1):
            undecided = RuleVerdict(requirement_id=rule.id, status=Status.UNDECIDED)
            yield self._report(number, rule, verdicts.get(rule.id, undecided))

    def list_documents(self) -> Iterator[ReportedDocument]:
        for role, documents in (
            ("document", self._inputs.documents), ("law", self._inputs.against),
        ):  # fmt: skip
            for document in documents:
                classes = self._inputs.classes.get(document.document_id, {})
                yield ReportedDocument(
                    role=role,
                    id=document.document_id,
                    title=clean_words(document.title),
                    file=clean_words(document.source),
                    language=document.language,
                    units=document.units,
                    classes={name: clean_words(value) for name, value in classes.items()},
                )

    def list_gaps(self) -> Iterator[ReportedGap]:
        for gap in self._inputs.gaps:
            if gap.kind != "regulatory":
                yield ReportedGap(
                    kind=gap.kind,
                    summary=clean_words(gap.summary),
                    requirements=gap.requirement_ids,
                    places=tuple(self.point_to(place, self._read(place)) for place in gap.places),
                )

    def list_citations(self) -> Iterator[ReportedCitation]:
        for citation in () if self._inputs.audit is None else self._inputs.audit.citations:
            yield ReportedCitation(
                label=clean_words(citation.label),
                claim=clean_quotation(citation.claim),
                place=clean_words(citation.place),
                says=citation.says,
                problems=tuple(map(clean_words, citation.problems)),
            )

    def _read(self, place: TextPlace) -> str:
        """Return the text at a location, or an empty string if its unit is not available."""
        whole = self._inputs.unit_texts.get((place.document_id, place.unit_id), "")
        return whole[place.start : place.end]

    def point_to(self, place: TextPlace, words: str = "") -> QuotedPlace:
        own = self._documents.get(place.document_id)
        title = "" if own is None else clean_words(own.title)
        heading = " > ".join(map(clean_words, place.heading_path))
        return QuotedPlace(
            document_id=place.document_id,
            document=title,
            file="" if own is None else clean_words(own.source),
            heading=heading.removeprefix(f"{title} > ") if title else heading,
            page=self._find_page(place),
            words=clean_quotation(words),
            link=self._link(place),
        )

    def _report(
        self, number: int, requirement: Requirement, verdict: RuleVerdict
    ) -> ReportedRequirement:
        risk = self._risks.get(requirement.id)
        return ReportedRequirement(
            number=number,
            id=requirement.id,
            kind=requirement.kind.value,
            severity=requirement.severity,
            addressee=clean_words(requirement.addressee),
            applicability=clean_words(requirement.condition),
            requirement=clean_quotation(requirement.statement),
            law=self.point_to(requirement.place, requirement.quotation),
            status=verdict.status.value,
            confidence=verdict.confidence,
            reason=clean_words(verdict.note),
            evidence=tuple(self._quote(verdict.evidence)),
            closest=tuple(self._quote(verdict.closest)),
            comparisons=tuple(map(clean_quotation, verdict.comparisons)),
            recommendation=clean_words(self._inputs.recommendations.get(requirement.id, "")),
            urgency=self._urgency.get(requirement.id),
            risk=None if risk is None else _convert(risk),
        )

    def _quote(self, evidence: Iterable[VerdictEvidence]) -> Iterator[QuotedPlace]:
        for verdict_evidence in evidence:
            yield self.point_to(verdict_evidence.place, verdict_evidence.text)


def clean_words(text: str) -> str:
    """Return text from a model, or a title, on one line, without links and addresses."""
    return break_addresses(plain_line(text))


def clean_quotation(text: str) -> str:
    """Return text from a document on one line, as a person saw it; its addresses stay readable,
    but cannot be followed.
    """
    return break_addresses(" ".join(clean_text(show_literal(text)).split()))


def break_addresses(text: str) -> str:
    """Return the text with defanged addresses (`example[.]com`), so that viewers do not turn them
    into links.
    """
    parts, end = [], 0
    for address in find_addresses(text):
        parts += [text[end : address.start], address.text.translate(_BROKEN)]
        end = address.end
    return "".join((*parts, text[end:])) if parts else text


def compose_report(
    inputs: ReportInputs, *, language: str, link: LinkMaker, find_page: PageFinder
) -> ReviewReport:
    """Return the report; every text in it is safe."""
    composer = _Composer(inputs, link, find_page)
    extraction, review = inputs.extraction, inputs.review
    requirements = tuple(composer.list_requirements())
    return ReviewReport(
        title=clean_words(inputs.title),
        language=language,
        is_judged=inputs.is_judged,
        law=clean_words(inputs.law),
        document=clean_words(inputs.document),
        made_on="" if inputs.made_on is None else inputs.made_on.isoformat(),
        judges=tuple(inputs.judges),
        documents=tuple(composer.list_documents()),
        counts={
            "requirements": len(requirements),
            **{
                name: len(review.of_status(status))
                for name, status in (
                    ("compliant", Status.COMPLIANT),
                    ("violations", Status.VIOLATION),
                    ("gaps", Status.GAP),
                    ("undecided", Status.UNDECIDED),
                )
            },
        },
        confidence=inputs.confidence,
        summary=tuple(map(clean_words, inputs.summary)),
        requirements=requirements,
        definitions=tuple(
            clean_quotation(requirement.statement)
            for requirement in extraction.requirements
            if requirement.is_definition
        ),
        gaps=tuple(composer.list_gaps()),
        citations=tuple(composer.list_citations()),
        units=len(extraction.units),
        units_without=tuple(
            UnitWithoutDuty(
                heading=clean_words(inputs.headings.get(unit.unit_id, "")),
                reason=clean_words(unit.reason),
            )
            for unit in extraction.units
            if not unit.requirement_ids
        ),
        units_unread=tuple(
            clean_words(inputs.headings.get(name, name)) for name in inputs.units_unread
        ),
        passages=review.passages,
        notes=tuple(dict.fromkeys(map(clean_words, inputs.notes))),
        sections={
            name: section.model_copy(update={"reason": clean_words(section.reason)})
            for name, section in inputs.sections.items()
        },
    )


def encode_report(report: ReviewReport) -> bytes:
    """Return a report as JSON."""
    return report.model_dump_json().encode()


def decode_report(value: bytes | str | Mapping[str, object]) -> ReviewReport | PrintedReport:
    """Return the report in a JSON text or object; raises `ReportFormatError`.

    A report that an earlier version stored in its printed form is returned as a `PrintedReport`.
    """
    try:
        report = value if isinstance(value, Mapping) else _OBJECT.validate_json(value)
        if _PARTS in report:
            return _PRINTED.validate_python(report)
        return ReviewReport.model_validate(report)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "a report"
        raise ReportFormatError(f"expected {where} of a report: {first['msg']}") from None


def _convert(risk: Risk) -> ReportedRisk:
    return ReportedRisk(
        category=risk.category.value,
        severity=risk.severity,
        likelihood=risk.likelihood,
        score=risk.score,
        reason=clean_words(risk.reason),
        mitigation=clean_words(risk.mitigation),
    )


def _rank(requirement: ReportedRequirement) -> tuple[int, int]:
    return -(0 if requirement.risk is None else requirement.risk.score), requirement.number
