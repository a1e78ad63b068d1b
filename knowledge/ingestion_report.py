"""Reports the progress and the result of an ingestion."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class IngestionResult:
    """The result of an ingestion; `failed`, `warned` and `skipped` have sources with the reason.

    `added`, `changed`, `unchanged` and `removed` count documents; `chunks` counts written chunks.
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


class Report(Protocol):
    """Receives progress; its methods run in the event loop and must return quickly."""

    def start(self, root: str, files: int) -> None:
        """Report the start of a folder with its number of files."""
        ...

    def advance(self, files: int, documents: int, chunks: int) -> None:
        """Report the files read, and the documents and chunks written, in this folder so far."""
        ...

    def advance_crawl(self, start: str, visited: int, waiting: int) -> None:
        """Report the pages of a website that were visited and that wait, after each page."""
        ...

    def record_failure(self, source: str, reason: str) -> None:
        """Report a source that could not be read and was skipped."""
        ...

    def record_warning(self, source: str, reason: str) -> None:
        """Report a problem of a source that was read nevertheless."""
        ...

    def record_skip(self, source: str, reason: str) -> None:
        """Report a file that is no document, or has a format without a reader."""
        ...

    def finish(self, result: IngestionResult) -> None:
        """Report the result."""
        ...


class PlainReport:
    """Writes plain lines, for logs, pipes and terminals without a progress bar."""

    def __init__(self, write: Callable[[str], None], *, files_per_line: int = 100) -> None:
        self._write = write
        self._files_per_line = files_per_line
        self._total = 0
        self._reported_files = 0

    def start(self, root: str, files: int) -> None:
        self._total, self._reported_files = files, 0
        self._write(f"reading {_format_count(files, 'file')} from {root}")

    def advance(self, files: int, documents: int, chunks: int) -> None:
        if files - self._reported_files >= self._files_per_line:
            self._reported_files = files
            self._write(
                f"{files} of {self._total} files read, {_format_count(chunks, 'chunk')} written"
            )

    def advance_crawl(self, start: str, visited: int, waiting: int) -> None:
        if visited % self._files_per_line == 0:
            visits = _format_count(visited, "page")
            self._write(f"fetched {visits} of {start}, {waiting} more are known")

    def record_failure(self, source: str, reason: str) -> None:
        self._write(f"could not read {source}: {reason}")

    def record_skip(self, source: str, reason: str) -> None:
        self._write(f"skipped {source}: {reason}")

    def record_warning(self, source: str, reason: str) -> None:
        self._write(f"note on {source}: {reason}")

    def finish(self, result: IngestionResult) -> None:
        self._write(
            f"{result.added} added, {result.changed} changed, {result.unchanged} unchanged, "
            f"{result.removed} removed, {len(result.failed)} failed, "
            f"{len(result.skipped)} skipped; "
            f"{_format_count(result.chunks, 'chunk')} in {result.seconds:.1f} s"
        )


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
