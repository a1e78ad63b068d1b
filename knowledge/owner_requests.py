"""Lists, removes, searches, and reads the documents in an index, here or in the process that owns
it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter

from knowledge.calibration.calibrating import find_notes
from knowledge.index.listing import (
    ListedDocument,
    select_by_name,
    select_by_text,
    select_documents,
)
from knowledge.index.port import Index
from knowledge.ingestion_report import IngestionResult
from knowledge.library.shown import LibraryDocument, LibraryFindings, LibraryPassage
from knowledge.port import Findings, Hit, SearchRequest

if TYPE_CHECKING:
    from pydantic import JsonValue

    from knowledge.open_index import OpenIndex

    Fields = dict[str, JsonValue]

RESULT = TypeAdapter(IngestionResult)
SOURCES = "sources"
"""The attribute of a request that contains the sources to ingest."""
COUNTS = "counts"
"""The attribute of a draft that contains the counts of a `ProgressReport`; `draft` is the root."""
DOCUMENTS = "documents"
"""The attribute of a request that specifies the action."""
MOST_LISTED = 10_000
MOST_CHARACTERS = 400_000
"""A longer document is truncated."""


class OwnerRequest(BaseModel, frozen=True, extra="ignore", populate_by_name=True):
    """A request about the documents of an index, usually to the process that owns it.

    - `list`, `remove`, `restrict`: the documents with these `ids`; otherwise those that `names`
      select by id, source and URL; otherwise the documents whose title, id, source or URL
      contains `text`; otherwise those that `patterns` select, which may be paths of this machine
      relative to `folder`. `restrict` sets their readers to `groups`, or to None for the readers
      that the source states.
    - `copy`: the files of the index are copied below the folder `new`.
    - `check`: returns the notes about the index, and the identity of its vectors.
    - `search` by `query`, `read` of `id`, `browse`: limited to what people in `groups` may read.

    A list contains at most `limit` documents, whose IDs are greater than `after`.
    """

    action: Literal["list", "remove", "restrict", "copy", "check", "search", "read", "browse"] = (
        Field(validation_alias=DOCUMENTS, serialization_alias=DOCUMENTS)
    )
    ids: tuple[str, ...] | None = None
    names: tuple[str, ...] | None = None
    patterns: tuple[str, ...] = ()
    folder: str | None = None
    new: str = Field("", validation_alias="to", serialization_alias="to")
    groups: tuple[str, ...] | None = None
    after: str = ""
    limit: int = MOST_LISTED
    query: str = ""
    text: str = ""
    id: str = ""

    def encode(self) -> "Fields":
        """Return the request as the payload of an envelope."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


async def act_on_documents(index: Index, request: OwnerRequest) -> "Fields":
    """List, remove, or restrict documents, copy the index, or check it.

    The result contains `documents` and `total`, the number of all selected documents. The result of
    `check` contains `notes` and `vectors`, and that of `copy` contains `copied`, which is False if
    the index is on a server. A request that specifies no selection removes nothing.
    """
    if request.action == "copy":
        return {"copied": await index.copy_to(Path(request.new))}
    if request.action == "check":
        notes: list[JsonValue] = [[*note] for note in await find_notes(index)]
        return {"notes": notes, "vectors": [*(await index.info()).vectors]}
    documents = await _select(index, request)
    if request.action == "remove":
        selects = request.ids or request.names or request.text or request.patterns
        await index.remove([document.id for document in documents] if selects else [])
    if request.action == "restrict":
        await index.choose_groups([document.id for document in documents], request.groups)
        return {"total": len(documents)}
    page = [document for document in documents if document.id > request.after][: request.limit]
    listed: list[JsonValue] = [{**asdict(document), "file": document.file} for document in page]
    return {"documents": listed, "total": len(documents)}


async def act_on_library(knowledge: "OpenIndex", request: OwnerRequest) -> "Fields":
    """Search, read, or browse those documents that the groups in a request may read."""
    groups = request.groups or ()
    if request.action == "search":
        findings = await knowledge.search(
            SearchRequest(
                question=request.query,
                text=request.query,
                limit=request.limit,
                groups=groups,
                reranked=True,
            )
        )
        return {"found": _show_findings(findings).model_dump(mode="json")}
    await knowledge.follow()
    if request.action == "read":
        document = await _read(knowledge, request.id, groups)
        return {"document": None if document is None else document.model_dump(mode="json")}
    documents = sorted(await knowledge.library.list_documents(groups), key=lambda item: item.id)
    page = [listed_document for listed_document in documents if listed_document.id > request.after][
        : request.limit
    ]
    return {
        "documents": [
            _show_document(listed_document).model_dump(mode="json") for listed_document in page
        ]
    }


async def _select(index: Index, request: OwnerRequest) -> list[ListedDocument]:
    if request.ids is not None:
        return sorted(await index.list_documents(request.ids), key=lambda document: document.id)
    documents = await index.list_documents()
    if request.names is not None:
        return await asyncio.to_thread(select_by_name, documents, request.names)
    if request.text:
        return await asyncio.to_thread(select_by_text, documents, request.text)
    folder = request.folder or ""
    return await asyncio.to_thread(select_documents, documents, request.patterns, folder=folder)


def _show_document(listed: ListedDocument, **more: Any) -> LibraryDocument:
    return LibraryDocument(
        id=listed.id,
        title=listed.title,
        source=listed.source,
        language=listed.language,
        url=listed.url,
        version=listed.stated_version,
        **more,
    )


async def _read(
    knowledge: "OpenIndex", document_id: str, groups: Sequence[str]
) -> LibraryDocument | None:
    for document in await knowledge.library.read([document_id], groups):
        text = "\n\n".join(
            "\n\n".join([_write_heading(section.heading_path), section.text]).strip()
            for section in document.sections
        )
        return _show_document(
            document.listed,
            crumbs=document.crumbs,
            first_chunk_id=document.chunks[0].chunk.chunk_id,
            text=text[:MOST_CHARACTERS],
            is_cut=len(text) > MOST_CHARACTERS,
        )
    return None


def _write_heading(path: Sequence[str]) -> str:
    return f"{'#' * min(len(path) + 1, 6)} {path[-1]}" if path else ""


def _show_findings(findings: Findings) -> LibraryFindings:
    return LibraryFindings(
        passages=tuple(map(_show_hit, findings.hits)),
        quality=findings.quality,
        total=max(findings.total, len(findings.hits)),
        corrected=findings.corrected,
        fallbacks=findings.fallbacks,
    )


def _show_hit(hit: Hit) -> LibraryPassage:
    stated = {name: value for name, value in hit.place.list_fields().items() if value is not None}
    return LibraryPassage(
        chunk_id=hit.chunk_id,
        document_id=hit.document_id,
        text=hit.text,
        score=hit.score,
        levels=hit.levels,
        **stated,
    )
