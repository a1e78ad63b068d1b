"""Moves documents in an index that this process owns, after their files were moved."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from config.settings import Settings
from deploy.assembly.data_folder import open_source_registry
from deploy.assembly.indexed_documents import OwnerRequest
from deploy.assembly.knowledge import Knowledge
from deploy.assembly.languages import language_of, make_detector
from deploy.assembly.source_opening import open_local
from knowledge.errors import MoveRefused
from knowledge.index.listing import ListedDocument, find_file, is_below
from knowledge.index.overlap import SurveySource, survey_part
from knowledge.ingestion import Describer, ingest
from knowledge.ingestion_report import IngestionResult, PlainReport
from knowledge.isolation.messages import ReadingLimits
from knowledge.isolation.reader_process import ReaderProcess
from knowledge.moves import DocumentMove, MovedSource, plan_moves
from knowledge.source_registry import GIT, SourceRegistry, SourceSpec

if TYPE_CHECKING:
    from pydantic import JsonValue

    from broker.values import Fields


MOST_FAILURES = 100


async def move_documents(
    settings: Settings,
    knowledge: Knowledge,
    request: OwnerRequest,
    describer: Describer,
    limits: ReadingLimits,
) -> "Fields":
    """Move the documents at `old` to `new`.

    With a `folder`, both are paths of this machine, relative to it; else `old` is the id of a
    document or its file or folder, and `new` a file or folder, relative to the ingested path.
    The result has `moved`, `removed` (documents that no group may read any more, or that were at
    the new place before) and `failed`, or `refused`, the reason why nothing was moved.
    """
    listed = await knowledge.index.list_documents()
    try:
        if request.folder is not None:
            old, new = (
                _find_place(one, Path(request.folder)) for one in (request.old, request.new)
            )
        else:
            old, new = _resolve_names(listed, request.old, request.new)
        moves = plan_moves(listed, old, new)
    except MoveRefused as error:
        return {"refused": str(error)}
    if not moves:
        return {"moved": 0, "removed": 0, "failed": []}
    with ReaderProcess(limits) as reader:
        result = await _ingest_moved(settings, knowledge, moves, describer, reader)
    failed: list[JsonValue] = [[*failure] for failure in result.failed[:MOST_FAILURES]]
    return {"moved": result.changed + result.added, "removed": result.removed, "failed": failed}


async def _ingest_moved(
    settings: Settings,
    knowledge: Knowledge,
    moves: Sequence[DocumentMove],
    describer: Describer,
    reader: ReaderProcess,
) -> IngestionResult:
    by_root: dict[str, list[DocumentMove]] = {}
    for move in moves:
        by_root.setdefault(move.root, []).append(move)
    registry = open_source_registry(settings)
    specs = {root: _find_spec(registry, root, some) for root, some in by_root.items()}
    with ExitStack() as stack:
        result = await ingest(
            [
                MovedSource(some, _open_source(settings, specs[root], stack))
                for root, some in by_root.items()
            ],
            knowledge.index,
            knowledge.embedder,
            describer,
            reader,
            PlainReport(lambda _line: None),
            language_of=language_of(settings, make_detector(settings)),
            default_language=settings.default_language,
        )
    if result.changed:
        _register(registry, moves, specs)
    return result


def _register(
    registry: SourceRegistry, moves: Sequence[DocumentMove], specs: Mapping[str, SourceSpec]
) -> None:
    """Let the next refresh read the sources where they are now."""
    for root in {move.document.root for move in moves if move.takes_root}:
        registry.forget(root)
    known = {spec.root for spec in registry.list_specs()}
    added = [spec for root, spec in specs.items() if root not in known]
    registry.record(added, IngestionResult())


def _find_place(place: str, folder: Path) -> str:
    """Return the absolute form of a place that a person names."""
    if place.startswith(GIT):
        return f"{GIT}{os.path.abspath(folder / place.removeprefix(GIT))}"
    return place if "://" in place else os.path.realpath(folder / place)


def _resolve_names(listed: Sequence[ListedDocument], old: str, new: str) -> tuple[str, str]:
    """Return the places of a document or folder and of its new name; raises `MoveRefused`."""
    target = PurePosixPath(new)
    if target.is_absolute() or ".." in target.parts or not target.parts:
        raise MoveRefused("expected a file or folder below the ingested path as the new place")
    named = [document for document in listed if document.id == old] or [
        document for document in listed if is_below(document.source, old)
    ]
    roots = {document.root for document in named}
    if len(roots) > 1:
        raise MoveRefused("expected files of one source, found several: name the id of a document")
    if not roots:
        return old, new
    (root,) = roots
    source = named[0].source if named[0].id == old else old
    return find_file(root, source), find_file(root, str(target))


def _find_spec(registry: SourceRegistry, root: str, moves: Sequence[DocumentMove]) -> SourceSpec:
    """Return the source of an ingested path, with the options that it was ingested with."""
    known = {spec.root: spec for spec in registry.list_specs()}
    spec = known.get(root)
    before = (move.document.root for move in moves if move.takes_root)
    earlier = next((known[name] for name in before if name in known), None)
    if spec is not None:
        return spec
    if earlier is None or (earlier.is_repository and not root.endswith(earlier.folder)):
        return SourceSpec(place=root)
    place = root.removesuffix(f"/{earlier.folder}") if earlier.folder else root
    return earlier.model_copy(update={"place": place})


def _open_source(settings: Settings, spec: SourceSpec, stack: ExitStack) -> SurveySource:
    source = open_local(settings, spec, stack)
    return partial(survey_part, source) if isinstance(source, Path) else source
