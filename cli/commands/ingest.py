"""Ingests documents and websites into the index, shows the progress, and manages the sources."""

import argparse
import asyncio
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from broker.errors import BrokerError
from citations.links import clean_text
from cli.printing import ERASE_LINE, WIDTH, print_line, say_json
from config.settings import Settings, load_settings
from deploy.assembly.data_folder import open_source_registry
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.runtime import connect_runtime
from deploy.assembly.source_refresh import find_failure
from deploy.assembly.webhooks import announce_failed_source
from deploy.errors import EXIT_SOME_FAILED, CommandError
from knowledge.documents.formats import SUFFIXES
from knowledge.errors import KnowledgeError
from knowledge.ingestion_report import (
    DescriptionUsage,
    IngestionResult,
    PlainReport,
    Report,
    estimate_rest,
)
from knowledge.owner_requests import RESULT
from knowledge.source_registry import (
    RegisteredSource,
    SourceRegistry,
    SourceSpec,
    check_schedule,
    check_website,
    parse_source,
)

BAR_WIDTH = 24
EXIT_NOTHING_FOUND = 3


class BarReport:
    """Shows a progress bar for each folder."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._name, self._done, self._total = "reading", 0, 0
        self._began = time.monotonic()
        self._usage = ""

    def start(self, root: str, files: int) -> None:
        """Show the progress bar of a folder."""
        self._name, self._done, self._total = shorten(root), 0, files
        self._began = time.monotonic()
        self._draw()

    def advance(self, files: int, documents: int, chunks: int) -> None:
        """Advance the progress bar."""
        self._done = files
        self._draw()

    def advance_crawl(self, start: str, visited: int, waiting: int) -> None:
        """Advance the progress bar of a website, whose total grows with the links that are
        found.
        """
        self._name, self._done, self._total = shorten(start), visited, visited + waiting
        self._draw()

    def advance_descriptions(self, usage: DescriptionUsage) -> None:
        """Show the calls and their cost after the progress bar."""
        price = "?" if usage.cost_usd is None else f"{usage.cost_usd:.2f}"
        self._usage = f" {usage.calls} model calls, {price} USD"
        self._draw()

    def close(self) -> None:
        """Move to the line after the progress bar."""
        self._write("\n")

    def _draw(self) -> None:
        filled = min(BAR_WIDTH, BAR_WIDTH * self._done // max(1, self._total))
        bar = "━" * filled + " " * (BAR_WIDTH - filled)
        left = estimate_rest(time.monotonic() - self._began, self._done, self._total)
        line = f"{self._name} {bar} {self._done}/{self._total} files{left}{self._usage}"
        room = shutil.get_terminal_size().columns - 1
        self._write(f"{ERASE_LINE}{clean_text(line)[:room]}")


@contextmanager
def report_on_terminal(*, quiet: bool) -> Iterator[Report]:
    """Provide the report, which writes to standard error; results are written to standard
    output.
    """
    if quiet:
        yield PlainReport(lambda _line: None)
    elif sys.stderr.isatty():
        bar = BarReport(write_progress)
        try:
            yield bar
        finally:
            bar.close()
    else:
        yield PlainReport(lambda line: write_progress(f"{line}\n"))


def write_progress(text: str) -> None:
    """Write to standard error without buffering."""
    sys.stderr.write(text)
    sys.stderr.flush()


def shorten(name: str) -> str:
    """Return the end of a name that is too long to be shown in front of a progress bar."""
    line = " ".join(clean_text(name).split())
    return line if len(line) <= 32 else f"…{line[-31:]}"


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
    _add_source_options(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.epilog = (
        f"exit status: 0 all files were read, {EXIT_SOME_FAILED} some could not be read, 1 error"
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk ingest`."""
    specs = [_parse(source, chosen) for source in chosen.sources]
    missing = [
        source
        for source, spec in zip(chosen.sources, specs, strict=True)
        if spec.is_local and not spec.repository.exists()
    ]
    if missing:
        raise CommandError(
            f"expected a file or a folder of documents ({' '.join(sorted(SUFFIXES))}), "
            f"found nothing at {', '.join(missing)}; relative paths start at {Path.cwd()}"
        )
    return _report(asyncio.run(_ingest(specs, quiet=chosen.json)), as_json=chosen.json)


