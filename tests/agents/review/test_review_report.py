"""The report: seven parts in five forms, with the words of both sides and no foreign link."""

import re
import tomllib
from datetime import date
from io import BytesIO
from zipfile import ZipFile

import docx
import pypdfium2
import pytest
from docx import Document
from markdown_it import MarkdownIt
from selectolax.lexbor import LexborHTMLParser

from agents.review.audit import AuditedCitation, CitationAudit
from agents.review.report_layout import lay_out, load_texts
from agents.review.report_rendering import render_docx, render_html, render_pdf
from agents.review.requirement_extractor import list_units_as_requirements
from agents.review.requirements import Extraction, RuleUnit, TextPlace
from agents.review.review_report import (
    ReportedSection,
    ReportInputs,
    ReviewReport,
    SectionState,
    compose_report,
    decode_report,
    encode_report,
)
from agents.review.verdicts import (
    ReviewResult,
    Risk,
    RiskCategory,
    RuleVerdict,
    Status,
    SynthesizedGap,
    VerdictEvidence,
)
from citations.links import keep_own_link
from citations.printed_report import (
    PrintedReport,
    ReportPart,
    ReportTable,
    ReportText,
    render_markdown,
)
from citations.verbatim import cut_text
from config.texts import load_texts as load_desk_texts
from envelope.specialists import ReviewedDocument
from tests.support.app_harness import ROOT

TEXTS = ROOT / "agents" / "review" / "report_texts.toml"
HOSTILE = (
    "<script>alert(1)</script> [x](http://evil.example) | `code` \u202e see www.evil.example or "
    "https://evil.example/a and mail a@evil.example"
)
STATUSES = [Status.COMPLIANT, Status.VIOLATION, Status.GAP, Status.UNDECIDED]


def make_report(
    law: list[RuleUnit],
    document: list[RuleUnit],
    *,
    language: str = "en",
    words: str = "",
    is_judged: bool = True,
) -> ReviewReport:
    """Compose a report of one finding of each status; `words` are added to every text of it."""
    units = [unit for unit in law if unit.heading_path][:4]
    extraction: Extraction = list_units_as_requirements(units)
    read = document[3]
    place = TextPlace(
        document_id="contract",
        unit_id=read.unit_id,
        heading_path=read.heading_path,
        start=0,
        end=len(read.text),
    )
    evidence = VerdictEvidence(place=place, text=f"{read.text} {words}".strip())
    verdicts = [
        RuleVerdict(
            requirement_id=requirement.id,
            status=status if is_judged else Status.UNDECIDED,
            confidence=0.9 if is_judged else None,
            evidence=(evidence,) if status in STATUSES[:2] and is_judged else (),
            closest=() if status in STATUSES[:2] and is_judged else (evidence,),
            comparisons=('document "14 days" > rule "48 hours"',),
            note=f"because of this {words}" if is_judged else "",
        )
        for requirement, status in zip(extraction.requirements, STATUSES, strict=True)
    ]
    risk = Risk(
        requirement_id="REQ-002", category=RiskCategory.LEGAL, severity=4, likelihood=3,
        reason=f"a fine {words}", mitigation="change it",
    )  # fmt: skip
    citation = AuditedCitation(label="[1]", claim=f"A claim {words}", exists=False,
                               problems=(f"no source {words}",))  # fmt: skip
    inputs = ReportInputs(
        title=f"Review {words}",
        law="Act",
        document="Contract",
        documents=(ReviewedDocument(document_id="contract", title="Contract", language="en",
                                    source="contract.pdf", units=9),),
        against=(ReviewedDocument(document_id="law", title="Act", language="en",
                                  source="laws/act.md", units=4),),
        extraction=extraction,
        review=ReviewResult(verdicts=tuple(verdicts), passages=9),
        risks=(risk,) if is_judged else (),
        gaps=(SynthesizedGap(kind="consistency", summary=f"Two clauses {words}", places=(place,)),)
        if is_judged
        else (),
        audit=CitationAudit(citations=(citation,)) if is_judged else None,
        classes={"contract": {"document_type": "contract"}},
        summary=(f"One is violated {words}",) if is_judged else (),
        recommendations={"REQ-002": f"Write this {words}"},
        notes=(f"a note {words}",),
        made_on=date(2030, 1, 1),
        judges=("gpt@openai",) if is_judged else (),
        is_judged=is_judged,
    )  # fmt: skip
    return compose_report(
        inputs,
        language=language,
        link=lambda place: f"/documents/{place.unit_id}",
        find_page=lambda place: 7 if place.document_id == "contract" else None,
    )


def list_texts(report: PrintedReport) -> list[str]:
    """Return every text of a printed report."""
    texts: list[ReportText] = []
    for part in report.parts:
        rows = () if part.table is None else part.table.rows
        texts += [*part.paragraphs, *part.items, *(cell for row in rows for cell in row)]
    return [
        line for text in texts for each in (text, *text.more) for line in (each.text, each.place)
    ]


