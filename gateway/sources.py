"""The document sources that the API and the console show and change."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel, Field

LONGEST_ADDRESS = 2_000
Assistant = tuple[str, str]
"""Tenant and assistant."""


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source, and the result of its last ingestion; `is_running` is true while it is being
    ingested.

    `progress` describes the current ingestion. `left_out` describes content in its files that is
    not in the index. Times are in Unix seconds; `read_at` is 0 before the first ingestion, and
    `next_at` is None for a source without a schedule. If the source cannot be ingested on its
    schedule, `has_fault` is true, and `reasons` begins with the cause. `is_own` is true for the
    folder of the files that people uploaded here.
    """

    assistant: Assistant
    place: str
    read_at: float
    failed: int
    reasons: Sequence[str]
    left_out: Sequence[str] = ()
    is_running: bool = False
    progress: str = ""
    id: str = ""
    schedule: str = ""
    next_at: float | None = None
    has_fault: bool = False
    is_own: bool = False

    @property
    def name(self) -> str:
        """The display name: the location or, for the folder of uploaded files, a fixed text."""
        return "Pages and files added here" if self.is_own else self.place


class NewSource(BaseModel, extra="forbid"):
    """A source to add. The setting `SOURCES_OVER_HTTP` defines which ones are allowed."""

    source: str = Field(
        min_length=1,
        max_length=LONGEST_ADDRESS,
        description="location of the source, as in `refdesk ingest`: a web address, a store, a "
        "service, `git:PATH`, a path",
        examples=["https://docs.example.com/guide/", "confluence://acme.atlassian.net/HR"],
    )
    schedule: str = Field(
        "",
        max_length=200,
        description="cron expression in UTC; empty: the source is only read on request",
        examples=["0 6 * * *"],
    )
    revision: str = Field("", max_length=200, description="branch, tag or commit of a repository")
    folder: str = Field("", max_length=LONGEST_ADDRESS, description="folder of a repository")
    web_address: str = Field(
        "", max_length=LONGEST_ADDRESS, description="URL template for the files on the web"
    )


class SourceKeeper(Protocol):
    """Manages the sources of assistants, and ingests them in the background."""

    def list_sources(self, assistant: Assistant) -> Sequence[SourceState]:
        """Return the sources of an assistant, sorted by location."""
        ...

    async def add_source(self, assistant: Assistant, wanted: NewSource) -> SourceState:
        """Add a source, or change its schedule; raises `ValueError` for an invalid one."""
        ...

    def forget_source(self, assistant: Assistant, place: str) -> bool:
        """Stop ingesting a source, and return whether it existed; its documents are kept."""
        ...

    def read_again(self, assistant: Assistant, place: str) -> bool:
        """Start ingesting a source; return False if it does not exist or is already being
        ingested.
        """
        ...

    def stop_reading(self, assistant: Assistant, place: str) -> bool:
        """Stop the ingestion of a source; documents ingested so far are kept. Return False if it is
        not running.
        """
        ...

    async def remove_source(self, assistant: Assistant, place: str) -> int:
        """Remove a source, and its documents from the index; return the number of documents."""
        ...
