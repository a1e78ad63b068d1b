"""Lists, removes, searches and reads the documents of an index, here or by its owner."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.assembly.knowledge import find_notes
from gateway.port import FoundPassage, FoundPassages, LibraryDocument
from knowledge.index.listing import ListedDocument, select_by_name, select_documents
from knowledge.index.port import Index
from knowledge.port import Findings, Hit, SearchRequest

if TYPE_CHECKING:
    from pydantic import JsonValue

    from broker.values import Fields
    from deploy.assembly.knowledge import Knowledge


DOCUMENTS = "documents"
"""The attribute of a request that names the action: `list`, `remove` or `check`."""
CHECK = "check"
"""The action that returns notes about the index in `notes`, and `VECTORS`."""
VECTORS = "vectors"
"""The identity of the vectors of the index: model, dimensions, forms."""
REMOVE = "remove"
RESTRICT = "restrict"
"""The action that sets who may read documents: the groups `GROUPS`, or what the source states."""
COPY = "copy"
"""The action that copies the files of the index below the folder `TO`; `COPIED` is in the result.
"""
COPIED = "copied"
"""Whether files were copied; False if a server has the index."""
TO = "to"
PATTERNS = "patterns"
FOLDER = "folder"
"""The folder at which relative paths start."""
NAMES = "names"
"""Patterns of ids, sources and web addresses, without paths of this machine."""
IDS = "ids"
AFTER = "after"
"""The id after which a list begins."""
LIMIT = "limit"
MOST_LISTED = 10_000


async def act_on_documents(index: Index, request: "Mapping[str, JsonValue]") -> "Fields":
    """List, remove or restrict the documents that `IDS`, `NAMES` or `PATTERNS` select.

    The result has `documents`, at most `LIMIT` of them, and their number, `total`; that of
    `CHECK` has `notes` and `VECTORS` alone. A request that selects by nothing removes nothing.
    """
    if request.get(DOCUMENTS) == COPY:
        return {COPIED: await index.copy_to(Path(str(request[TO])))}
    if request.get(DOCUMENTS) == CHECK:
        notes: list[JsonValue] = [[*note] for note in await find_notes(index)]
        return {"notes": notes, VECTORS: [*(await index.info()).vectors]}
    found = await _select(index, request)
    if request.get(DOCUMENTS) == REMOVE:
        selects = any(_texts(request, name) for name in (IDS, NAMES, PATTERNS))
        await index.remove([document.id for document in found] if selects else [])
    if request.get(DOCUMENTS) == RESTRICT:
        await index.choose_groups([document.id for document in found], _texts(request, GROUPS))
        return {"total": len(found)}
    after, limit = str(request.get(AFTER) or ""), request.get(LIMIT)
    most = limit if isinstance(limit, int) else MOST_LISTED
    page = [document for document in found if document.id > after][:most]
    listed: list[JsonValue] = [{**asdict(document), "file": document.file} for document in page]
    return {"documents": listed, "total": len(found)}


async def _select(index: Index, request: "Mapping[str, JsonValue]") -> list[ListedDocument]:
    ids, names = _texts(request, IDS), _texts(request, NAMES)
    if ids is not None:
        return sorted(await index.list_documents(ids), key=lambda document: document.id)
    documents = await index.list_documents()
    if names is not None:
        return await asyncio.to_thread(select_by_name, documents, names)
    patterns = _texts(request, PATTERNS) or []
    folder = str(request.get(FOLDER) or "")
    return await asyncio.to_thread(select_documents, documents, patterns, folder=folder)


def _texts(request: "Mapping[str, JsonValue]", name: str) -> Sequence[str] | None:
    """Return the texts of a list in a request, or None if the request has no such list."""
    found = request.get(name)
    return [str(text) for text in found] if isinstance(found, list) else None


SEARCH = "search"
READ = "read"
BROWSE = "browse"
ACTIONS = frozenset({SEARCH, READ, BROWSE})
"""Values of `DOCUMENTS` for which `act_on_library` is responsible."""
QUERY = "query"
GROUPS = "groups"
ID = "id"
MOST_CHARACTERS = 400_000
"""A longer document is cut."""


async def act_on_library(knowledge: "Knowledge", request: "Mapping[str, JsonValue]") -> "Fields":
    """Search, read or browse the documents that the groups of a request may read."""
    listed, limit = request.get(GROUPS), request.get(LIMIT)
    groups = tuple(map(str, listed)) if isinstance(listed, list) else ()
    most = limit if isinstance(limit, int) else 0
    action = request.get(DOCUMENTS)
    if action == SEARCH:
        query = str(request.get(QUERY) or "")
        found = await knowledge.search(
            SearchRequest(question=query, text=query, limit=most, groups=groups, reranked=True)
        )
        return {"found": _show_findings(found).model_dump(mode="json")}
    await knowledge.follow()
    if action == READ:
        document = await _read(knowledge, str(request.get(ID) or ""), groups)
        return {"document": None if document is None else document.model_dump(mode="json")}
    after = str(request.get(AFTER) or "")
    documents = sorted(await knowledge.library.list_documents(groups), key=lambda one: one.id)
    page = [one for one in documents if one.id > after][:most]
    shown = [
        LibraryDocument(
            id=one.id,
            title=one.title,
            source=one.source,
            language=one.language,
            url=one.url,
            version=one.stated_version,
        )
        for one in page
    ]
    return {"documents": [one.model_dump(mode="json") for one in shown]}


async def _read(
    knowledge: "Knowledge", document_id: str, groups: Sequence[str]
) -> LibraryDocument | None:
    for one in await knowledge.library.read([document_id], groups):
        text = "\n\n".join(
            "\n\n".join([_write_heading(section.heading_path), section.text]).strip()
            for section in one.sections
        )
        return LibraryDocument(
            id=one.listed.id,
            title=one.listed.title,
            source=one.listed.source,
            language=one.listed.language,
            url=one.listed.url,
            version=one.listed.stated_version,
            crumbs=one.crumbs,
            first_chunk_id=one.chunks[0].chunk.chunk_id,
            text=text[:MOST_CHARACTERS],
            is_cut=len(text) > MOST_CHARACTERS,
        )
    return None


def _write_heading(path: Sequence[str]) -> str:
    return f"{'#' * min(len(path) + 1, 6)} {path[-1]}" if path else ""


def _show_findings(found: Findings) -> FoundPassages:
    return FoundPassages(
        passages=tuple(map(_show_hit, found.hits)),
        quality=found.quality,
        total=max(found.total, len(found.hits)),
        corrected=found.corrected,
        fallbacks=found.fallbacks,
    )


def _show_hit(hit: Hit) -> FoundPassage:
    names = set(FoundPassage.model_fields)
    return FoundPassage.model_validate({name: getattr(hit, name) for name in names})
