"""Renders review reports in several formats, with links that the readers of a report can open."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, replace

import orjson
from pydantic import JsonValue

from agents.review.report_layout import lay_out
from agents.review.report_rendering import (
    MissingPdfLibraryError,
    render_docx,
    render_html,
    render_pdf,
)
from agents.review.requirements import Extraction, make_checklist
from agents.review.review_report import ReviewReport, decode_report
from citations.printed_report import (
    PrintedReport,
    ReportPart,
    ReportTable,
    ReportText,
    render_markdown,
)
from envelope.question import Question
from gateway.answer import Opens
from gateway.review_ports import DocumentRefusedError, ReportForm

Report = ReviewReport | PrintedReport
"""A report; earlier versions stored it as a `PrintedReport`."""
LinkOpener = Callable[[str], str]
"""Returns the URL that a reader can open for a link in a report, or an empty string."""
ReadStored = Callable[[Question, str], Awaitable[bytes | None]]
"""Returns a value stored with a question's conversation, by its reference."""
PASSAGE = "#"
"""The prefix with which links in a report are stored, followed by the id of a passage."""
_BASES = ("https://", "http://", "file://")
"""The prefixes of the URLs that `open_links` inserts; all other links have been removed before."""


class StoredReports:
    """A `gateway.review_ports.ReportRenderer` for the reports in replies and in the store.

    Large reports are stored with the conversation; small ones are part of the reply.
    """

    def __init__(self, read_stored: ReadStored) -> None:
        self._read_stored = read_stored

    async def render(
        self, question: Question, report: Mapping[str, JsonValue], form: ReportForm, opens: Opens
    ) -> bytes | None:
        printed = await self.read(question, report)
        if printed is None:
            return None

        def open_link(link: str) -> str:
            name = read_passage(link)
            address = opens({"chunk_id": name}) if name else None
            return "" if address is None else address

        try:
            return await asyncio.to_thread(render_report, printed, form, open_link)
        except MissingPdfLibraryError as error:
            raise DocumentRefusedError(str(error), "unsupported_document") from error

    async def read(self, question: Question, reported: Mapping[str, JsonValue]) -> "Report | None":
        """Return the report that a reply contains or refers to, or None if it is no longer
        stored.
        """
        own, reference = reported.get("report"), reported.get("reference")
        if isinstance(own, dict):
            return decode_report(own)
        if not isinstance(reference, str) or not reference:
            return None
        stored = await self._read_stored(question, reference)
        return None if stored is None else decode_report(stored)

    async def read_checklist(
        self, question: Question, checklist: Mapping[str, JsonValue]
    ) -> bytes | None:
        """Return the checklist in a reply as JSON, or None if it is no longer stored."""
        stored = await self._read_stored(question, str(checklist.get("reference") or ""))
        if stored is None:
            return None
        requirements = Extraction.model_validate_json(stored).requirements
        law = str(checklist.get("target_law") or "")
        return make_checklist(requirements, law).model_dump_json(indent=2).encode()


def read_passage(link: str) -> str:
    """Return the id of the passage to which a link in a report leads, or an empty string for other
    links.
    """
    return link.removeprefix(PASSAGE) if link.startswith(PASSAGE) else ""


def render_report(report: Report, form: ReportForm, open_link: LinkOpener) -> bytes:
    """Return the file of a report; raises `MissingPdfLibraryError`."""
    if form is ReportForm.JSON:
        return _write_json(report, open_link)
    printed = lay_out(report) if isinstance(report, ReviewReport) else report
    linked = open_links(printed, open_link)
    if form is ReportForm.PDF:
        return render_pdf(linked, base=_BASES)
    if form is ReportForm.DOCX:
        return render_docx(linked, base=_BASES)
    if form is ReportForm.HTML:
        return render_html(linked, base=_BASES).encode()
    return render_markdown(linked, base=_BASES).encode()


def open_links(report: PrintedReport, open_link: LinkOpener) -> PrintedReport:
    """Return a report with its links replaced by URLs that its reader can open."""

    def open_text(text: ReportText) -> ReportText:
        more = tuple(map(open_text, text.more))
        return replace(text, link=open_link(text.link) if text.link else "", more=more)

    def open_part(part: ReportPart) -> ReportPart:
        table = part.table
        if table is not None:
            rows = tuple(tuple(map(open_text, row)) for row in table.rows)
            table = ReportTable(rows, table.shares)
        return replace(
            part,
            paragraphs=tuple(map(open_text, part.paragraphs)),
            items=tuple(map(open_text, part.items)),
            table=table,
        )

    return replace(report, parts=tuple(map(open_part, report.parts)))


def _write_json(report: Report, open_link: LinkOpener) -> bytes:
    """Return a report as JSON, with URLs that its reader can open."""

    def open_value(value: object) -> object:
        if isinstance(value, dict):
            return {
                name: open_link(item) if name == "link" and item else open_value(item)
                for name, item in value.items()
            }
        return [open_value(item) for item in value] if isinstance(value, list | tuple) else value

    fields = report.model_dump(mode="json") if isinstance(report, ReviewReport) else asdict(report)
    return orjson.dumps(open_value(fields), option=orjson.OPT_INDENT_2)
