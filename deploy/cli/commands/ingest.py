"""Reads documents into the index."""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from config.settings import load_settings
from deploy.assembly.ingestion import dump_costs
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.source_registry import SourceRegistry, SourceSpec, parse_source
from deploy.cli.printing import print_line, say_json
from deploy.cli.progress import report_on_terminal
from deploy.errors import EXIT_SOME_FAILED, CommandError
from knowledge.documents.formats import SUFFIXES
from knowledge.ingestion_report import IngestionResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk ingest`."""
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="a folder, a file, a zip archive, git:PATH of a local repository, a web address "
        "such as https://docs.example.com/guide/, whose pages below it are crawled, a store: "
        "s3://, gs://, az://, sftp:// or webdav://, or a service: confluence://HOST/SPACE, "
        "zendesk://HOST",
    )
    parser.add_argument(
        "--revision", default="", help="branch, tag or commit of a repository (default: HEAD)"
    )
    parser.add_argument("--folder", default="", help="folder of a repository, such as docs")
    parser.add_argument(
        "--web-address",
        default="",
        metavar="PATTERN",
        help="address of each file on the web, with {path}, {page}, {id} and {revision}, such as "
        "https://github.com/acme/docs/blob/{revision}/{path}",
    )
    add_result_arguments(parser)


def add_result_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of commands that print the result of an ingestion."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.epilog = (
        f"exit status: 0 all files were read, {EXIT_SOME_FAILED} some could not be read, 1 error"
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk ingest`."""
    options = {
        "revision": chosen.revision,
        "folder": chosen.folder,
        "web_address": chosen.web_address,
    }
    specs = [parse_source(source, **options) for source in chosen.sources]
    missing = [
        source
        for source, spec in zip(chosen.sources, specs, strict=True)
        if spec.is_local and not spec.repository.exists()
    ]
    if missing:
        raise CommandError(
            f"expected a file or a folder of documents ({' '.join(sorted(SUFFIXES))}), "
            f"found nothing at {', '.join(missing)}; paths start at {Path.cwd()}"
        )
    return ingest_and_report(specs, as_json=chosen.json)


def ingest_and_report(specs: Sequence[SourceSpec], *, as_json: bool) -> int:
    """Ingest sources, print the result, and return the exit status."""
    result = asyncio.run(_ingest(specs, quiet=as_json))
    if as_json:
        say_json(result_fields(result))
    else:
        for line in result_lines(result):
            print_line(line)
    return EXIT_SOME_FAILED if result.failed else 0


async def _ingest(specs: Sequence[SourceSpec], *, quiet: bool) -> IngestionResult:
    settings = load_settings()
    with report_on_terminal(quiet=quiet) as report:
        result = await run_ingestion(settings, specs, report)
    SourceRegistry(settings).record(specs, result)
    return result


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
        settings = load_settings()
        place = settings.qdrant_url or settings.refdesk_data.resolve()
        return [f"no documents found; nothing was added to {place}"]
    lines.append(f"documents: {documents}; {result.chunks} new chunks in {result.seconds:.1f} s")
    lines += result.list_costs()
    return [*lines, result.replacement] if result.replacement else lines


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
        **({"replacement": result.replacement} if result.replacement else {}),
        **{name: value for name, value in dump_costs(result).items() if value is not None},
    }


def _list_reasons(sources: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"source": source, "reason": reason} for source, reason in sources]
