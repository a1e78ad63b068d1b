"""The values used in reviews: documents of a conversation, and the report in its formats."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pydantic import JsonValue

from envelope.question import Question
from gateway.answer import Opens
from gateway.errors import GatewayError

ATTACHED = "attached:"
"""The prefix of the ids of conversation documents, and of their passages."""


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """A document of a conversation, or of the index; `language` is an ISO 639-1 code.

    `name` is its file name, and `chunks` the number of its passages. `is_new` is true if this call
    added it to the conversation.
    """

    id: str
    title: str
    name: str
    language: str
    chunks: int
    is_new: bool = False


class DocumentRefusedError(GatewayError):
    """A document cannot be read, or there is no room for it; `kind` is a slug for the reason.

    It is one of `empty_document`, `unreadable_document`, `unsupported_document`,
    `document_too_large`, or `too_many_documents`.
    """

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class DocumentUnknownError(GatewayError):
    """A name matches none, or more than one, of the documents that the caller may read."""


class ReportForm(StrEnum):
    """A format of a report."""

    MARKDOWN = "md"
    HTML = "html"
    PDF = "pdf"
    DOCX = "docx"
    JSON = "json"

    @property
    def media_type(self) -> str:
        """The media type of a file in this format."""
        return {
            ReportForm.MARKDOWN: "text/markdown; charset=utf-8",
            ReportForm.HTML: "text/html; charset=utf-8",
            ReportForm.PDF: "application/pdf",
            ReportForm.DOCX: "application/vnd.openxmlformats-officedocument."
            "wordprocessingml.document",
            ReportForm.JSON: "application/json",
        }[self]


class ReportRenderer(Protocol):
    """Renders the report referred to in the reply to a review."""

    async def render(
        self, question: Question, report: Mapping[str, JsonValue], form: ReportForm, opens: Opens
    ) -> bytes | None:
        """Return a report in a format, or None if it is no longer stored.

        `report` is the attribute `review_report` of the reply to `question`; `opens` returns the
        link of a location. Raises `DocumentRefusedError` for a format that is not installed.
        """
        ...

    async def read_checklist(
        self, question: Question, checklist: Mapping[str, JsonValue]
    ) -> bytes | None:
        """Return a checklist as JSON (`target_law`, `checklist`), or None if it is no longer
        stored.

        `checklist` is the attribute with this name in the reply to `question`.
        """
        ...


def is_attached(chunk_id: str) -> bool:
    """Return whether an id refers to a conversation document or to a passage of one."""
    return chunk_id.startswith(ATTACHED)