@pytest.fixture
def report(law: list[RuleUnit], faulty: list[RuleUnit]) -> ReviewReport:
    return make_report(law, faulty)


def test_a_report_has_seven_parts(report: ReviewReport) -> None:
    assert [part.heading for part in lay_out(report).parts] == [
        "1. Executive summary",
        "2. Findings",
        "3. Compliance matrix",
        "4. Risk summary",
        "5. Citations",
        "6. Recommendations",
        "7. Appendix",
    ]


def test_a_finding_has_the_words_the_place_and_the_page_of_both_sides(
    report: ReviewReport,
) -> None:
    lines = render_markdown(lay_out(report)).splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("- No. 2, VIOLATION"))

    assert "The law: “The processor shall encrypt" in lines[at + 1]
    assert "Act, Article 2 Security \\[laws/act.md\\]](/documents/law#2)" in lines[at + 1]
    assert "The document: “The processor shall notify the keeper" in lines[at + 2]
    assert "p. 7 \\[contract.pdf\\]](/documents/faulty_contract#3)" in lines[at + 2]
    assert lines[at + 3 : at + 6] == [
        "  - Why: because of this",
        '  - Numbers: document "14 days" \\> rule "48 hours"',
        "  - Confidence: 0.90",
    ]


def test_the_matrix_has_each_requirement_with_its_status_and_both_quotations(
    report: ReviewReport,
) -> None:
    table = lay_out(report).parts[2].table

    assert table is not None
    assert [row[0].text for row in table.rows[1:]] == ["1", "2", "3", "4"]
    assert [row[2].text for row in table.rows[1:]] == [status.value for status in STATUSES]
    assert table.rows[2][1].text.startswith("The processor shall encrypt register data")
    assert table.rows[2][3].text.startswith("The processor shall notify")


def test_no_id_of_a_passage_or_of_an_error_is_printed(report: ReviewReport) -> None:
    printed = "\n".join(list_texts(lay_out(report)))

    assert not re.search(r"#\d|\bp\d+\b|RD-\d|REQ-", printed)


def test_a_report_without_a_model_says_so_first_and_judges_nothing(
    law: list[RuleUnit], faulty: list[RuleUnit]
) -> None:
    printed = lay_out(make_report(law, faulty, is_judged=False))
    lines = render_markdown(printed).splitlines()
    text = "\n".join(list_texts(printed))

    assert lines[2].startswith("**No model is in use")
    assert printed.parts[2].table is not None
    assert len(printed.parts[2].table.rows) == 1 + 4
    assert "The processor **shall** encrypt" in "\n".join(lines)
    for judged in ("VIOLATION", "GAP", "COMPLIANT", "Confidence", "Legal"):
        assert judged not in text


def test_citations_that_no_model_compared_with_their_sources_are_counted(
    report: ReviewReport,
) -> None:
    [wrong] = report.citations
    unread = wrong.model_copy(update={"problems": (), "says": "unjudged"})
    read = unread.model_copy(update={"says": "yes"})

    counted = report.model_copy(update={"citations": (wrong, unread, unread, read)})

    assert "2 of 4 citations were checked by rules only" in "\n".join(list_texts(lay_out(counted)))
    assert "by rules only: no model compared" not in "\n".join(list_texts(lay_out(report)))


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (SectionState.NOT_REQUESTED, "Not requested: risk_verifier was not part of this review."),
        (SectionState.FAILED, "Failed, so nothing is known here: risk_verifier: status 500"),
        (SectionState.NOTHING, "No violation or gap was found, so there are no risks to rank."),
    ],
)
def test_a_section_without_entries_says_whether_it_was_made(
    report: ReviewReport, state: SectionState, said: str
) -> None:
    section = ReportedSection(state=state, specialist="risk_verifier", reason="status 500")
    unranked = tuple(
        requirement.model_copy(update={"risk": None}) for requirement in report.requirements
    )
    printed = lay_out(
        report.model_copy(update={"requirements": unranked, "sections": {"risks": section}})
    )

    assert printed.parts[3].paragraphs[0].text == said
    assert printed.parts[0].paragraphs[0].text.startswith("Parts of this review: risks: ")


def test_a_report_without_any_verdict_counts_none_and_names_no_judge(report: ReviewReport) -> None:
    open_ones = tuple(
        requirement.model_copy(update={"status": Status.UNDECIDED.value, "reason": "status 500"})
        for requirement in report.requirements
    )
    section = ReportedSection(
        state=SectionState.FAILED, specialist="compliance", reason="status 500"
    )
    lost = report.model_copy(
        update={"requirements": open_ones, "summary": (), "sections": {"findings": section}}
    )
    summary = lay_out(lost).parts[0]

    assert [paragraph.text for paragraph in summary.paragraphs] == [
        "Parts of this review: findings: failed."
    ]
    assert summary.items[0].text.startswith("Not judged: 1, 2, 3, 4 ")


