"""The interface that renders the report of a review."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from pydantic import JsonValue

from envelope.question import Question
from gateway.source_urls import Opens


class ReportForm(StrEnum):
    """A form in which people get a report."""

    MARKDOWN = "md"
    HTML = "html"
    PDF = "pdf"
    DOCX = "docx"
    JSON = "json"

    @property
    def media_type(self) -> str:
        """The media type of a file of this form."""
        return {
            ReportForm.MARKDOWN: "text/markdown; charset=utf-8",
            ReportForm.HTML: "text/html; charset=utf-8",
            ReportForm.PDF: "application/pdf",
            ReportForm.DOCX: "application/vnd.openxmlformats-officedocument."
            "wordprocessingml.document",
            ReportForm.JSON: "application/json",
        }[self]


class ReportRenderer(Protocol):
    """Renders the report that the reply of a review refers to."""

    async def render(
        self, question: Question, report: Mapping[str, JsonValue], form: ReportForm, opens: Opens
    ) -> bytes | None:
        """Return a report in a form, or None where it is no longer kept.

        `report` is the attribute `review_report` of the reply to `question`; `opens` returns the
        link of a place. Raises `DocumentRefusedError` for a form that is not installed.
        """
        ...

    async def read_checklist(
        self, question: Question, checklist: Mapping[str, JsonValue]
    ) -> bytes | None:
        """Return a checklist as JSON (`target_law`, `checklist`), or None where it is gone.

        `checklist` is the attribute of this name of the reply to `question`.
        """
        ...
