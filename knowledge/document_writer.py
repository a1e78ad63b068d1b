"""Embeds documents and writes them into the index while the next ones are read."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from knowledge import chunking
from knowledge.document import Document
from knowledge.ingestion_ledger import Ledger

CHUNKS_PER_BATCH = 256
PICTURE_CHARACTERS_PER_BATCH = 16_000_000

Vectors = Sequence[Sequence[float] | None]
"""The vector of each chunk; None where its text must be embedded."""
BeforeChange = Callable[[], Awaitable[None]]


class WrittenIndex(Protocol):
    """The part of an index that is written; `knowledge.index.port` documents the methods."""

    async def put(
        self, document: Document, vectors: Sequence[Sequence[float]], root: str
    ) -> None: ...

    async def remove(self, document_ids: Sequence[str]) -> None: ...


class DocumentEmbedder(Protocol):
    """Embeds the texts of documents."""

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


@dataclass(frozen=True, slots=True)
class _Waiting:
    document: Document
    vectors: Vectors
    root: str


class DocumentWriter:
    """Writes documents in the order in which they were added.

    It begins with the first one at once; those that are added meanwhile are its next batch. Of
    these, it takes `CHUNKS_PER_BATCH`, then `add` waits.
    """

    def __init__(
        self,
        index: WrittenIndex,
        embedder: DocumentEmbedder,
        ledger: Ledger,
        tasks: asyncio.TaskGroup,
        before_change: BeforeChange | None,
    ) -> None:
        self._index = index
        self._embedder = embedder
        self._ledger = ledger
        self._tasks = tasks
        self._before_change = before_change
        self._waiting: list[_Waiting] = []
        self._has_room = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None

    async def add(self, document: Document, vectors: Vectors, root: str) -> None:
        """Have a document written; returns when there is room for another one."""
        self._waiting.append(_Waiting(document, vectors, root))
        if self._writing is None or self._writing.done():
            self._writing = self._tasks.create_task(self._write_waiting())
        self._has_room.clear()
        if self._is_full():
            await self._has_room.wait()

    async def finish(self) -> None:
        """Write all documents."""
        if self._writing is not None:
            await self._writing

    async def remove(self, document_ids: Sequence[str]) -> None:
        """Remove documents from the index."""
        if document_ids:
            await self._announce_change()
            await self._index.remove(document_ids)

    def _is_full(self) -> bool:
        chunks = sum(len(one.vectors) for one in self._waiting)
        pictures = sum(len(file.data) for one in self._waiting for file in one.document.files)
        return chunks >= CHUNKS_PER_BATCH or pictures >= PICTURE_CHARACTERS_PER_BATCH

    async def _write_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            self._has_room.set()
            await self._write(batch)

    async def _write(self, batch: Sequence[_Waiting]) -> None:
        texts = [
            chunking.text_to_embed(one.document, chunk)
            for one in batch
            for chunk, vector in zip(one.document.chunks, one.vectors, strict=True)
            if vector is None
        ]
        embedded: list[Sequence[float]] = []
        for start in range(0, len(texts), CHUNKS_PER_BATCH):
            part = texts[start : start + CHUNKS_PER_BATCH]
            embedded.extend(await self._embedder.embed_documents(part))
        computed = iter(embedded)
        await self._announce_change()
        for one in batch:
            own = [next(computed) if vector is None else vector for vector in one.vectors]
            await self._index.put(one.document, own, one.root)
            self._ledger.wrote(one.document)

    async def _announce_change(self) -> None:
        announce, self._before_change = self._before_change, None
        if announce is not None:
            await announce()
