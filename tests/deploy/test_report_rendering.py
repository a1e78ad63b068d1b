"""Reports for their readers: links of places become addresses, and everything else is dropped."""

from dataclasses import replace
from io import BytesIO

import orjson
import pypdfium2
import pytest

from citations.printed_report import PrintedReport, ReportPart, ReportTable, ReportText
from deploy.assembly.gateways.report_rendering import StoredReports, read_passage, render_report
from envelope.question import Question
from gateway.review_ports import ReportForm

QUESTION = Question(tenant="acme", assistant="docs", conversation_id="c1", message_id="m1")
LINK = "#law/a b#3"
REPORT = PrintedReport(
    title="Contract against Law",
    language="en",
    parts=(
        ReportPart(
            "Findings",
            (ReportText("Seen", LINK),),
            (ReportText("Foreign", "https://evil.example/"),),
            ReportTable(((ReportText("Place"),), (ReportText("Article 1", LINK),))),
        ),
    ),
)


def open_link(link: str) -> str:
    return "https://desk.test/v1/reader/ticket#a" if read_passage(link) == "law/a b#3" else ""


@pytest.mark.parametrize("form", [ReportForm.MARKDOWN, ReportForm.HTML])
def test_links_lead_to_the_place_and_nowhere_else(form: ReportForm) -> None:
    text = render_report(REPORT, form, open_link).decode()

    assert text.count("https://desk.test/v1/reader/ticket#a") == 2
    assert "evil" not in text
    assert "law/a b" not in text
    assert "Foreign" in text


def test_a_pdf_is_a_file_with_the_same_text() -> None:
    document = pypdfium2.PdfDocument(BytesIO(render_report(REPORT, ReportForm.PDF, open_link)))

    assert "Contract against Law" in document[0].get_textpage().get_text_bounded()


async def test_a_report_is_read_from_the_reply_or_from_where_it_is_stored() -> None:
    stored = {"kept": orjson.dumps(replace(REPORT, title="Stored"))}

    async def read_stored(question: Question, reference: str) -> bytes | None:
        assert question == QUESTION
        return stored.get(reference)

    reports = StoredReports(read_stored)
    own = {"reference": "kept", "report": orjson.loads(orjson.dumps(REPORT))}
    opened: list[object] = []

    def opens(source: object) -> str | None:
        opened.append(source)
        return None

    results = [
        await reports.read(QUESTION, reported)
        for reported in (own, {"reference": "kept"}, {"reference": "gone"}, {})
    ]
    rendered = await reports.render(QUESTION, own, ReportForm.MARKDOWN, opens)

    assert [report and report.title for report in results] == [
        "Contract against Law",
        "Stored",
        None,
        None,
    ]
    assert rendered is not None
    assert b"# Contract against Law" in rendered
    assert opened == [{"chunk_id": "law/a b#3"}] * 2
