"""Shows how an ingestion goes: a bar on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from knowledge.ingestion_report import IngestionResult, PlainReport, Report

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def report_on_terminal(*, quiet: bool) -> Iterator[Report]:
    """Yield who is to be told; everything goes to standard error, results to standard output."""
    if quiet:
        yield PlainReport(lambda _line: None)
    elif sys.stderr.isatty():
        with _bar() as progress:
            yield BarReport(progress)
    else:
        yield LineReport(lambda line: print_line(f"{line}\n"))


def print_line(text: str) -> None:
    """Write to standard error at once."""
    sys.stderr.write(text)
    sys.stderr.flush()


class LineReport(PlainReport):
    """Plain lines; the command itself says what came of it."""

    def finish(self, result: IngestionResult) -> None:
        """Say nothing."""

    def record_failure(self, source: str, reason: str) -> None:
        """Leave it to the result to name what failed."""


class BarReport:
    """A bar per folder, failures above it."""

    def __init__(self, progress: "Progress") -> None:
        self._progress = progress
        self._task = progress.add_task("reading", total=None)

    def start(self, root: str, files: int) -> None:
        """Begin the bar of a folder."""
        name = root if len(root) <= 32 else f"…{root[-31:]}"
        self._progress.update(self._task, description=name, total=files, completed=0)

    def advance(self, files: int, documents: int, chunks: int) -> None:
        """Move the bar."""
        self._progress.update(self._task, completed=files, documents=documents, chunks=chunks)

    def record_failure(self, source: str, reason: str) -> None:
        """Leave it to the result to name what failed."""

    def record_warning(self, source: str, reason: str) -> None:
        """Tell what was odd, above the bar."""
        self._progress.console.print(f"note on {source}: {reason}", markup=False, highlight=False)

    def finish(self, result: IngestionResult) -> None:
        """Fill the bar."""
        self._progress.refresh()


def _bar() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("files"),
        console=Console(stderr=True),
    )
