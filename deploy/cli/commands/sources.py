"""Lists the sources of documents, adds and removes some, or reads them now."""

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime

from config.settings import Settings, load_settings
from deploy.assembly.source_registry import (
    RegisteredSource,
    SourceRegistry,
    check_schedule,
    parse_source,
)
from deploy.cli.commands.ingest import ingest_and_report
from deploy.cli.printing import print_line, say_json
from deploy.errors import EXIT_SOME_FAILED, CommandError
from knowledge.errors import KnowledgeError

EXIT_NOTHING_FOUND = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
    parser.add_argument("--revision", default="", help="branch, tag or commit of a repository")
    parser.add_argument("--folder", default="", help="folder of a repository, such as docs")
    parser.add_argument("--web-address", default="", metavar="PATTERN", help="as in refdesk ingest")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.epilog = f"exit status: 0 success, {EXIT_NOTHING_FOUND} no such source, 1 error"


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk sources`."""
    settings = load_settings()
    if chosen.action == "list":
        return _list(settings, as_json=chosen.json)
    if chosen.action == "sync":
        return _sync(settings, chosen.sources, as_json=chosen.json)
    if not chosen.sources:
        raise CommandError(f"sources {chosen.action} needs a source; see: refdesk sources list")
    if chosen.action == "remove":
        return _remove(settings, chosen.sources)
    return _add(settings, chosen)


def _add(settings: Settings, chosen: argparse.Namespace) -> int:
    registry = SourceRegistry(settings)
    schedule = check_schedule(chosen.schedule)
    for text in chosen.sources:
        spec = parse_source(
            text,
            revision=chosen.revision,
            folder=chosen.folder,
            web_address=chosen.web_address,
        )
        registry.add(spec, schedule)
        when = f"on the schedule {schedule!r}" if schedule else "by: refdesk sources sync"
        print_line(f"added {spec.root}; it is read {when}")
    return 0


def _remove(settings: Settings, roots: Sequence[str]) -> int:
    registry = SourceRegistry(settings)
    is_found = False
    for text in roots:
        found = [one.spec.root for one in _match(registry.list_own(), text)]
        for root in found:
            registry.forget(root)
            print_line(
                f"removed {root}; its documents stay in the index; to remove them: refdesk "
                f"documents remove {root}"
            )
        is_found = is_found or bool(found)
    return 0 if is_found else EXIT_NOTHING_FOUND


def _sync(settings: Settings, named: Sequence[str], *, as_json: bool) -> int:
    known = SourceRegistry(settings).list_own()
    wanted = [one for text in named for one in _match(known, text)] if named else known
    if not wanted:
        raise CommandError("no such source; see: refdesk sources list")
    statuses = []
    for one in wanted:
        try:
            statuses.append(ingest_and_report([one.spec], as_json=as_json))
        except (KnowledgeError, CommandError) as error:
            SourceRegistry(settings).record_error(one.spec, error)
            print_line(f"{one.spec.root} was not read: {error}")
            statuses.append(EXIT_SOME_FAILED)
    return max(statuses)


def _match(known: Sequence[RegisteredSource], text: str) -> list[RegisteredSource]:
    return [one for one in known if one.spec.root in (text, parse_source(text).root)]


def _list(settings: Settings, *, as_json: bool) -> int:
    known = SourceRegistry(settings).list_own()
    if as_json:
        say_json({"sources": [describe_source(one) for one in known]})
        return 0
    for line in [line for one in known for line in _lines(one)] or ["there are no sources"]:
        print_line(line)
    return 0


def describe_source(source: RegisteredSource) -> dict[str, object]:
    """Return a source and its state as values for JSON."""
    state = "waiting" if not source.read_at else "failed" if source.failed else "read"
    return {
        "source": source.spec.root,
        "state": state,
        "schedule": source.schedule,
        "read_at": _write_time(source.read_at),
        "next_at": _write_time(source.next_at()),
        "failed": source.failed,
        "reasons": list(source.reasons),
    }


def _lines(source: RegisteredSource) -> list[str]:
    fields = describe_source(source)
    when = f"read {fields['read_at']}" if source.read_at else "not read yet"
    following = f", next {fields['next_at']} ({source.schedule})" if source.schedule else ""
    lines = [f"{source.spec.root}: {when}{following}"]
    if source.failed:
        lines.append(
            f"  documents that could not be read: {source.failed}; their previous versions "
            "stay in the index"
        )
        lines += (f"  {reason}" for reason in source.reasons)
    return lines


def _write_time(seconds: float | None) -> str | None:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC") if seconds else None
