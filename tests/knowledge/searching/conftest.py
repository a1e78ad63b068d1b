"""A small library, a cheap embedder, and both indexes."""

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient

from envelope.run import OUTSIDE, Run
from knowledge.document import Chunk, Document
from knowledge.errors import EmbeddingFailed, RerankingFailed
from knowledge.index.embedded import open_embedded
from knowledge.index.port import Index
from knowledge.index.qdrant import Identity
from knowledge.index.server.server_engine import open_client
from knowledge.index.terms import terms
from tests.support.embedders import UniformEmbedder

DIMENSIONS = 64


class WordEmbedder(UniformEmbedder):
    """Counts words in buckets: alike when the words are alike, and fails on request."""

    name = "words"
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self.fails = False
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked.append(list(texts))
        if self.fails:
            raise EmbeddingFailed("out of order")
        return [embed_text(text) for text in texts]


class FakeReranker:
    """Prefers passages with a word, and fails on request."""

    name = "fake@test"

    def __init__(self, preferred: str = "take") -> None:
        self.preferred = preferred
        self.fails = False
        self.asked: list[tuple[str, list[str]]] = []

    async def warm(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""

    async def score(
        self, question: str, passages: Sequence[str], run: Run = OUTSIDE
    ) -> Sequence[float]:
        self.asked.append((question, list(passages)))
        if self.fails:
            raise RerankingFailed("out of order")
        return [float(self.preferred in passage) for passage in passages]


def embed_text(text: str) -> list[float]:
    vector = [1e-3] * DIMENSIONS
    for term in terms(text, "en"):
        vector[int(hashlib.sha256(term.encode()).hexdigest(), 16) % DIMENSIONS] += 1.0
    length = sum(value * value for value in vector) ** 0.5
    return [value / length for value in vector]


def document(
    name: str,
    *texts: str | tuple[tuple[str, ...], str],
    title: str = "",
    language: str = "en",
    page: str | None = None,
    crumbs: tuple[str, ...] = (),
    content_hash: str = "1",
    keywords: tuple[str, ...] = (),
    **metadata: Any,
) -> Document:
    """A document of these chunks; a chunk may come with its heading path."""
    parts = [((), text) if isinstance(text, str) else text for text in texts]
    return Document(
        id=name,
        source=f"{name}.md",
        title=title or name,
        page=page or name,
        crumbs=crumbs or (title or name,),
        content="\n\n".join(text for _, text in parts),
        keywords=keywords,
        **metadata,
        chunks=tuple(
            Chunk(chunk_id=f"{name}#{at}", ordinal=at, text=text, heading_path=path)
            for at, (path, text) in enumerate(parts)
        ),
        language=language,
        url=f"https://example.org/{name}",
        content_hash=content_hash,
    )


def vectors_of(made: Document) -> list[list[float]]:
    return [
        embed_text(" ".join((*made.crumbs, *chunk.heading_path, chunk.text)))
        for chunk in made.chunks
    ]


async def put(index: Index, *documents: Document, root: str = "library") -> None:
    for made in documents:
        await index.put(made, vectors_of(made), root)
    await index.connect()


def identity(tenant: str = "tenant", assistant: str = "desk", embedding: str = "words") -> Identity:
    return Identity(tenant, assistant, embedding, DIMENSIONS)


Opening = Callable[..., Awaitable[Index]]


@pytest.fixture(params=["embedded", "server"])
async def opening(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opening]:
    """Opens an index at one place, by identity; everything is closed in the end."""
    client = AsyncQdrantClient(":memory:")
    async with AsyncExitStack() as stack:

        async def open_one(who: Identity | None = None) -> Index:
            if request.param == "embedded":
                index = await open_embedded(tmp_path, who or identity())
                stack.push_async_callback(index.close)
                return index
            return await open_client(client, who or identity(), location="memory")

        yield open_one
    await client.close()


@pytest.fixture
async def index(opening: Opening) -> Index:
    return await opening()


@pytest.fixture
async def fake_documents(tmp_path: Path) -> AsyncIterator[Index]:
    """An embedded index alone, where the kind of index makes no difference."""
    index = await open_embedded(tmp_path / "shelf", identity())
    yield index
    await index.close()


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()
