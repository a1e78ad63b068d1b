"""The sources of documents, as the API and the console show and change them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel, Field

LONGEST_ADDRESS = 2_000
Assistant = tuple[str, str]
"""Tenant and assistant."""


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source, and the result of its last ingestion; `is_running`: it is being read now.

    `progress` describes the current ingestion. `left_out` are sentences about content of its files
    that the index does not contain. Times are Unix seconds; `read_at` is 0 before the first
    ingestion, `next_at` is None for a source without a schedule. `has_fault`: it cannot be read by
    its schedule, as the first reason states. `is_own`: it is the folder of the files that people
    added here.
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
        """The readable name: the place, except for the folder of this server's own files."""
        return "Pages and files added here" if self.is_own else self.place


class NewSource(BaseModel, extra="forbid"):
    """A source to add; the setting SOURCES_OVER_HTTP defines which ones are allowed."""

    source: str = Field(
        min_length=1,
        max_length=LONGEST_ADDRESS,
        description="as in `refdesk ingest`: a web address, a store, a service, `git:PATH`, a path",
        examples=["https://docs.example.com/guide/", "confluence://acme.atlassian.net/HR"],
    )
    schedule: str = Field(
        "",
        max_length=200,
        description="a cron expression in UTC; empty: it is read by `sync`",
        examples=["0 6 * * *"],
    )
    revision: str = Field("", max_length=200, description="branch, tag or commit of a repository")
    folder: str = Field("", max_length=LONGEST_ADDRESS, description="folder of a repository")
    web_address: str = Field(
        "", max_length=LONGEST_ADDRESS, description="pattern of the addresses of files on the web"
    )


class SourceKeeper(Protocol):
    """Keeps the sources of assistants, and reads them in the background."""

    def list_sources(self, assistant: Assistant) -> Sequence[SourceState]:
        """Return the sources of an assistant, by place."""
        ...

    async def add_source(self, assistant: Assistant, wanted: NewSource) -> SourceState:
        """Add a source, or change its schedule; raises `ValueError` for an invalid one."""
        ...

    def forget_source(self, assistant: Assistant, place: str) -> bool:
        """Read a source no more; its documents stay."""
        ...

    def read_again(self, assistant: Assistant, place: str) -> bool:
        """Begin to read a source; False if there is none, or if it is being read."""
        ...

    def stop_reading(self, assistant: Assistant, place: str) -> bool:
        """Stop reading a source; documents that were read are kept. False if it is not being
        read.
        """
        ...

    async def remove_source(self, assistant: Assistant, place: str) -> int:
        """Remove a source and its documents from the index; return the number of documents."""
        ...
