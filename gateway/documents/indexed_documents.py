"""The documents in indexes, for human readers."""

import asyncio
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

import structlog

from gateway.documents.index_owner import Name
from gateway.port import ReadableDocument, ReadableSection, StoredPicture
from knowledge.errors import KnowledgeError
from knowledge.index.port import Index
from knowledge.language.scripts import choose_script
from knowledge.sections import document_of, read_document

log = structlog.get_logger("gateway")


class IndexedDocuments:
    """A `gateway.port.Documents` that reads indexes; those that are not in `opened` are opened on
    first use.

    `openers` contains a function for each assistant that opens its index.
    """

    def __init__(
        self,
        openers: Mapping[Name, Callable[[], Awaitable[Index]]],
        opened: Mapping[Name, Index],
    ) -> None:
        self._openers = openers
        self._indexes = dict(opened)
        self._opening = asyncio.Lock()
        self._own = AsyncExitStack()

    async def citing(
        self, tenant: str, assistant: str, chunk_id: str, groups: tuple[str, ...]
    ) -> ReadableDocument | None:
        """Return the document of a chunk, or None if these groups may not read it.

        Raises `KnowledgeError` if the index is unreachable.
        """
        index = await self.index((tenant, assistant))
        if index is None:
            return None
        sections = await read_document(index.visible_to(groups), document_of(chunk_id))
        if sections is None:
            return None
        return ReadableDocument(
            title=sections.title,
            crumbs=sections.crumbs,
            language=choose_script(
                sections.language, (section.text for section in sections.sections)
            ),
            sections=tuple(
                ReadableSection(
                    section.heading_path,
                    section.anchor,
                    section.text,
                    chunk_id in section.chunk_ids,
                    section.pictures,
                    section.links,
                )
                for section in sections.sections
            ),
        )

    async def picture(
        self, tenant: str, assistant: str, chunk_id: str, picture: str, groups: tuple[str, ...]
    ) -> StoredPicture | None:
        """Return a picture of the document of a chunk; see `citing`."""
        index = await self.index((tenant, assistant))
        if index is None:
            return None
        file = await index.visible_to(groups).picture(document_of(chunk_id), picture)
        return None if file is None else StoredPicture(file.media_type, b64decode(file.data))

    async def index(self, name: Name) -> Index | None:
        """Return the index of an assistant, or None if this process does not have it.

        Raises `KnowledgeError` if it cannot be opened; the log contains the reason.
        """
        async with self._opening:
            if name not in self._indexes and name in self._openers:
                try:
                    index = await self._openers[name]()
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
