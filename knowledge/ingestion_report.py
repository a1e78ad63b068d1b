"""Reports the progress and the result of an ingestion."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Protocol

from knowledge.documents.page import LeftOut, LeftOutCounts, write_count

GUESS_SECONDS = 5.0
LONG_MINUTES = 120


@dataclass(frozen=True, slots=True)
class DescriptionUsage:
    """The calls to the model that described pages, and their cost, which is None if a price is
    unknown.

    `failed` counts the pages that the model failed to describe. `kept` counts the descriptions that
    were paid for by an interrupted ingestion.
    """

    calls: int = 0
    failed: int = 0
    kept: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)

    def format(self) -> str:
        """Return the usage as text."""
        price = "of unknown price" if self.cost_usd is None else f"{self.cost_usd:.4f} USD"
        tokens = f"{self.input_tokens} tokens in, {self.output_tokens} out, {price}"
        kept = f"; {self.kept} kept from an interrupted ingestion" if self.kept else ""
        calls = write_count(self.calls, "model call")
        failed = f"; {write_count(self.failed, 'page')} described by rules" if self.failed else ""
        return f"descriptions: {calls}, {tokens}{failed}{kept}"


@dataclass(frozen=True, slots=True)
class EmbeddingUsage:
    """The calls to a vendor's embedding model, and their cost, which is None if a price is
    unknown.
    """

    calls: int = 0
    input_tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)

    def __add__(self, other: "EmbeddingUsage") -> "EmbeddingUsage":
        costs = self.cost_usd, other.cost_usd
        return EmbeddingUsage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            cost_usd=None if costs[0] is None or costs[1] is None else costs[0] + costs[1],
        )

    def format(self) -> str:
        """Return the usage as text."""
        price = "of unknown price" if self.cost_usd is None else f"{self.cost_usd:.4f} USD"
        calls = write_count(self.calls, "model call")
        return f"embedding: {calls}, {self.input_tokens} tokens in, {price}"


@dataclass(frozen=True, slots=True)
class LimitWaits:
    """How many requests to models had to wait because of rate limits, and their total waiting
    time.
    """

    waits: int = 0
    seconds: float = 0.0

    def format(self) -> str:
        """Return the waits as text."""
        waits = write_count(self.waits, "request")
        return f"limits: {waits} waited {self.seconds:.1f} s for MODEL_LIMITS"


@dataclass(frozen=True, slots=True)
class IngestionResult:
    """The result of an ingestion; `failed`, `warned` and `skipped` contain sources with the reason.

    `left_out` lists document content that is missing from their pages, each with the source.

    `added`, `changed`, `unchanged` and `removed` count documents; `chunks` counts written chunks.
    `descriptions` is None if no model describes pages, `embedding` if no vendor embeds them, and
    `waits` if no request waited. `replacement` describes the state of an index that replaces one
    for a different embedding model. `linked_hosts` contains the hosts to which the written
    documents link most often, with the number of these documents.
    """

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    warned: tuple[tuple[str, str], ...] = ()
    chunks: int = 0
    seconds: float = 0.0
    skipped: tuple[tuple[str, str], ...] = ()
    left_out: tuple[tuple[str, LeftOut], ...] = ()
    descriptions: DescriptionUsage | None = None
    replacement: str = ""
    embedding: EmbeddingUsage | None = None
    waits: LimitWaits | None = None
    linked_hosts: tuple[tuple[str, int], ...] = ()

    def sum_left_out(self) -> list[LeftOut]:
        """Return the files and parts of files missing from the index, by kind and reason."""
        counts = LeftOutCounts()
        for source, reason in self.skipped:
            counts.add("file", reason, name=source)
        counts.take(replace(left_out, names=()) for _, left_out in self.left_out)
        return list(counts.list())

    def list_costs(self) -> list[str]:
        """Return a line for each type of model that was called, and a line about waits due to rate
        limits.
        """
        costs = (self.descriptions, self.embedding, self.waits)
        return [cost.format() for cost in costs if cost is not None]


class Report(Protocol):
    """Receives progress. Its methods run in the event loop and must return quickly."""

    def start(self, root: str, files: int) -> None:
        """Report the start of a folder, with its number of files."""

    def advance(self, files: int, documents: int, chunks: int) -> None:
        """Report the number of files read, and of documents and chunks written, in this folder so
        far.
        """

    def advance_crawl(self, start: str, visited: int, waiting: int) -> None:
        """Report the number of visited and waiting pages of a website, after each page."""

    def advance_descriptions(self, usage: DescriptionUsage) -> None:
        """Report the calls for descriptions so far, after each call."""


class PlainReport:
    """Writes plain lines, for logs, pipes, and terminals without a progress bar."""

    def __init__(self, write: Callable[[str], None], *, files_per_line: int = 100) -> None:
        self._write = write
        self._files_per_line = files_per_line
        self._began = 0.0
        self._total = 0
        self._reported_files = 0
        self._reported_calls = 0

    def start(self, root: str, files: int) -> None:
        self._began, self._total, self._reported_files = time.monotonic(), files, 0
        self._write(f"reading {write_count(files, 'file')} from {root}")

    def advance(self, files: int, documents: int, chunks: int) -> None:
        if files - self._reported_files >= self._files_per_line:
            self._reported_files = files
            left = estimate_rest(time.monotonic() - self._began, files, self._total)
            self._write(
                f"{files} of {self._total} files read, {write_count(chunks, 'chunk')} written{left}"
            )

    def advance_crawl(self, start: str, visited: int, waiting: int) -> None:
        if visited % self._files_per_line == 0:
            visits = write_count(visited, "page")
            self._write(f"fetched {visits} of {start}, {waiting} more to fetch")

    def advance_descriptions(self, usage: DescriptionUsage) -> None:
        if usage.calls - self._reported_calls >= self._files_per_line:
            self._reported_calls = usage.calls
            self._write(f"so far, {usage.format()}")


class ProgressReport(PlainReport):
    """Stores the progress of an ingestion, without any output."""

    def __init__(self) -> None:
        super().__init__(lambda _line: None)
        self.root = ""
        self.counts = (0, 0, 0, 0)
        """The number of files in the source, of files read, and of documents and chunks written."""

    def start(self, root: str, files: int) -> None:
        super().start(root, files)
        self.root, self.counts = root, (files, 0, 0, 0)

    def advance(self, files: int, documents: int, chunks: int) -> None:
        self.counts = (self._total, files, documents, chunks)

    def format(self) -> str:
        """Return the progress as text, or an empty string before the files were counted."""
        if not self._total:
            return ""
        files = self.counts[1]
        left = estimate_rest(time.monotonic() - self._began, files, self._total)
        return f"{files} of {self._total} files{left}"


def estimate_rest(seconds: float, done: int, total: int) -> str:
    """Return the estimated remaining time, preceded by a comma, assuming the same speed as in the
    first `seconds`.

    Returns an empty string if the estimate would be a guess, and at the end.
    """
    if seconds < GUESS_SECONDS or not 0 < done < total:
        return ""
    minutes = seconds * (total - done) / done / 60
    if minutes < 1:
        return ", less than a minute left"
    if minutes < LONG_MINUTES:
        return f", about {minutes:.0f} min left"
    return f", about {minutes / 60:.0f} h left"
