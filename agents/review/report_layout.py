"""Lays out a report in a language, as seven parts of paragraphs, lists, and tables.

1 executive summary, 2 findings, 3 compliance matrix, 4 risk summary, 5 citations, 6
recommendations, 7 appendix. Renderers convert the result to Markdown, HTML, PDF, and DOCX.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from agents.review.findings import translate_note
from agents.review.names import shorten_line
from agents.review.requirements import load_tables
from agents.review.review_report import (
    QuotedPlace,
    ReportedRequirement,
    ReviewReport,
    SectionState,
)
from citations.printed_report import PrintedReport, ReportPart, ReportTable, ReportText
from citations.verbatim import cut_text
from envelope.texts import put_in_quotes

_ONE_WORD = re.compile(r"[^\W\d_]{1,40}")
_LONGEST_CELL = 700
_NOTHING = ReportText("–")
_MATRIX_SHARES = (0.06, 0.37, 0.14, 0.43)
_CLOSEST_SHARES = (0.06, 0.4, 0.54)
_RISK_SHARES = (0.06, 0.16, 0.11, 0.12, 0.08, 0.47)


class _Layout:
    def __init__(self, report: ReviewReport) -> None:
        self._report = report
        self._texts = load_texts(report.language)

    def say(self, key: str, **names: object) -> str:
        return self._texts[key].format(**names)

    def _name(self, group: str, value: str) -> str:
        """Return the name of a category, kind, or class; a value without a name is returned
        unchanged.
        """
        return self._texts.get(f"{group}_{value.lower().replace(' ', '_')}", value)

    def _name_place(self, place: QuotedPlace) -> str:
        """Return a human-readable location: title, headings, page, and file."""
        page = "" if place.page is None else self.say("page", number=place.page)
        where = ", ".join(filter(None, (place.document, place.heading, page)))
        return f"{where} [{place.file}]" if place.file else where

    def _print_share(self, value: float) -> str:
        return f"{value:.2f}".replace(".", self.say("decimal_mark"))

    def print_summary(self) -> ReportPart:
        report = self._report
        if not report.is_judged:
            lines = [self.say("no_model_counts", **report.counts)]
        else:
            # Without any verdict, zero violations would read like a result.
            has_verdicts = len(report.undecided) < len(report.requirements)
            counts = self.say("counts", **report.counts)
            lines = [*self._list_states(), *([counts] if has_verdicts else []), *report.summary]
            if has_verdicts:
                lines.append(self._print_confidence())
                lines.append(self.say("by_models", models=", ".join(report.judges)))
        return ReportPart(
            self.say("summary"),
            tuple(map(ReportText, lines)),
            tuple(ReportText(number) for number in self._list_unjudged()),
        )

    def _print_confidence(self) -> str:
        """Return the overall confidence of the verdicts, or a statement that it was not
        measured.
        """
        value = self._report.confidence
        if value is None:
            return self.say("overall_unmeasured")
        measured = sum(
            requirement.confidence is not None for requirement in self._report.requirements
        )
        return self.say("overall_confidence", value=self._print_share(value), count=measured)

    def _describe_kind(self, requirement: ReportedRequirement) -> str:
        """Return whether a requirement is mandatory, who must act, and when it applies.

        The result is empty for a whole unit of a law that no model has read.
        """
        named = {"addressee": requirement.addressee, "condition": requirement.applicability}
        is_read = requirement.severity != "unjudged"
        parts = [self._name("severity", requirement.severity)] if is_read else []
        parts += [f"{self.say(key)}: {value}" for key, value in named.items() if value]
        return "; ".join(parts)

    def _list_states(self) -> Iterator[str]:
        """Yield the line that states for each section whether it was completed."""
        states = (
            f"{self.say(f'section_{name}')}: {self.say(f'state_{section.state.value}')}"
            for name, section in self._report.sections.items()
        )
        if shown := "; ".join(states):
            yield self.say("sections", states=shown)

    def _explain(self, name: str, *, has_items: bool = False) -> list[ReportText]:
        """Return why a section is empty or incomplete, or an empty list for a complete one.

        `has_items` is true if it contains entries from another specialist.
        """
        if not self._report.is_judged:
            return [ReportText(self.say("nobody_judged"))]
        section = self._report.sections.get(name)
        state = SectionState.NOTHING if section is None else section.state
        if section is None or state is SectionState.NOTHING:
            lines = [self.say(f"no_{name}")]
            if name != "citations" and (undecided := len(self._report.undecided)):
                lines.append(self.say("unknown", undecided=undecided))
            return list(map(ReportText, lines))
        if state is SectionState.RESULT:
            return []
        reason = self._translate(section.reason)
        if has_items and state is SectionState.FAILED:
            state = SectionState.INCOMPLETE
        shown = self.say(f"explain_{state.value}", specialist=section.specialist, reason=reason)
        return [ReportText(shown)]

    def _list_unjudged(self) -> Iterator[str]:
        """Yield everything that was not judged, with the reasons."""
        if self._report.is_judged:
            by_reason: dict[str, list[ReportedRequirement]] = {}
            for requirement in self._report.undecided:
                by_reason.setdefault(self._translate(requirement.reason), []).append(requirement)
            for reason, own in by_reason.items():
                numbers = ", ".join(str(requirement.number) for requirement in own)
                places = "; ".join(
                    dict.fromkeys(self._name_place(requirement.law) for requirement in own)
                )
                yield self.say("not_judged", number=numbers, place=places, reason=reason)
        for heading in self._report.units_unread:
            yield self.say("not_read", place=heading)
        for note in self._report.notes:
            yield f"{self.say('note')}: {self._translate(note)}"

    def print_findings(self) -> ReportPart:
        report = self._report
        items = [text for finding in report.findings for text in self._print_finding(finding)]
        for gap in report.gaps:
            items.append(ReportText(f"{self._name('gap', gap.kind)}: {gap.summary}"))
            items += [self._cite_gap(place) for place in gap.places]
        lines = self._explain("findings") if not items or report.undecided else []
        if report.is_judged and "gaps" in report.sections:
            lines += self._explain("gaps")
        return ReportPart(self.say("findings"), tuple(dict.fromkeys(lines)), tuple(items))

    def _is_lacking(self, name: str) -> bool:
        """Return whether a section is missing or incomplete."""
        section = self._report.sections.get(name)
        return section is not None and section.state not in (
            SectionState.RESULT,
            SectionState.NOTHING,
        )

    def _print_finding(self, requirement: ReportedRequirement) -> Iterator[ReportText]:
        status = self._name("status", requirement.status)
        yield ReportText(
            self.say(
                "finding",
                number=requirement.number,
                status=status,
                requirement=requirement.requirement,
            )
        )
        if kind := self._describe_kind(requirement):
            yield ReportText(kind, is_detail=True)
        yield self._cite("law_says", requirement.law)
        for read in requirement.evidence:
            yield self._cite("document_says", read)
        if not requirement.evidence:
            closest = "; ".join(dict.fromkeys(map(self._name_place, requirement.closest))) or "–"
            yield ReportText(self.say("nothing_found", places=closest), is_detail=True)
        if requirement.reason:
            yield ReportText(self.say("reason", reason=requirement.reason), is_detail=True)
        for line in requirement.comparisons:
            yield ReportText(self.say("numbers", line=self._translate(line)), is_detail=True)
        if requirement.confidence is not None:
            shown = self.say("confidence_is", value=self._print_share(requirement.confidence))
            yield ReportText(shown, is_detail=True)

    def _cite_gap(self, place: QuotedPlace) -> ReportText:
        shown = put_in_quotes(place.words, self._report.language) if place.words else ""
        return ReportText(shown, place.link, is_detail=True, place=self._name_place(place))

    def _cite(self, key: str, place: QuotedPlace) -> ReportText:
        shown = self.say(key, words=place.words)
        return ReportText(shown, place.link, is_detail=True, place=self._name_place(place))

    def print_matrix(self) -> ReportPart:
        if not self._report.is_judged:
            return self._print_closest()
        heads = ("number", "law", "status", "document")
        rows = [tuple(ReportText(self.say(head)) for head in heads)]
        for requirement in self._report.requirements:
            status = self._name("status", requirement.status)
            kind = self._describe_kind(requirement)
            confidence = (
                "" if requirement.confidence is None else self._print_share(requirement.confidence)
            )
            rows.append(
                (
                    ReportText(str(requirement.number)),
                    self._quote(requirement.law, *([ReportText(kind)] if kind else [])),
                    ReportText(status, more=(ReportText(confidence),) if confidence else ()),
                    _stack(map(self._quote, requirement.evidence)),
                )
            )
        return ReportPart(
            self.say("matrix"),
            (ReportText(self.say("matrix_scale")),),
            table=ReportTable(tuple(rows), _MATRIX_SHARES),
        )

    def _print_closest(self) -> ReportPart:
        """Return each unit of the law, in order, with the passages closest to it."""
        heads = ("number", "law", "closest")
        rows = [tuple(ReportText(self.say(head)) for head in heads)]
        languages = {document.id: document.language for document in self._report.documents}
        for requirement in self._report.requirements:
            law = self._quote(requirement.law)
            words = find_duty_words(law.text, languages.get(requirement.law.document_id, ""))
            marked = ReportText(law.text, law.link, place=law.place, marks=tuple(words))
            closest = _stack(map(self._quote, requirement.closest))
            rows.append((ReportText(str(requirement.number)), marked, closest))
        return ReportPart(
            self.say("matrix"),
            (ReportText(self.say("closest_scale")),),
            table=ReportTable(tuple(rows), _CLOSEST_SHARES),
        )

    def print_risks(self) -> ReportPart:
        ranked = sorted(
            (
                requirement
                for requirement in self._report.requirements
                if requirement.risk is not None
            ),
            key=lambda item: (-(item.risk.score if item.risk else 0), item.number),
        )
        if not ranked:
            return ReportPart(self.say("risks"), tuple(self._explain("risks")))
        heads = ("number", "category", "severity", "likelihood", "score", "reason_head")
        rows = [tuple(ReportText(self.say(head)) for head in heads)]
        for requirement in ranked:
            risk = requirement.risk
            assert risk is not None  # noqa: S101 - guaranteed by the selection
            values = (
                str(requirement.number), self._name("category", risk.category), str(risk.severity),
                str(risk.likelihood), str(risk.score), risk.reason,
            )  # fmt: skip
            rows.append(tuple(map(ReportText, values)))
        return ReportPart(
            self.say("risks"),
            (
                ReportText(self.say("risk_scale")),
                *(self._explain("risks") if self._is_lacking("risks") else ()),
            ),
            table=ReportTable(tuple(rows), _RISK_SHARES),
        )

    def print_citations(self) -> ReportPart:
        """Return the audit, and every location that the report quotes, without duplicates."""
        lines = []
        wrong = [citation for citation in self._report.citations if citation.problems]
        if self._report.citations:
            good = len(self._report.citations) - len(wrong)
            total = len(self._report.citations)
            lines.append(ReportText(self.say("citation_counts", good=good, total=total)))
            unread = sum(
                citation.says == "unjudged" and not citation.problems
                for citation in self._report.citations
            )
            if unread:
                lines.append(ReportText(self.say("citations_unjudged", count=unread, total=total)))
        if not self._report.citations or self._is_lacking("citations"):
            lines += self._explain("citations")
        items = [
            ReportText(
                f"{citation.label} {shorten_line(citation.claim, _LONGEST_CELL)}: "
                f"{self._translate('; '.join(citation.problems))}"
            )
            for citation in wrong
        ]
        places = {
            (place.document_id, place.heading, place.page): place
            for each in self._report.requirements
            for place in (each.law, *each.evidence)
        }
        items += [
            ReportText("", place.link, place=self._name_place(place)) for place in places.values()
        ]
        return ReportPart(self.say("citations"), tuple(lines), tuple(items))

    def print_recommendations(self) -> ReportPart:
        items = []
        # Findings that only mention what lessens their risk follow the model's recommendations.
        ordered = [finding for finding in self._report.findings if finding.urgency is not None]
        ordered.sort(key=lambda item: item.urgency or 0)
        others = [finding for finding in self._report.findings if finding.urgency is None]
        for other in (*ordered, *others):
            advice = other.recommendation or (other.risk.mitigation if other.risk else "")
            if advice:
                shown = self.say("recommendation", number=other.number, advice=advice)
                items.append(ReportText(shown, other.law.link, place=self._name_place(other.law)))
        is_whole = bool(items) and not self._is_lacking("recommendations")
        lines = () if is_whole else self._explain("recommendations", has_items=bool(items))
        return ReportPart(self.say("recommendations"), tuple(lines), tuple(items))

    def print_appendix(self) -> ReportPart:
        report = self._report
        items = [
            ReportText(line)
            for document in report.documents
            for line in self._describe(document.id)
        ]
        facts = {
            "units": str(report.units),
            "passages": str(report.passages),
            "models": ", ".join(report.judges) or self.say("none"),
            "made": report.made_on,
        }
        items += [ReportText(f"{self.say(key)}: {value}") for key, value in facts.items() if value]
        for unit in report.units_without:
            place = unit.heading or "–"
            reason = self._translate(unit.reason)
            items.append(ReportText(self.say("without", place=place, reason=reason)))
        items += [
            ReportText(self.say("definition", text=cut_text(definition, _LONGEST_CELL)))
            for definition in report.definitions
        ]
        lines = [ReportText(self.say("no_advice"))]
        if report.is_judged and self._is_lacking("classes"):
            name = self.say("section_classes")
            lines += [
                ReportText(f"{name}: {report_text.text}")
                for report_text in self._explain("classes")
            ]
        return ReportPart(self.say("appendix"), tuple(lines), tuple(items))

    def _describe(self, document_id: str) -> Iterator[str]:
        """Yield a document with its file, its language, and its classes."""
        for document in self._report.documents:
            if document.id == document_id:
                role = self.say("law" if document.role == "law" else "document")
                names = ", ".join(
                    filter(None, (document.file or document.title, document.language))
                )
                yield f"{role}: {document.title} ({names})"
                classes = (
                    f"{self.say(f'class_{name}')}: {self._name(name, value)}"
                    for name, value in document.classes.items()
                )
                if shown := "; ".join(classes):
                    yield f"{document.title} – {shown}"

    def _quote(self, place: QuotedPlace, *more: ReportText) -> ReportText:
        shown = cut_text(place.words, _LONGEST_CELL)
        return ReportText(shown, place.link, place=self._name_place(place), more=more)

    def _translate(self, note: str) -> str:
        return translate_note(note, self._report.language)


def find_duty_words(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each word that expresses a duty, or nothing for languages without
    a list.
    """
    words = frozenset(str(load_tables("duty_words.toml").get(language, "")).split())
    for match in _ONE_WORD.finditer(text):
        if match[0].lower() in words:
            yield match.start(), match.end()


def lay_out(report: ReviewReport) -> PrintedReport:
    """Return the layout of a report in its language, or in English if that language has no
    texts.
    """
    layout = _Layout(report)
    return PrintedReport(
        title=report.title,
        language=report.language,
        parts=(
            layout.print_summary(),
            layout.print_findings(),
            layout.print_matrix(),
            layout.print_risks(),
            layout.print_citations(),
            layout.print_recommendations(),
            layout.print_appendix(),
        ),
        notice="" if report.is_judged else layout.say("no_model"),
    )


def load_texts(language: str) -> Mapping[str, str]:
    """Return the fixed texts in a language, or in English if that language has none."""
    tables = load_tables("report_texts.toml")
    return {**tables["en"], **tables.get(language, {})}


def name_review(document: str, law: str, language: str) -> str:
    """Return the title of a review, which is also the title of its report."""
    return load_texts(language)["title"].format(document=document, law=law)


def _stack(texts: Iterable[ReportText]) -> ReportText:
    """Return texts as the lines of one cell."""
    first, *others = list(texts) or [_NOTHING]
    return ReportText(first.text, first.link, place=first.place, more=tuple(others))
