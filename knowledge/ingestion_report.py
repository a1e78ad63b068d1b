"""Tells how an ingestion goes, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class IngestionResult:
    """What an ingestion did; `failed` and `warned` name sources with the reason.

    `added`, `changed`, `unchanged` and `removed` count documents; `chunks` are those written.
    """

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    warned: tuple[tuple[str, str], ...] = ()
    chunks: int = 0
    seconds: float = 0.0


class Report(Protocol):
    """Somebody who is told; called from the event loop, so it must not take long."""

    def start(self, root: str, files: int) -> None:
        """Say that the files of a folder are going to be read."""
        ...

    def advance(self, files: int, documents: int, chunks: int) -> None:
        """Say how many files were read, documents and chunks written, of this folder so far."""
        ...

    def record_failure(self, source: str, reason: str) -> None:
        """Say that something could not be read and was skipped."""
        ...

    def record_warning(self, source: str, reason: str) -> None:
        """Say that something was read although it was odd."""
        ...

    def finish(self, result: IngestionResult) -> None:
        """Say what came of all of it."""
        ...


class PlainReport:
    """Writes plain lines: for logs, pipes and terminals that show no bar."""

    def __init__(self, write: Callable[[str], None], *, files_per_line: int = 100) -> None:
        self._write = write
        self._files_per_line = files_per_line
        self._total = 0
        self._told = 0

    def start(self, root: str, files: int) -> None:
        self._total, self._told = files, 0
        self._write(f"reading {_format_count(files, 'file')} from {root}")

    def advance(self, files: int, documents: int, chunks: int) -> None:
        if files - self._told >= self._files_per_line:
            self._told = files
            self._write(
                f"{files} of {self._total} files read, {_format_count(chunks, 'chunk')} written"
            )

    def record_failure(self, source: str, reason: str) -> None:
        self._write(f"skipped {source}: {reason}")

    def record_warning(self, source: str, reason: str) -> None:
        self._write(f"note on {source}: {reason}")

    def finish(self, result: IngestionResult) -> None:
        self._write(
            f"{result.added} added, {result.changed} changed, {result.unchanged} unchanged, "
            f"{result.removed} removed, {len(result.failed)} failed; "
            f"{_format_count(result.chunks, 'chunk')} in {result.seconds:.1f} s"
        )


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
