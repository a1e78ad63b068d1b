"""Answers that the owner wrote for a question, which are used for all questions with the same
meaning.
"""

from datetime import UTC, datetime

from pydantic import BaseModel, Field

from envelope.sources import SourceUsed

VERIFIED = "verified"
"""The value of `answered_by` in a reply that was written by the owner."""
OWNERS_PAGE = "#verified"
"""The suffix of the `chunk_id` of a whole page that a verified answer cites."""


class CitedPage(BaseModel, frozen=True, extra="ignore"):
    """A document that a verified answer cites, in the state in which the owner last saw it."""

    document_id: str
    title: str
    url: str | None = None
    path: str | None = None
    content_hash: str = ""
    groups: tuple[str, ...] = Field(
        default=(),
        description="groups that could read the page at that time, to detect a change; the "
        "user's access is checked against the index",
    )


class VerifiedAnswer(BaseModel, frozen=True, extra="ignore"):
    """A question worded by the owner, and the answer, which is sent unchanged."""

    id: str
    question: str
    answer: str = Field(description="Markdown")
    pages: tuple[CitedPage, ...] = ()
    written_at: float = Field(0.0, description="Unix seconds; 0: unknown")

    @property
    def date(self) -> str:
        """The day on which the answer was written (UTC), such as 2026-11-29, or an empty string if
        unknown.
        """
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
