"""Provides the documents of the index to the HTTP channel, if this process can read the index."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack

import structlog

from config.settings import Settings
from deploy.assembly.runtime import Runtime
from gateway.port import ReadableDocument, ReadableSection
from knowledge.errors import KnowledgeError
from knowledge.index.port import Index
from knowledge.sections import document_of, read_document

Name = tuple[str, str]
"""Tenant and assistant."""
log = structlog.get_logger("gateway")


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
            language=found.language,
            sections=tuple(
                ReadableSection(one.heading_path, one.anchor, one.text, chunk_id in one.chunk_ids)
                for one in found.sections
            ),
        )

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
                    # Visitors are only asked to try again; the operator has to know why.
                    log.warning("index_not_opened", reason=str(error))
                    raise
                self._own.push_async_callback(index.close)
                self._indexes[name] = index
        return self._indexes.get(name)

    async def close(self) -> None:
        """Close the indexes that were opened here."""
        await self._own.aclose()


def documents_of(runtime: Runtime) -> IndexedDocuments | None:
    """Return the documents of the opened index, or of an index on a server; else None."""
    if runtime.knowledge is not None:
        own = (runtime.settings.tenant, runtime.settings.assistant)
        known = {own: runtime.knowledge, **runtime.knowledge.others}
        return IndexedDocuments(runtime.settings, {name: one.index for name, one in known.items()})
    # An embedded index has one owner, which is another process here.
    return None if runtime.settings.qdrant_url is None else IndexedDocuments(runtime.settings, {})
