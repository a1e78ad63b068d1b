"""Reads documents into the index."""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from config.settings import load_settings
from deploy.assembly.runtime import run_ingestion
from deploy.cli.printing import print_line, say_json
from deploy.cli.progress import report_on_terminal
from deploy.errors import CommandError
from knowledge.documents.formats import SUFFIXES
from knowledge.ingestion_report import IngestionResult

EXIT_SOME_FAILED = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk ingest`."""
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a folder or a file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.epilog = (
        f"exit status: 0 all files were read, {EXIT_SOME_FAILED} some could not be read, 1 error"
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk ingest`."""
    missing = [str(path) for path in chosen.paths if not path.exists()]
    if missing:
        raise CommandError(
            f"expected a file or a folder of documents ({' '.join(sorted(SUFFIXES))}), "
            f"found nothing at {', '.join(missing)}; paths start at {Path.cwd()}"
        )
    result = asyncio.run(_ingest(chosen.paths, quiet=chosen.json))
    if chosen.json:
        say_json(result_fields(result))
    else:
        for line in result_lines(result):
            print_line(line)
    return EXIT_SOME_FAILED if result.failed else 0


async def _ingest(paths: list[Path], *, quiet: bool) -> IngestionResult:
    with report_on_terminal(quiet=quiet) as report:
        return await run_ingestion(load_settings(), paths, report)


def result_lines(result: IngestionResult) -> list[str]:
    """Return the result of an ingestion as lines for a person."""
    lines = [f"could not read {source}: {reason}" for source, reason in result.failed]
    counts = {
        "added": result.added,
        "changed": result.changed,
        "unchanged": result.unchanged,
        "removed": result.removed,
        "failed": len(result.failed),
        "skipped": len(result.skipped),
    }
    documents = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    if not documents:
        return ["no documents found"]
    return [*lines, f"documents: {documents}; {result.chunks} new chunks in {result.seconds:.1f} s"]


def result_fields(result: IngestionResult) -> dict[str, object]:
    """Return the result of an ingestion as values for JSON."""
    return {
        "added": result.added,
        "changed": result.changed,
        "unchanged": result.unchanged,
        "removed": result.removed,
        "failed": _list_reasons(result.failed),
        "warned": _list_reasons(result.warned),
        "skipped": _list_reasons(result.skipped),
        "chunks": result.chunks,
        "seconds": round(result.seconds, 3),
    }


def _list_reasons(sources: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"source": source, "reason": reason} for source, reason in sources]