def test_a_part_that_is_called_empty_in_the_first_line_says_why_below(
    report: ReviewReport,
) -> None:
    section = ReportedSection(state=SectionState.NOTHING, specialist="gap_synthesizer")
    printed = lay_out(report.model_copy(update={"gaps": (), "sections": {"gaps": section}}))

    assert "further gaps: nothing to report" in printed.parts[0].paragraphs[0].text
    assert "No contradiction and no outdated or partly covered point was found." in [
        paragraph.text for paragraph in printed.parts[1].paragraphs
    ]


def test_a_report_is_read_again_from_its_json(report: ReviewReport) -> None:
    assert decode_report(encode_report(report)) == report


def test_a_report_of_an_earlier_version_is_still_printed() -> None:
    old = {"title": "Old", "language": "en", "parts": [
        {"heading": "1. Summary", "paragraphs": [{"text": "Fine.", "link": "", "is_detail": False}],
         "items": [], "table": None}]}  # fmt: skip

    result = decode_report(old)

    assert isinstance(result, PrintedReport)
    assert "Fine." in render_markdown(result)


@pytest.mark.parametrize("form", ["markdown", "html", "json", "docx"])
def test_no_text_of_a_report_carries_a_link_of_others(
    law: list[RuleUnit], faulty: list[RuleUnit], form: str
) -> None:
    report = make_report(law, faulty, words=HOSTILE)
    printed = lay_out(report)
    if form == "docx":
        archive = ZipFile(BytesIO(render_docx(printed)))
        shown = "".join(archive.read(name).decode() for name in archive.namelist())
        assert set(re.findall(r'Target="(.{11})[^"]*" TargetMode', shown)) == {"/documents/"}
    else:
        shown = {
            "markdown": lambda: render_markdown(printed),
            "html": lambda: render_html(printed),
            "json": lambda: encode_report(report).decode(),
        }[form]()

    plain = shown.replace("\\", "")
    assert not re.search(r"https?://evil|www\.evil|@evil\.|\u202e", plain)
    assert "evil[.]example" in plain, "a quotation stays readable"


def test_texts_of_documents_are_shown_as_text(law: list[RuleUnit], faulty: list[RuleUnit]) -> None:
    printed = lay_out(make_report(law, faulty, words=HOSTILE))
    markdown = MarkdownIt("gfm-like", {"linkify": False}).render(render_markdown(printed))

    for tree in (LexborHTMLParser(render_html(printed)), LexborHTMLParser(markdown)):
        assert tree.css("script, img, code") == []
        links = [node.attributes.get("href") or "" for node in tree.css("a")]
        assert {link[:11] for link in links} == {"/documents/"}


def test_struck_out_text_is_struck_out_and_other_signs_are_literal_in_every_form() -> None:
    signs = "2*3*4 <Vorname> \\\\server\\share a_b_c 10^6 #5 &amp; ~~ x"
    text = ReportText(f"{signs} ~~400~~ 450 ~~old must end~~", marks=((len(signs) + 15, 4_000),))
    part = ReportPart("1.", (text,), table=ReportTable(((text,), (text,))))
    printed = PrintedReport(title=signs, language="en", parts=(part,))

    markdown = MarkdownIt("gfm-like", {"linkify": False}).render(render_markdown(printed))
    for tree in (LexborHTMLParser(render_html(printed)), LexborHTMLParser(markdown)):
        assert [node.text() for node in tree.css("h1")] == [signs]
        assert [node.text() for node in tree.css("p")] == [f"{signs} 400 450 old must end"]
        assert [node.text() for node in tree.css("p s")] == ["400", "old must end"]
    archive = ZipFile(BytesIO(render_docx(printed)))
    document = Document(archive.fp)
    runs = document.paragraphs[2].runs
    assert "".join(run.text for run in runs) == f"{signs} 400 450 old must end"
    assert [run.text for run in runs if run.font.strike] == ["400", "old must end"]


def test_struck_out_text_that_is_cut_remains_struck_out() -> None:
    assert cut_text("Rate ~~400 EUR~~ 450", 12) == "Rate ~~400~~…"
    assert cut_text("Rate ~~400~~ 450", 12) == "Rate ~~400~~…"
    assert cut_text("Rate 450", 12) == "Rate 450"


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


@pytest.mark.slow
def test_a_pdf_has_the_same_text(report: ReviewReport) -> None:
    data = render_pdf(lay_out(report))

    document = pypdfium2.PdfDocument(BytesIO(data))
    text = " ".join(" ".join(page.get_textpage().get_text_range().split()) for page in document)
    assert "3. Compliance matrix" in text
    assert "within 14 days" in text
    assert data == render_pdf(lay_out(report))


