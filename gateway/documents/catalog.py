"""Gives programs and owners access to the documents of an index, through this process or the
process that owns the index.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter

from envelope.json_values import read_objects
from gateway.documents.index_owner import Name
from gateway.documents.indexed_documents import IndexedDocuments
from gateway.documents.uploads import Uploads
from gateway.port import CatalogEntry, CatalogSelection, CatalogUpload
from knowledge.library.shown import LibraryDocument, LibraryFindings
from knowledge.open_index import OpenIndex
from knowledge.owner_requests import (
    RESULT,
    SOURCES,
    OwnerRequest,
    act_on_documents,
    act_on_library,
)
from knowledge.source_registry import FetchedSource, SourceSpec

if TYPE_CHECKING:
    from broker.values import Fields

AskOwner = Callable[[Name, "Fields", float], Awaitable["Fields"]]
"""Returns the reply of the process that owns an assistant's index within the given number of
seconds, or raises `IndexUnavailable`.
"""
FindOpen = Callable[[Name], OpenIndex | None]
"""Returns the index of an assistant that this process has opened, or None."""
WAIT_SECONDS = 20.0
"""How long a request waits for the process that owns the index."""
WRITE_SECONDS = 120.0
"""How long a request waits for a file to be read."""

_ENTRIES = TypeAdapter(list[CatalogEntry])


class OwnedLibrary:
    """A `SearchableLibrary` that uses the index of this process if it has one open, and otherwise
    asks the process that does.

    Raises `KnowledgeError` if the index or its owner is unreachable.
    """

    def __init__(self, find_own: FindOpen, ask: AskOwner) -> None:
        self._find_own = find_own
        self._ask = ask

    async def search(
        self, tenant: str, assistant: str, query: str, *, groups: Sequence[str], limit: int
    ) -> LibraryFindings:
        request = OwnerRequest(action="search", query=query, groups=tuple(groups), limit=limit)
        reply = await self._act((tenant, assistant), request)
        return LibraryFindings.model_validate(reply["found"])

    async def read(
        self, tenant: str, assistant: str, document_id: str, *, groups: Sequence[str]
    ) -> LibraryDocument | None:
        request = OwnerRequest(action="read", id=document_id, groups=tuple(groups))
        document = (await self._act((tenant, assistant), request)).get("document")
        return None if document is None else LibraryDocument.model_validate(document)

    async def browse(
        self, tenant: str, assistant: str, *, groups: Sequence[str], after: str, limit: int
    ) -> Sequence[LibraryDocument]:
        request = OwnerRequest(action="browse", after=after, limit=limit, groups=tuple(groups))
        listed = (await self._act((tenant, assistant), request)).get("documents")
        return TypeAdapter(list[LibraryDocument]).validate_python(listed)

    async def _act(self, name: Name, request: OwnerRequest) -> "Fields":
        own = self._find_own(name)
        if own is not None:
            return await act_on_library(own, request)
        return await self._ask(name, request.encode(), WAIT_SECONDS)


class OwnedCatalog:
    """A `gateway.port.DocumentCatalog` that uses an index of this process, or asks the owner of the
    index.

    `opened` provides the indexes that this process can read; it is None if another process owns
    them. Raises `KnowledgeError` if the index or its owner is unreachable.
    """

    def __init__(
        self,
        uploads: Mapping[Name, Uploads],
        ask: AskOwner,
        opened: IndexedDocuments | None,
        *,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self._uploads = uploads
        self._ask_owner = ask
        self._opened = opened
        self._wait_seconds = wait_seconds

    async def find(
        self,
        tenant: str,
        assistant: str,
        selection: CatalogSelection,
        *,
        after: str = "",
        limit: int,
    ) -> tuple[Sequence[CatalogEntry], int]:
        request = _request("list", selection, after=after, limit=limit)
        reply = await self._act((tenant, assistant), request)
        return _ENTRIES.validate_python(reply.get("documents")), _total(reply)

    async def remove(self, tenant: str, assistant: str, selection: CatalogSelection) -> int:
        reply = await self._act((tenant, assistant), _request("remove", selection))
        files = [str(entry.get("file")) for entry in read_objects(reply.get("documents"))]
        await asyncio.to_thread(self._uploads[tenant, assistant].forget, files)
        return _total(reply)

    async def choose_groups(
        self, tenant: str, assistant: str, document_id: str, groups: Sequence[str] | None
    ) -> bool:
        chosen = None if groups is None else tuple(groups)
        request = OwnerRequest(action="restrict", ids=(document_id,), groups=chosen)
        return _total(await self._act((tenant, assistant), request)) > 0

    async def write(self, tenant: str, assistant: str, name: str, data: bytes) -> CatalogUpload:
        uploads = self._uploads[tenant, assistant]
        if refused := uploads.find_fault(name):
            return CatalogUpload(refused=refused)
        file = await asyncio.to_thread(uploads.keep, name, data)
        source = FetchedSource(spec=SourceSpec(place=str(uploads.folder)))
        request: Fields = {SOURCES: [source.model_dump(mode="json")]}
        reply = await self._ask((tenant, assistant), request, seconds=WRITE_SECONDS)
        result = RESULT.validate_python(reply)
        return CatalogUpload(
            written=result.added + result.changed,
            unchanged=result.unchanged,
            failures=tuple(
                problem
                for problem in (*result.failed, *result.skipped)
                if problem[0].startswith(file)
            ),
        )

    async def remove_source(self, tenant: str, assistant: str, place: str) -> int:
        """Remove the documents of a source, and return how many there were."""
        request = OwnerRequest(action="remove", patterns=(place,), limit=0)
        return _total(await self._act((tenant, assistant), request))

    async def _act(self, name: Name, request: OwnerRequest) -> "Fields":
        index = None if self._opened is None else await self._opened.index(name)
        if index is not None:
            return await act_on_documents(index, request)
        return await self._ask(name, request.encode())

    async def _ask(
        self, name: Name, request: "Fields", *, seconds: float | None = None
    ) -> "Fields":
        limit = self._wait_seconds if seconds is None else seconds
        return await self._ask_owner(name, request, limit)


def _request(
    action: Literal["list", "remove"], selection: CatalogSelection, **more: Any
) -> OwnerRequest:
    return OwnerRequest(
        action=action, ids=selection.ids, names=selection.patterns, text=selection.text, **more
    )


def _total(reply: "Fields") -> int:
    return int(str(reply.get("total", 0)))
