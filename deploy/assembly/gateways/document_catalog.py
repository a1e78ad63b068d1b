"""The documents of an index for HTTP, by this process or by the one that owns the index."""

import asyncio
import hashlib
import os
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

import structlog
from pydantic import TypeAdapter

from config.settings import Settings
from deploy.assembly.indexed_documents import OwnerRequest, act_on_documents, act_on_library
from deploy.assembly.ingestion import RESULT, SOURCES, ask_owner
from deploy.assembly.runtime import Runtime
from deploy.errors import CommandError
from envelope.json_values import read_objects
from gateway.port import (
    CatalogEntry,
    CatalogSelection,
    CatalogUpload,
    FoundPassages,
    LibraryDocument,
    ReadableDocument,
    ReadableSection,
    StoredPicture,
)
from knowledge.data_folder import protect_data_folder
from knowledge.documents.folder import ARCHIVE, display_name, is_left_out
from knowledge.documents.formats import SUFFIXES, explain_skip
from knowledge.errors import IndexUnavailable, KnowledgeError
from knowledge.index.port import Index
from knowledge.language.scripts import choose_script
from knowledge.sections import document_of, read_document
from knowledge.source_registry import FetchedSource, SourceSpec

if TYPE_CHECKING:
    from broker.ports import Broker
    from broker.values import Fields


_MOST_FOLDERS = 16
_LONGEST_PART = 240
"""In bytes: file systems allow 255, and the name that a file has while it is written is longer."""
_LONGEST_PATH = 1_000


class Uploads:
    """The written files of one assistant; names are relative to `folder`."""

    def __init__(self, settings: Settings) -> None:
        named = "\n".join((settings.tenant, settings.assistant))
        digest = hashlib.sha256(named.encode()).hexdigest()[:16]
        self._data = settings.refdesk_data
        self.folder = settings.refdesk_data.resolve() / "uploads" / digest / "uploads"

    def find_fault(self, name: str) -> str:
        """Return why a file of this name is not kept, or an empty text."""
        path = PurePosixPath(name)
        is_clean = str(path) == name and all(display_name(part) == part for part in path.parts)
        if path.is_absolute() or not is_clean or len(path.parts) > _MOST_FOLDERS:
            return f"expected a file name such as hr/leave.pdf, found {name!r}"
        if any(part == ".." or is_left_out(part) for part in path.parts):
            return f"expected a name without hidden folders and files, found {name!r}"
        if fault := self._find_fault_of_place(path):
            return fault
        if path.suffix.lower() not in SUFFIXES | {ARCHIVE}:
            return f"expected a format that is read, found {name!r}: {explain_skip(path)}"
        return ""

    def _find_fault_of_place(self, path: PurePosixPath) -> str:
        """Return why the file system cannot keep a file at a path, or an empty text."""
        sizes = [len(os.fsencode(part)) for part in path.parts]
        if max(sizes, default=0) > _LONGEST_PART or sum(sizes) > _LONGEST_PATH:
            return (
                f"expected a name of at most {_LONGEST_PART} bytes for each folder and file, and "
                f"of {_LONGEST_PATH} in all"
            )
        above = (parent for parent in path.parents if str(parent) != ".")
        if (self.folder / path).is_dir() or any((self.folder / one).is_file() for one in above):
            return f"expected the name of a file, found {str(path)!r}, which has a folder's name"
        return ""

    def keep(self, name: str, data: bytes) -> str:
        """Write a file, in place of an earlier one, and return its name as it is listed."""
        protect_data_folder(self._data)
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        waiting = target.with_name(f".{target.name}.new")
        waiting.write_bytes(data)
        waiting.replace(target)
        return name

    def forget(self, files: Iterable[str]) -> None:
        """Remove files whose documents were removed, so that they do not come back."""
        for file in files:
            place = Path(os.path.normpath(file))
            if place.is_relative_to(self.folder):
                place.unlink(missing_ok=True)


WAIT_SECONDS = 20.0
"""How long a request waits for the process that owns the index."""
log = structlog.get_logger("gateway")


async def _ask(broker: "Broker", settings: Settings, request: "Fields", seconds: float) -> "Fields":
    """Return the reply of the process that owns the index; raises `IndexUnavailable`."""
    try:
        return await ask_owner(broker, settings, request, seconds=seconds)
    except CommandError as error:
        log.warning("index_owner_failed", reason=str(error))
        raise IndexUnavailable(str(error)) from error