def test_a_word_file_has_the_same_text_and_a_table(report: ReviewReport) -> None:
    data = render_docx(lay_out(report), base="/documents/")

    result = docx.Document(BytesIO(data))
    text = "\n".join(paragraph.text for paragraph in result.paragraphs)
    assert "3. Compliance matrix" in text
    assert [len(table.rows) for table in result.tables] == [5, 2]
    assert "within 14 days" in result.tables[0].cell(2, 3).text
    assert data == render_docx(lay_out(report), base="/documents/")


@pytest.mark.parametrize("language", load_desk_texts().languages)
def test_a_report_has_all_fixed_texts_in_every_language_of_the_desk(language: str) -> None:
    english = load_texts("en")

    own = tomllib.loads(TEXTS.read_text("utf-8"))[language]

    assert set(own) >= set(english)
    for key, text in english.items():
        assert sorted(re.findall(r"{\w+}", own[key])) == sorted(re.findall(r"{\w+}", text)), key


# Languages in which no label is spelled as in English.
@pytest.mark.parametrize("language", ["de", "cs", "es", "ru", "ar", "hi", "ja", "ko", "zh"])
@pytest.mark.parametrize("is_judged", [True, False])
def test_only_quotations_of_a_report_are_in_another_language(
    law: list[RuleUnit], faulty: list[RuleUnit], language: str, *, is_judged: bool
) -> None:
    english = set(list_texts(lay_out(make_report(law, faulty, is_judged=is_judged))))
    report = make_report(law, faulty, language=language, is_judged=is_judged)
    quoted = {
        place.words
        for each in report.requirements
        for place in (each.law, *each.evidence, *each.closest)
    }

    same = set(list_texts(lay_out(report))) & english - quoted
    own = {
        *report.summary,
        *(requirement.risk.reason for requirement in report.requirements if requirement.risk),
    }
    words = [item for item in same - own if re.search(r"[a-z]{3}", item)]

    assert [word for word in words if "[" not in word] == []


def test_classes_shares_pages_and_numbers_are_written_as_the_reader_writes_them(
    law: list[RuleUnit], faulty: list[RuleUnit]
) -> None:
    printed = lay_out(make_report(law, faulty, language="de"))
    text = render_markdown(printed)

    assert "Contract – Art: Vertrag" in text
    assert "Sicherheit: 0,90" in text
    assert ", S. 7" in text
    assert "Zahlen: Dokument „14 days“ \\> Regel „48 hours“" in text
    assert not {"0.90", "p. 7", "rule"} & set(re.findall(r"\b(?:0\.90|p\. 7|rule)\b", text))


def test_each_recommendation_is_there_once_with_its_place(report: ReviewReport) -> None:
    items = lay_out(report).parts[5].items

    assert [(item.text, item.place) for item in items] == [
        ("No. 2: Write this", "Act, Article 2 Security [laws/act.md]")
    ]


def test_recommendations_stand_in_the_models_order_of_urgency(report: ReviewReport) -> None:
    second, third = report.requirements[1:3]
    gap = third.model_copy(update={"recommendation": "Add a clause", "urgency": 1})
    violation = second.model_copy(update={"urgency": 2})

    printed = lay_out(report.model_copy(update={"requirements": (violation, gap)}))

    assert [item.text for item in printed.parts[5].items] == [
        "No. 3: Add a clause", "No. 2: Write this"
    ]  # fmt: skip


def test_a_requirement_says_whether_it_is_mandatory_for_whom_and_when(
    report: ReviewReport,
) -> None:
    gap = report.requirements[2].model_copy(
        update={
            "severity": "recommended",
            "addressee": "the keeper",
            "applicability": "in summer",
        }
    )

    printed = lay_out(report.model_copy(update={"requirements": (gap,)}))

    said = "recommended; addressee: the keeper; condition: in summer"
    assert said in [item.text for item in printed.parts[1].items]
    assert printed.parts[2].table is not None
    assert said in [report_text.text for report_text in printed.parts[2].table.rows[1][1].more]


@pytest.mark.parametrize(
    ("confidence", "said"),
    [
        (0.87, "Confidence of all verdicts: 0.87, the mean of what the model states for 4 of them"),
        (None, "Confidence of all verdicts: not measured"),
    ],
)
def test_a_report_states_the_confidence_of_all_verdicts_or_that_it_was_not_measured(
    report: ReviewReport, confidence: float | None, said: str
) -> None:
    printed = lay_out(report.model_copy(update={"confidence": confidence}))

    assert any(paragraph.text.startswith(said) for paragraph in printed.parts[0].paragraphs)