def result_lines(result: IngestionResult) -> list[str]:
    """Return the result of an ingestion as human-readable lines."""
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
        return [f"no documents found; nothing was added to {place}", *_count_warnings(result)]
    lines.append(f"documents: {documents}; {result.chunks} new chunks in {result.seconds:.1f} s")
    lines += (f"not in the index: {part}" for part in result.sum_left_out())
    lines += _count_warnings(result)
    lines += result.list_costs()
    return [*lines, result.replacement] if result.replacement else lines


def result_fields(result: IngestionResult) -> dict[str, object]:
    """Return the result of an ingestion as values for JSON."""
    fields = (
        RESULT.dump_python(result, mode="json")
        | {
            name: [{"source": source, "reason": reason} for source, reason in getattr(result, name)]
            for name in ("failed", "warned", "skipped")
        }
        | {"left_out": [{"source": source, **asdict(part)} for source, part in result.left_out]}
        | {"linked_hosts": [{"host": name, "documents": n} for name, n in result.linked_hosts]}
        | {"seconds": round(result.seconds, 3)}
    )
    # Resources that were not used, such as a model, have no value.
    return {name: value for name, value in fields.items() if value is not None and value != ""}


def add_sources_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk sources`."""
    parser.add_argument(
        "action",
        choices=("list", "add", "remove", "sync"),
        help="list: show sources and their state; add: add a source, which `refdesk serve` and "
        "`refdesk up` read on its schedule; remove: remove a source, but not its documents "
        "(see refdesk documents remove); sync: read some or all sources now",
    )
    parser.add_argument(
        "sources",
        nargs="*",
        metavar="SOURCE",
        help="a source as in refdesk ingest, or as `sources list` shows it",
    )
    parser.add_argument(
        "--schedule",
        default="",
        metavar="CRON",
        help="when to read it, in UTC, such as '0 6 * * *' (default: only by sync and --refresh)",
    )
    _add_source_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.epilog = (
        f"exit status: 0 success, {EXIT_NOTHING_FOUND} the source does not exist, 1 error"
    )


def run_sources(chosen: argparse.Namespace) -> int:
    """Run `refdesk sources`."""
    settings = load_settings()
    if chosen.action == "list":
        return _list(open_source_registry(settings.data_place), as_json=chosen.json)
    if chosen.action == "sync":
        return _sync(settings, chosen.sources, as_json=chosen.json)
    if not chosen.sources:
        raise CommandError(
            f"refdesk sources {chosen.action} requires a source; "
            "`refdesk sources list` shows all sources"
        )
    if chosen.action == "remove":
        return _remove(open_source_registry(settings.data_place), chosen.sources)
    return _add(open_source_registry(settings.data_place), chosen)


def describe_source(source: RegisteredSource) -> dict[str, object]:
    """Return a source and its state as values for JSON."""
    state = "waiting" if not source.read_at else "failed" if source.failed else "read"
    state = "failed" if source.fault else state
    return {
        "source": source.spec.root,
        "state": state,
        "schedule": source.schedule,
        "read_at": _write_time(source.read_at),
        "next_at": _write_time(source.next_at()),
        "failed": source.failed,
        "reasons": [source.fault, *source.reasons] if source.fault else list(source.reasons),
        "left_out": [asdict(part) for part in source.left_out],
    }


def _add_source_options(parser: argparse.ArgumentParser) -> None:
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
    limits = {
        "pages": "open at most N pages of a website (default: 2000)",
        "depth": "follow at most N links from the start of a website to a page (default: 20)",
        "seconds": "stop crawling a website after N seconds (default: 3600)",
    }
    for name, about in limits.items():
        parser.add_argument(f"--{name}", type=_count, metavar="N", help=about)


def _count(text: str) -> int:
    """Return a number of at least 1."""
    if not text.isascii() or not text.isdigit() or not int(text[:9]) > 0:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, found {text!r}")
    return int(text[:9])


def _parse(text: str, chosen: argparse.Namespace) -> SourceSpec:
    """Return a source with the options given on the command line."""
    limits = {name: getattr(chosen, name) for name in ("pages", "depth", "seconds")}
    spec = parse_source(
        text,
        revision=chosen.revision,
        folder=chosen.folder,
        web_address=chosen.web_address,
        **limits,
    )
    if not spec.is_website and any(limits.values()):
        raise CommandError(
            f"--pages, --depth and --seconds apply only to websites; {text!r} is not a website"
        )
    return spec


def _report(result: IngestionResult, *, as_json: bool) -> int:
    if as_json:
        say_json(result_fields(result))
    else:
        for line in result_lines(result):
            print_line(line)
    return EXIT_SOME_FAILED if result.failed else 0


async def _ingest(specs: Sequence[SourceSpec], *, quiet: bool) -> IngestionResult:
    settings = load_settings()
    for spec in specs:
        await check_website(spec)
    with report_on_terminal(quiet=quiet) as report:
        result = await run_ingestion(settings, specs, report)
    open_source_registry(settings.data_place).record(specs, result)
    return result


def _count_warnings(result: IngestionResult) -> list[str]:
    """Return a line for each reason for a warning, with one source and the number of further
    sources.
    """
    sources: dict[str, list[str]] = {}
    for source, reason in result.warned:
        sources.setdefault(reason, []).append(source)
    return [
        f"note on {named[0]}{f' and {len(named) - 1} more' if named[1:] else ''}: {reason}"
        for reason, named in sources.items()
    ]


def _add(registry: SourceRegistry, chosen: argparse.Namespace) -> int:
    schedule = check_schedule(chosen.schedule)
    for text in chosen.sources:
        spec = _parse(text, chosen)
        asyncio.run(check_website(spec))
        registry.add(spec, schedule)
        when = f"on the schedule {schedule!r}" if schedule else "by: refdesk sources sync"
        print_line(f"added {spec.root}; it is read {when}")
    return 0


def _remove(registry: SourceRegistry, roots: Sequence[str]) -> int:
    is_found = False
    for text in roots:
        known = registry.list_own(with_ownerless=True)
        removed = [source.spec.root for source in _match(known, text)]
        for root in removed:
            registry.forget(root, with_ownerless=True)
            print_line(
                f"removed {root}; its documents stay in the index; to remove them: refdesk "
                f"documents remove {root}"
            )
        is_found = is_found or bool(removed)
    return 0 if is_found else EXIT_NOTHING_FOUND


def _sync(settings: Settings, named: Sequence[str], *, as_json: bool) -> int:
    known = open_source_registry(settings.data_place).list_own()
    wanted = [source for text in named for source in _match(known, text)] if named else known
    if not wanted:
        raise CommandError("the source does not exist; `refdesk sources list` shows all sources")
    statuses = []
    for source in wanted:
        try:
            result = asyncio.run(_ingest([source.spec], quiet=as_json))
            failure = find_failure(source.spec, result)
            statuses.append(_report(result, as_json=as_json))
        except (KnowledgeError, CommandError) as error:
            open_source_registry(settings.data_place).record_error(source.spec, error)
            print_line(f"{source.spec.root} was not read: {error}")
            failure = str(error)
            statuses.append(EXIT_SOME_FAILED)
        if failure and settings.webhooks:
            asyncio.run(_announce(settings, source.spec.root, failure))
    return max(statuses)


async def _announce(settings: Settings, source: str, failure: str) -> None:
    """Notify the webhooks that a source could not be read."""
    try:
        async with connect_runtime(settings) as runtime:
            await announce_failed_source(runtime, source, failure)
    except BrokerError as error:
        print_line(f"the webhooks could not be notified: {error}")


def _match(known: Sequence[RegisteredSource], text: str) -> list[RegisteredSource]:
    exact = [source for source in known if source.spec.root == text]
    return exact or [source for source in known if source.spec.root == parse_source(text).root]


def _list(registry: SourceRegistry, *, as_json: bool) -> int:
    known = registry.list_own(with_ownerless=True)
    if as_json:
        say_json({"sources": [describe_source(source) for source in known]})
        return 0
    for source in known:
        for line in _lines(source):
            print_line(line)
    if not known:
        print_line("there are no sources")
    return 0


def _lines(source: RegisteredSource) -> list[str]:
    fields = describe_source(source)
    done = "tried" if source.failed else "read"
    when = f"{done} {fields['read_at']}" if source.read_at else "not yet read"
    has_next = source.schedule and not source.fault
    following = f", next {fields['next_at']} ({source.schedule})" if has_next else ""
    lines = [source.spec.root, f"  {when}{following}"]
    lines += _wrap_items(filter(None, [source.fault]))
    if source.failed:
        lines.append(
            f"  documents that could not be read: {source.failed}; their previous versions are "
            "kept:"
        )
    lines += _wrap_items(source.reasons)
    if source.left_out:
        lines.append("  not in the index:")
    return [*lines, *_wrap_items(map(str, source.left_out))]


def _wrap_items(texts: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a list below a source."""
    for text in texts:
        yield from textwrap.wrap(
            text,
            WIDTH,
            initial_indent="  - ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def _write_time(seconds: float | None) -> str | None:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC") if seconds else None
