"""Embeds documents and writes them into the index in batches."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from knowledge import chunking
from knowledge.document import Document

CHUNKS_PER_BATCH = 256
PICTURE_CHARACTERS_PER_BATCH = 16_000_000

Vectors = Sequence[Sequence[float] | None]
"""The vector of each chunk, or None if its text has to be embedded."""


class WrittenIndex(Protocol):
    """The part of an index that is needed for writing; see `knowledge.index.port`."""

    async def put(
        self, document: Document, vectors: Sequence[Sequence[float]], root: str
    ) -> None: ...


class DocumentEmbedder(Protocol):
    """Embeds the texts of documents."""

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


@dataclass(slots=True, eq=False)
class _Waiting:
    document: Document
    vectors: Vectors
    root: str
    is_written: bool = False
    is_alone: bool = False
    """Whether the document is embedded separately, because a batch that contained it failed."""


class DocumentWriter:
    """Writes the first document immediately; documents added in the meantime form the next batch.

    If a document cannot be embedded, the other documents in its batch are not affected.
    """

    most_chunks = 2 * CHUNKS_PER_BATCH

    def __init__(self, index: WrittenIndex, embedder: DocumentEmbedder) -> None:
        self._index = index
        self._embedder = embedder
        self._waiting: list[_Waiting] = []
        self._writing = asyncio.Lock()

    async def write(self, document: Document, vectors: Vectors, root: str) -> None:
        """Return once the document is in the index; errors of the embedder and the index
        propagate.
        """
        own = _Waiting(document, vectors, root)
        self._waiting.append(own)
        try:
            async with self._writing:
                while not own.is_written:
                    await self._write_with_others(own)
        finally:
            if own in self._waiting:
                self._waiting.remove(own)

    async def _write_with_others(self, own: _Waiting) -> None:
        """Write a document together with the waiting documents; only errors of this document are
        raised.
        """
        batch = [own]
        if not own.is_alone:
            batch += [other for other in self._waiting if other is not own and not other.is_alone]
        try:
            await self._write(batch)
        except Exception:
            if len(batch) == 1:
                raise
            for waiting in batch:
                waiting.is_alone = True

    async def _write(self, batch: Sequence[_Waiting]) -> None:
        texts = [
            chunking.text_to_embed(waiting.document, chunk)
            for waiting in batch
            for chunk, vector in zip(waiting.document.chunks, waiting.vectors, strict=True)
            if vector is None
        ]
        embedded: list[Sequence[float]] = []
        for start in range(0, len(texts), CHUNKS_PER_BATCH):
            part = texts[start : start + CHUNKS_PER_BATCH]
            embedded.extend(await self._embedder.embed_documents(part))
        computed = iter(embedded)
        for waiting in batch:
            own = [next(computed) if vector is None else vector for vector in waiting.vectors]
            await self._index.put(waiting.document, own, waiting.root)
            waiting.is_written = True
            if waiting in self._waiting:
                self._waiting.remove(waiting)


def measure(document: Document) -> int:
    """Return the size of a document in chunks; pictures are counted as chunks as well."""
    pictures = sum(len(file.data) for file in document.files)
    return max(1, len(document.chunks), pictures * CHUNKS_PER_BATCH // PICTURE_CHARACTERS_PER_BATCH)
