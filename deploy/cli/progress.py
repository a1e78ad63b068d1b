"""Shows the progress of an ingestion: a bar on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from knowledge.ingestion_report import DescriptionUsage, IngestionResult, PlainReport, Report

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def report_on_terminal(*, quiet: bool) -> Iterator[Report]:
    """Provide the report, which writes to standard error; results go to standard output."""
    if quiet:
        yield PlainReport(lambda _line: None)
    elif sys.stderr.isatty():
        with _bar() as progress:
            yield BarReport(progress)
    else:
        yield LineReport(lambda line: print_line(f"{line}\n"))


def print_line(text: str) -> None:
    """Write to standard error without buffering."""
    sys.stderr.write(text)
    sys.stderr.flush()


class LineReport(PlainReport):
    """Writes plain lines; the command itself prints the result."""

    def finish(self, result: IngestionResult) -> None:
        """Print nothing."""

    def record_failure(self, source: str, reason: str) -> None:
        """Print nothing: the result lists the failures."""


class BarReport:
    """Shows a bar for each folder, and warnings above it."""

    def __init__(self, progress: "Progress") -> None:
        self._progress = progress
        self._task = progress.add_task("reading", total=None, usage="")

    def start(self, root: str, files: int) -> None:
        """Begin the bar of a folder."""
        self._progress.update(self._task, description=shorten(root), total=files, completed=0)

    def advance(self, files: int, documents: int, chunks: int) -> None:
        """Move the bar."""
        self._progress.update(self._task, completed=files, documents=documents, chunks=chunks)

    def advance_crawl(self, start: str, visited: int, waiting: int) -> None:
        """Advance the bar of a website, whose total grows with the links that are found."""
        self._progress.update(
            self._task, description=shorten(start), completed=visited, total=visited + waiting
        )

    def advance_descriptions(self, usage: DescriptionUsage) -> None:
        """Show the calls and their cost behind the bar."""
        price = "?" if usage.cost_usd is None else f"{usage.cost_usd:.2f}"
        self._progress.update(self._task, usage=f"{usage.calls} model calls, {price} USD")

    def record_failure(self, source: str, reason: str) -> None:
        """Print nothing: the result lists the failures."""

    def record_warning(self, source: str, reason: str) -> None:
        """Print a warning about a file above the bar."""
        self._progress.console.print(f"note on {source}: {reason}", markup=False, highlight=False)

    def record_skip(self, source: str, reason: str) -> None:
        """Print a line about a skipped file above the bar."""
        self._progress.console.print(f"skipped {source}: {reason}", markup=False, highlight=False)

    def finish(self, result: IngestionResult) -> None:
        """Fill the bar."""
        self._progress.refresh()


def shorten(name: str) -> str:
    """Return the end of a name that is too long to be shown before a bar."""
    return name if len(name) <= 32 else f"…{name[-31:]}"


def _bar() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("files"),
        TextColumn("{task.fields[usage]}", markup=False),
        console=Console(stderr=True),
    )
