"""Searches, reads and lists documents as a person may read them, for this process or another."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from deploy.assembly.indexed_documents import AFTER, DOCUMENTS, LIMIT
from gateway.port import FoundPassage, FoundPassages, LibraryDocument
from knowledge.port import Findings, Hit, SearchRequest

if TYPE_CHECKING:
    from pydantic import JsonValue

    from broker.values import Fields
    from deploy.assembly.knowledge import Knowledge

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
