"""Lists, shows, or removes the documents in the index."""

import argparse
import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.values import Fields
from cli.printing import print_line, say_json
from config.settings import Settings, load_settings
from deploy.assembly.data_folder import open_source_registry
from deploy.errors import CommandError
from envelope.json_values import read_objects

if TYPE_CHECKING:
    from knowledge.source_registry import SourceRegistry

ACTIONS = ("list", "show", "remove")
EXIT_NOTHING_FOUND = 3
_SHOWN = (
    "id",
    "title",
    "file",
    "root",
    "url",
    "language",
    "kind",
    "chunks",
    "stated_version",
    "groups",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk documents`."""
    parser.add_argument(
        "action",
        choices=ACTIONS,
        help="list: list documents, one per line; show: show all fields; remove: remove "
        "documents from the index (files are not deleted)",
    )
    parser.add_argument(
        "patterns",
        nargs="*",
        metavar="PATTERN",
        help="id of a document, a file or folder (which may no longer exist), or a pattern of "
        "these with * (in quotes)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.epilog = f"exit status: 0 success, {EXIT_NOTHING_FOUND} no document was found, 1 error"


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk documents`."""
    if chosen.action != "list" and not chosen.patterns:
        raise CommandError(
            f"refdesk documents {chosen.action} requires an id, a file, a folder or a pattern; "
            "see: refdesk documents list"
        )
    settings = load_settings()
    action = "remove" if chosen.action == "remove" else "list"
    result = asyncio.run(_request(settings, action=action, patterns=tuple(chosen.patterns)))
    if chosen.action == "remove":
        _forget_sources(open_source_registry(settings.data_place), chosen.patterns)
    documents = read_objects(result.get("documents"))
    if chosen.json:
        say_json({"documents": documents, "total": result.get("total", 0)})
    else:
        for line in _lines(
            chosen.action, documents, result, settings.index_location, chosen.patterns
        ):
            print_line(line)
    return 0 if documents or not chosen.patterns else EXIT_NOTHING_FOUND


async def _request(settings: Settings, **request: Any) -> Fields:
    """Execute a request in this process, or in the process that owns the index."""
    from deploy.assembly.ingestion_run import request_documents
    from knowledge.owner_requests import OwnerRequest

    # A relative path starts at the working directory of this command, not of the process that owns
    # the index.
    return await request_documents(settings, OwnerRequest(folder=str(Path.cwd()), **request))


def _forget_sources(registry: "SourceRegistry", patterns: Sequence[str]) -> None:
    """Remove sources whose documents were all removed, so that a refresh does not add the documents
    again.
    """
    for pattern in patterns:
        for root in dict.fromkeys((pattern, os.path.realpath(pattern), os.path.abspath(pattern))):
            registry.forget(root)


def _lines(
    action: str,
    documents: Sequence[Mapping[str, object]],
    result: Fields,
    place: str,
    patterns: Sequence[str],
) -> list[str]:
    if not documents:
        about = f" that match {' or '.join(map(repr, patterns))}" if patterns else ""
        return [f"there are no documents{about} in {place}"]
    if action == "show":
        return [line for document in documents for line in _describe(document)]
    verb = "removed " if action == "remove" else ""
    lines = [
        f"{verb}{document['id']}  {document['title']}  ({document['language']})"
        for document in documents
    ]
    left = int(str(result.get("total", 0))) - len(documents)
    lines += [f"and {left} more"] if left > 0 else []
    return [*lines, f"{verb}{result.get('total')} documents in {place}"]


def _describe(document: Mapping[str, object]) -> list[str]:
    return [f"{name}: {document[name]}" for name in _SHOWN if document.get(name)] + [""]
