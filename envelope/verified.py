"""An answer that the owner wrote for a question and for all questions with the same meaning."""

from datetime import UTC, datetime

from pydantic import BaseModel, Field

from envelope.sources import SourceUsed

VERIFIED = "verified"
"""The author of a reply (`answered_by`) that the owner wrote."""
OWNERS_PAGE = "#verified"
"""Suffix of the `chunk_id` of a source that the owner cites as a whole page."""


class CitedPage(BaseModel, frozen=True, extra="ignore"):
    """A document that a verified answer cites, as it was when the owner last saw it."""

    document_id: str
    title: str
    url: str | None = None
    path: str | None = None
    content_hash: str = ""
    groups: tuple[str, ...] = Field(
        default=(),
        description="that could read it then, to recognise a change; whoever asks is checked "
        "against the index",
    )


class VerifiedAnswer(BaseModel, frozen=True, extra="ignore"):
    """The question in the owner's words, and the answer, which is sent unchanged."""

    id: str
    question: str
    answer: str = Field(description="Markdown")
    pages: tuple[CitedPage, ...] = ()
    written_at: float = Field(0.0, description="Unix seconds; 0: not known")

    @property
    def date(self) -> str:
        """The day on which it was written (UTC), as in 2026-11-29; empty if it is not known."""
        return f"{datetime.fromtimestamp(self.written_at, UTC):%Y-%m-%d}" if self.written_at else ""

    def list_sources(self) -> tuple[SourceUsed, ...]:
        """Return the cited pages as sources, numbered as the owner listed them."""
        return tuple(
            SourceUsed(
                number=number,
                chunk_id=f"{page.document_id}{OWNERS_PAGE}",
                title=page.title,
                url=page.url,
                path=page.path,
            )
            for number, page in enumerate(self.pages, start=1)
        )