class OwnedLibrary:
    """A `gateway.port.SearchableLibrary`: the index of this process, else that of its owner.

    Raises `KnowledgeError` when the index or its owner is unreachable.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._settings: dict[tuple[str, str], Settings] = {
            (one.tenant, one.assistant): one for one in runtime.settings.of_assistants()
        }
        self._own = (runtime.settings.tenant, runtime.settings.assistant)
        self._runtime = runtime

    async def search(
        self, tenant: str, assistant: str, query: str, *, groups: Sequence[str], limit: int
    ) -> FoundPassages:
        request = OwnerRequest(action="search", query=query, groups=tuple(groups), limit=limit)
        found = await self._act((tenant, assistant), request)
        return FoundPassages.model_validate(found["found"])

    async def read(
        self, tenant: str, assistant: str, document_id: str, *, groups: Sequence[str]
    ) -> LibraryDocument | None:
        request = OwnerRequest(action="read", id=document_id, groups=tuple(groups))
        found = (await self._act((tenant, assistant), request)).get("document")
        return None if found is None else LibraryDocument.model_validate(found)

    async def browse(
        self, tenant: str, assistant: str, *, groups: Sequence[str], after: str, limit: int
    ) -> Sequence[LibraryDocument]:
        request = OwnerRequest(action="browse", after=after, limit=limit, groups=tuple(groups))
        listed = (await self._act((tenant, assistant), request)).get("documents")
        return TypeAdapter(list[LibraryDocument]).validate_python(listed)

    async def _act(self, name: tuple[str, str], request: OwnerRequest) -> "Fields":
        knowledge = self._runtime.knowledge
        own = None if knowledge is None else knowledge.of(*name, own=self._own)
        if own is not None:
            return await act_on_library(own, request)
        broker, settings = self._runtime.broker, self._settings[name]
        return await _ask(broker, settings, request.encode(), WAIT_SECONDS)


WRITE_SECONDS = 120.0
"""How long a request waits for a file to be read."""

Name = tuple[str, str]
"""Tenant and assistant."""


class IndexedDocuments:
    """A `gateway.port.Documents`; indexes that are not in `opened` are opened on first use."""

    def __init__(self, settings: Settings, opened: Mapping[Name, Index]) -> None:
        self._settings = {(one.tenant, one.assistant): one for one in settings.of_assistants()}
        self._indexes = dict(opened)
        self._opening = asyncio.Lock()
        self._own = AsyncExitStack()

    async def citing(
        self, tenant: str, assistant: str, chunk_id: str, groups: tuple[str, ...]
    ) -> ReadableDocument | None:
        """Return the document of a chunk, or None when these groups may not read it.

        Raises `KnowledgeError` when the index is unreachable.
        """
        index = await self.index((tenant, assistant))
        if index is None:
            return None
        found = await read_document(index.visible_to(groups), document_of(chunk_id))
        if found is None:
            return None
        return ReadableDocument(
            title=found.title,
            crumbs=found.crumbs,
            language=choose_script(found.language, (one.text for one in found.sections)),
            sections=tuple(
                ReadableSection(
                    one.heading_path,
                    one.anchor,
                    one.text,
                    chunk_id in one.chunk_ids,
                    one.pictures,
                )
                for one in found.sections
            ),
        )

    async def picture(
        self, tenant: str, assistant: str, chunk_id: str, picture: str, groups: tuple[str, ...]
    ) -> StoredPicture | None:
        """Return a picture of the document of a chunk; see `citing`."""
        index = await self.index((tenant, assistant))
        if index is None:
            return None
        found = await index.visible_to(groups).picture(document_of(chunk_id), picture)
        return None if found is None else StoredPicture(found.media_type, b64decode(found.data))

    async def index(self, name: Name) -> Index | None:
        """Return the index of an assistant, or None when this process does not have it.

        Raises `KnowledgeError` when it cannot be opened; the log has the reason.
        """
        async with self._opening:
            settings = self._settings.get(name)
            if name not in self._indexes and settings is not None:
                from deploy.assembly.knowledge import make_embedder, open_index

                try:
                    index = await open_index(settings, make_embedder(settings))
                except KnowledgeError as error:
                    # Visitors are only asked to try again; the reason is logged for the operator.
                    log.warning("index_not_opened", reason=str(error))
                    raise
                self._own.push_async_callback(index.close)
                self._indexes[name] = index
        return self._indexes.get(name)

    async def close(self) -> None:
        """Close the indexes that were opened here."""
        await self._own.aclose()


_ENTRIES = TypeAdapter(list[CatalogEntry])


class OwnedCatalog:
    """A `gateway.port.DocumentCatalog`.

    `opened` provides the indexes that this process can read; None: another process owns them.
    Raises `KnowledgeError` when the index or its owner is unreachable.
    """

    def __init__(
        self,
        settings: Settings,
        broker: "Broker",
        opened: IndexedDocuments | None,
        *,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self._settings = {(one.tenant, one.assistant): one for one in settings.of_assistants()}
        self._broker = broker
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
        found = await self._act((tenant, assistant), request)
        return _ENTRIES.validate_python(found.get("documents")), _total(found)

    async def remove(self, tenant: str, assistant: str, selection: CatalogSelection) -> int:
        found = await self._act((tenant, assistant), _request("remove", selection))
        files = [str(one.get("file")) for one in read_objects(found.get("documents"))]
        await asyncio.to_thread(self._uploads((tenant, assistant)).forget, files)
        return _total(found)

    async def choose_groups(
        self, tenant: str, assistant: str, document_id: str, groups: Sequence[str] | None
    ) -> bool:
        chosen = None if groups is None else tuple(groups)
        request = OwnerRequest(action="restrict", ids=(document_id,), groups=chosen)
        return _total(await self._act((tenant, assistant), request)) > 0

    async def write(self, tenant: str, assistant: str, name: str, data: bytes) -> CatalogUpload:
        uploads = self._uploads((tenant, assistant))
        if refused := uploads.find_fault(name):
            return CatalogUpload(refused=refused)
        file = await asyncio.to_thread(uploads.keep, name, data)
        source = FetchedSource(spec=SourceSpec(place=str(uploads.folder)))
        request: Fields = {SOURCES: [source.model_dump(mode="json")]}
        found = await self._ask((tenant, assistant), request, seconds=WRITE_SECONDS)
        result = RESULT.validate_python(found)
        return CatalogUpload(
            written=result.added + result.changed,
            unchanged=result.unchanged,
            failures=tuple(
                one for one in (*result.failed, *result.skipped) if one[0].startswith(file)
            ),
        )

    def _uploads(self, name: Name) -> Uploads:
        return Uploads(self._settings[name])

    async def remove_source(self, tenant: str, assistant: str, place: str) -> int:
        """Remove the documents of a source, and return their number."""
        request = OwnerRequest(action="remove", patterns=(place,), limit=0)
        return _total(await self._act((tenant, assistant), request))

    async def _act(self, name: tuple[str, str], request: OwnerRequest) -> "Fields":
        index = None if self._opened is None else await self._opened.index(name)
        if index is not None:
            return await act_on_documents(index, request)
        return await self._ask(name, request.encode())

    async def _ask(
        self, name: tuple[str, str], request: "Fields", *, seconds: float | None = None
    ) -> "Fields":
        limit = self._wait_seconds if seconds is None else seconds
        return await _ask(self._broker, self._settings[name], request, limit)


def _request(
    action: Literal["list", "remove"], selection: CatalogSelection, **more: Any
) -> OwnerRequest:
    return OwnerRequest(action=action, ids=selection.ids, names=selection.patterns, **more)


def _total(found: "Fields") -> int:
    return int(str(found.get("total", 0)))


def documents_of(runtime: Runtime) -> IndexedDocuments | None:
    """Return the documents of the opened index, or of an index on a server; else None."""
    if runtime.knowledge is not None:
        own = (runtime.settings.tenant, runtime.settings.assistant)
        known = {own: runtime.knowledge, **runtime.knowledge.others}
        return IndexedDocuments(runtime.settings, {name: one.index for name, one in known.items()})
    # An embedded index has one owner, which is another process here.
    return None if runtime.settings.qdrant_url is None else IndexedDocuments(runtime.settings, {})
