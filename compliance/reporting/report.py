"""Composes the report of a review: seven parts of paragraphs, lists and tables.

1 executive summary, 2 findings, 3 compliance matrix, 4 risk summary, 5 citations,
6 recommendations, 7 appendix. Renderers turn the same report into Markdown, HTML and PDF.
"""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path

from compliance.assessment.document_kind import DocumentClassification
from compliance.assessment.gaps import SynthesizedGap
from compliance.assessment.risk import Risk
from compliance.auditing.citation_audit import CitationAudit
from compliance.requirements.requirement import Extraction, Requirement, TextPlace
from compliance.verdicts.review import ReviewResult
from compliance.verdicts.verdict import Status, Verdict
from compliance.wording.cues import RuleKind
from compliance.wording.fixed_notes import translate_note

UNDECIDED = "UNDECIDED"
"""In the place of a status: the specialists could not decide."""
_FILE = Path(__file__).with_name("report_texts.toml")
_LONGEST = 600
_MOST_PLACES = 6
LinkMaker = Callable[[TextPlace], str]
"""Returns the address of a place in our own reader, or an empty text."""


@dataclass(frozen=True, slots=True)
class ReportText:
    """A piece of text; `link` leads to its place, empty: nowhere.

    `is_detail`: as an item of a part, it belongs to the item before.
    """

    text: str
    link: str = ""
    is_detail: bool = False


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table; the first row is the header."""

    rows: tuple[tuple[ReportText, ...], ...]


@dataclass(frozen=True, slots=True)
class ReportPart:
    """A part with its heading; paragraphs come first, then items, then the table."""

    heading: str
    paragraphs: tuple[ReportText, ...] = ()
    items: tuple[ReportText, ...] = ()
    table: ReportTable | None = None


@dataclass(frozen=True, slots=True)
class ReviewReport:
    """A report of seven parts."""

    title: str
    language: str
    parts: tuple[ReportPart, ...]


@dataclass(frozen=True, slots=True)
class ReportInputs:
    """All that a report is composed of; names are those of the law and the document.

    `judges` are the models that decided; `offline` are the rules.
    """

    law: str
    document: str
    extraction: Extraction
    review: ReviewResult
    risks: Sequence[Risk] = ()
    gaps: Sequence[SynthesizedGap] = ()
    audit: CitationAudit | None = None
    classification: DocumentClassification | None = None
    passages: int = 0
    made_on: date | None = None
    judges: Sequence[str] = ("offline",)
    metadata: Mapping[str, str] = field(default_factory=dict)


def _link_nowhere(place: TextPlace) -> str:
    return ""


def compose_report(
    inputs: ReportInputs, *, language: str = "en", link: LinkMaker = _link_nowhere
) -> ReviewReport:
    """Return the report in a language; English where a language has no texts."""
    composer = _ReportComposer(inputs, language if language in _load() else "en", link)
    return ReviewReport(
        title=composer.say("title", document=inputs.document, law=inputs.law),
        language=composer.language,
        parts=(
            composer.compose_summary(),
            composer.compose_findings(),
            composer.compose_matrix(),
            composer.compose_risks(),
            composer.compose_citations(),
            composer.compose_recommendations(),
            composer.compose_appendix(),
        ),
    )


class _ReportComposer:
    def __init__(self, inputs: ReportInputs, language: str, link: LinkMaker) -> None:
        self._inputs = inputs
        self.language = language
        self._texts = load_texts(language)
        self._link = link
        self._requirements = {one.id: one for one in inputs.extraction.requirements}
        decided = {one.requirement_id for one in inputs.review.verdicts}
        self._undecided = [
            one
            for one in inputs.extraction.requirements
            if one.id not in decided and one.kind is not RuleKind.DEFINITION
        ]

    def say(self, key: str, **names: object) -> str:
        return self._texts[key].format(**{name: _shorten(str(one)) for name, one in names.items()})

    def _name(self, group: str, value: str) -> str:
        """Return the name of a category, a kind or a type; a value without a name as it is."""
        return self._texts.get(f"{group}_{value.lower()}", value)

    def _translate(self, note: str) -> str:
        return translate_note(note, self.language)

    def compose_summary(self) -> ReportPart:
        review = self._inputs.review
        compliant = sum(one.status is Status.COMPLIANT for one in review.verdicts)
        counts = self.say(
            "counts",
            total=len(review.verdicts) + len(self._undecided),
            compliant=compliant,
            violations=len(review.violations),
            gaps=len(review.gaps),
        )
        lines = [counts]
        for risk in self._inputs.risks[:1]:
            category = self._name("category", risk.category.value)
            shown = self.say(
                "greatest", id=risk.requirement_id, category=category, score=risk.score
            )
            lines.append(shown)
        models = ", ".join(one for one in self._inputs.judges if one != "offline")
        lines.append(self.say("by_models", models=models) if models else self.say("nobody"))
        notes = (*self._inputs.extraction.notes, *review.notes)
        return ReportPart(
            self.say("summary"),
            tuple(map(ReportText, lines)),
            tuple(ReportText(f"{self.say('notes')}: {self._translate(one)}") for one in notes),
        )

    def compose_findings(self) -> ReportPart:
        verdicts = (*self._inputs.review.violations, *self._inputs.review.gaps)
        items = tuple(one for verdict in verdicts for one in self._describe(verdict))
        others = tuple(
            ReportText(
                f"{self.say('other_gaps')} ({self._name('gap', gap.kind)}): "
                f"{_shorten(self._translate(gap.summary))}"
            )
            for gap in self._inputs.gaps
            if gap.kind != "regulatory"
        )
        nothing = () if verdicts or self._undecided else (ReportText(self.say("no_findings")),)
        return ReportPart(self.say("findings"), nothing, items + others)

    def compose_matrix(self) -> ReportPart:
        heads = ("id", "requirement", "status", "confidence", "place")
        rows = [tuple(ReportText(self.say(head)) for head in heads)]
        for verdict in self._inputs.review.verdicts:
            requirement = self._requirements.get(verdict.requirement_id)
            read = verdict.evidence[0].place if verdict.evidence else None
            rows.append(
                (
                    ReportText(verdict.requirement_id),
                    self._quote(requirement),
                    ReportText(verdict.status.value),
                    ReportText(f"{verdict.confidence:.2f}"),
                    ReportText("-") if read is None else self._point_to(read),
                )
            )
        rows += [
            (
                ReportText(one.id),
                self._quote(one),
                ReportText(UNDECIDED),
                ReportText("-"),
                ReportText("-"),
            )
            for one in self._undecided
        ]
        return ReportPart(self.say("matrix"), table=ReportTable(tuple(rows)))

    def compose_risks(self) -> ReportPart:
        if not self._inputs.risks:
            return ReportPart(self.say("risks"), (ReportText(self.say("no_risks")),))
        heads = ("id", "category", "severity", "likelihood", "score")
        rows = [tuple(ReportText(self.say(head)) for head in heads)]
        for risk in self._inputs.risks:
            values = (
                risk.requirement_id,
                self._name("category", risk.category.value),
                str(risk.severity),
                str(risk.likelihood),
                str(risk.score),
            )
            rows.append(tuple(map(ReportText, values)))
        return ReportPart(self.say("risks"), table=ReportTable(tuple(rows)))

    def compose_citations(self) -> ReportPart:
        audit = self._inputs.audit
        if audit is None:
            places = dict.fromkeys(
                one.place for verdict in self._inputs.review.verdicts for one in verdict.evidence
            )
            return ReportPart(
                self.say("citations"),
                (ReportText(self.say("no_citations")),),
                tuple(map(self._point_to, places)),
            )
        good = sum(one.is_good for one in audit.citations)
        return ReportPart(
            self.say("citations"),
            (ReportText(self.say("citation_counts", good=good, total=len(audit.citations))),),
            tuple(
                ReportText(
                    _shorten(
                        f"{one.label} {one.claim}: {'; '.join(map(self._translate, one.problems))}"
                    )
                )
                for one in audit.citations
                if not one.is_good
            ),
        )

    def compose_recommendations(self) -> ReportPart:
        items = tuple(
            ReportText(
                self.say(
                    "recommendation",
                    id=one.requirement_id,
                    mitigation=self._translate(one.mitigation).rstrip("."),
                    reason=self._translate(one.reason).rstrip("."),
                )
            )
            for one in self._inputs.risks
        )
        nothing = () if items else (ReportText(self.say("no_recommendations")),)
        return ReportPart(self.say("recommendations"), nothing, items)

    def compose_appendix(self) -> ReportPart:
        inputs = self._inputs
        without = sum(not one.requirement_ids for one in inputs.extraction.units)
        facts = {
            self.say("law"): inputs.law,
            self.say("document"): inputs.document,
            self.say("units"): str(len(inputs.extraction.units)),
            self.say("without"): str(without),
            self.say("passages"): str(inputs.passages),
            **dict(inputs.metadata),
        }
        definitions = [
            one.id for one in inputs.extraction.requirements if one.kind is RuleKind.DEFINITION
        ]
        if definitions:
            facts[self.say("definitions")] = ", ".join(definitions)
        if inputs.classification is not None:
            found = inputs.classification.document_type.value
            facts[self.say("kind")] = self._name("type", found)
        if inputs.made_on is not None:
            facts[self.say("made")] = inputs.made_on.isoformat()
        items = tuple(ReportText(f"{name}: {_shorten(value)}") for name, value in facts.items())
        return ReportPart(self.say("appendix"), (), items)

    def _describe(self, verdict: Verdict) -> Iterator[ReportText]:
        requirement = self._requirements.get(verdict.requirement_id)
        key = "violation" if verdict.status is Status.VIOLATION else "gap"
        quoted = self._quote(requirement)
        shown = self.say(key, id=verdict.requirement_id, requirement=quoted.text)
        yield ReportText(shown, quoted.link)
        if verdict.note:
            reason = self._translate(verdict.note)
            yield ReportText(self.say("reason", reason=reason), is_detail=True)
        for one in verdict.evidence:
            place = name_place(one.place)
            shown = self.say("read", text=one.text, place=place)
            yield ReportText(shown, self._link(one.place), is_detail=True)
        if verdict.searched:
            places = dict.fromkeys(map(name_place, verdict.searched))
            names = "; ".join(list(places)[:_MOST_PLACES])
            yield ReportText(self.say("searched", places=names), is_detail=True)

    def _quote(self, requirement: Requirement | None) -> ReportText:
        if requirement is None:
            return ReportText("-")
        return ReportText(_shorten(requirement.statement), self._link(requirement.place))

    def _point_to(self, place: TextPlace) -> ReportText:
        return ReportText(name_place(place), self._link(place))


def name_place(place: TextPlace) -> str:
    """Return a place for people: the headings, or the unit's id."""
    return " > ".join(place.heading_path) or place.unit_id


def load_texts(language: str) -> Mapping[str, str]:
    """Return the fixed texts of a language, or the English ones."""
    tables = _load()
    return tables.get(language, tables["en"])


def list_texts(part: ReportPart) -> Iterable[ReportText]:
    """Return all texts of a part in order."""
    rows = () if part.table is None else part.table.rows
    return (*part.paragraphs, *part.items, *(cell for row in rows for cell in row))


def _shorten(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"


@cache
def _load() -> Mapping[str, Mapping[str, str]]:
    tables: dict[str, dict[str, str]] = tomllib.loads(_FILE.read_text("utf-8"))
    return tables
