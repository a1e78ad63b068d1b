"""The report: seven parts as Markdown, HTML and PDF, without foreign links."""

import re
from collections.abc import Callable
from datetime import date
from io import BytesIO

import pypdfium2
import pytest
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser

from compliance.assessment.gaps import synthesize_gaps
from compliance.assessment.risk import rank_risks
from compliance.reporting.html_report import render_html
from compliance.reporting.markdown_report import render_markdown
from compliance.reporting.own_links import keep_own_link
from compliance.reporting.pdf_report import render_pdf
from compliance.reporting.report import (
    ReportInputs,
    ReviewReport,
    compose_report,
    list_texts,
)
from compliance.requirements.extraction import extract_requirements
from compliance.requirements.requirement import RuleUnit, TextPlace
from compliance.verdicts.passages import PreparedDocument, split_passages
from compliance.verdicts.review import review_document

HOSTILE = (
    "<script>alert(1)</script> [x](http://evil.example) | `code` \u202e The supplier shall pay."
)


def make_report(
    law: list[RuleUnit],
    document: PreparedDocument,
    link: Callable[[TextPlace], str] = lambda place: f"/documents/{place.unit_id}",
    language: str = "en",
) -> ReviewReport:
    extraction = extract_requirements(law)
    review = review_document(extraction.requirements, document)
    inputs = ReportInputs(
        law="Act",
        document="Contract",
        extraction=extraction,
        review=review,
        risks=rank_risks(extraction.requirements, review.verdicts),
        gaps=synthesize_gaps(extraction.requirements, review.verdicts),
        passages=len(document),
        made_on=date(2030, 1, 1),
    )
    return compose_report(inputs, language=language, link=link)


def test_a_report_has_seven_parts(law: list[RuleUnit], faulty: PreparedDocument) -> None:
    report = make_report(law, faulty)

    assert [part.heading for part in report.parts] == [
        "1. Executive summary",
        "2. Findings",
        "3. Compliance matrix",
        "4. Risk summary",
        "5. Citations",
        "6. Recommendations",
        "7. Appendix",
    ]
    assert report.parts[0].paragraphs[0].text == (
        "8 requirements were checked: 3 compliant, 3 violated, 2 without a passage."
    )


def test_the_matrix_has_every_requirement_with_its_status(
    law: list[RuleUnit], faulty: PreparedDocument
) -> None:
    table = make_report(law, faulty).parts[2].table

    assert table is not None
    assert [row[2].text for row in table.rows[1:]] == [
        "COMPLIANT", "VIOLATION", "VIOLATION", "VIOLATION", "COMPLIANT", "COMPLIANT", "GAP", "GAP",
    ]  # fmt: skip


def test_links_of_markdown_and_html_open_at_the_place(
    law: list[RuleUnit], faulty: PreparedDocument
) -> None:
    report = make_report(law, faulty)

    page = LexborHTMLParser(render_html(report))

    assert "](/documents/faulty_contract#3)" in render_markdown(report)
    assert {(one.attributes.get("href") or "")[:11] for one in page.css("a")} == {"/documents/"}


def test_texts_of_documents_are_shown_as_text(law: list[RuleUnit]) -> None:
    hostile = [RuleUnit("law", "1", HOSTILE, ("<b>Bold</b>",))]
    document = PreparedDocument(split_passages([RuleUnit("d", "1", HOSTILE)]))
    report = make_report(hostile, document, link=lambda place: "javascript:alert(1)")

    page = LexborHTMLParser(render_html(report))
    markdown = MarkdownIt("commonmark").enable("table").render(render_markdown(report))

    for tree in (page, LexborHTMLParser(markdown)):
        assert tree.css("script, a, img, b, code") == []
    assert "\u202e" not in render_html(report)


@pytest.mark.parametrize(
    "link",
    [
        "https://evil.example/",
        "//evil.example",
        "javascript:alert(1)",
        "/\\evil.example",
        "evil",
        "",
    ],
)
def test_a_foreign_link_is_dropped(link: str) -> None:
    assert keep_own_link(link) == ""


def test_a_link_below_the_address_of_the_reader_is_kept() -> None:
    base = "https://desk.example/documents/"

    assert keep_own_link(f"{base}law#1", base) == f"{base}law#1"
    assert keep_own_link('/documents/a"b', base) == "/documents/a%22b"


def test_a_report_speaks_german(law: list[RuleUnit], clean: PreparedDocument) -> None:
    report = make_report(law, clean, language="de")

    assert report.parts[0].heading == "1. Zusammenfassung"
    assert '<html lang="de">' in render_html(report)


@pytest.mark.slow
def test_a_pdf_has_the_same_text(law: list[RuleUnit], faulty: PreparedDocument) -> None:
    report = make_report(law, faulty)

    data = render_pdf(report)

    document = pypdfium2.PdfDocument(BytesIO(data))
    text = " ".join(" ".join(page.get_textpage().get_text_range().split()) for page in document)
    assert "3. Compliance matrix" in text
    assert "within 14 days" in text
    assert data == render_pdf(report)


def test_reasons_and_places_stand_below_their_finding(
    law: list[RuleUnit], faulty: PreparedDocument
) -> None:
    report = make_report(law, faulty)
    page = LexborHTMLParser(render_html(report))
    lines = render_markdown(report).splitlines()

    found = page.css_first("section li:has(ul)")
    assert found is not None
    assert "is violated" in found.text(separator=" ").partition("Reason:")[0]
    at = next(at for at, line in enumerate(lines) if "is violated" in line)
    assert lines[at].startswith("- ")
    assert lines[at + 1].startswith("  - Reason: ")


@pytest.mark.parametrize("language", ["de", "cs"])
def test_only_quotations_of_a_report_are_in_another_language(
    law: list[RuleUnit], faulty: PreparedDocument, language: str
) -> None:
    english = {text.text for part in make_report(law, faulty).parts for text in list_texts(part)}
    report = make_report(law, faulty, language=language)
    headings = [
        *(one.heading_path for one in law),
        *(one.place.heading_path for one in faulty.passages),
    ]
    quoted = "\n".join((*(one.text for one in law), *(" ".join(path) for path in headings)))

    same = {text.text for part in report.parts for text in list_texts(part)} & english

    assert [one for one in same if re.search(r"[a-z]{3}", one) and one not in quoted] == []


@pytest.mark.parametrize("language", ["en", "de", "cs"])
def test_a_recommendation_names_its_requirement_and_the_reason(
    law: list[RuleUnit], faulty: PreparedDocument, language: str
) -> None:
    items = [one.text for one in make_report(law, faulty, language=language).parts[5].items]

    assert [one.split(":")[0] for one in items] == [
        "REQ-004", "REQ-005", "REQ-006", "REQ-009", "REQ-010",
    ]  # fmt: skip
    assert ("its period is longer than allowed" in items[0]) is (language == "en")
