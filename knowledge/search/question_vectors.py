"""Caches the vectors of a question for its next search, so that a vendor embeds it only once.

Embedding a question takes a vendor about as long as answering it. Therefore, it can be embedded
before its search, while another call is in progress.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import Protocol

import numpy as np
import structlog

from envelope.run import OUTSIDE, Run
from knowledge.embedding import Embedder
from knowledge.errors import EmbeddingFailed
from knowledge.port import SearchRequest
from knowledge.search.query import wordings

MOST_KEPT = 512
KEPT_SECONDS = 60.0

Vector = Sequence[float]
log = structlog.get_logger("knowledge")


class VectorStore(Protocol):
    """Stores the vectors of the running question for other processes, and deletes them when it
    ends.

    A key is a hash of the embedding model and the text. Outside of a question, nothing is stored.
    """

    async def get(self, run: Run, key: str) -> bytes | None: ...

    async def put(self, run: Run, key: str, vector: bytes) -> None: ...


class QuestionVectors:
    """An embedder that embeds the texts of a question once for all of its searches.

    Guardrails and search look up the same question. The first call stores the vectors under a hash
    of their text, and the second one uses them; unused vectors are dropped after `KEPT_SECONDS`, or
    when there are more than `MOST_KEPT`. If there is a store, a search in another process or for a
    redelivered envelope reads them from it. If a process ends before it has stored them, the text
    is embedded again.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        clock: Callable[[], float] = monotonic,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self.forms = embedder.forms
        self._embedder = embedder
        self._clock = clock
        self._close = close
        self._store: VectorStore | None = None
        self._kept: dict[str, tuple[float, Vector]] = {}

    def share_through(self, store: VectorStore) -> None:
        """Share the vectors with other processes through this store."""
        self._store = store

    async def close(self) -> None:
        """Close the connections to the vendor."""
        if self._close is not None:
            await self._close()

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return a vector for each text of a document, without caching them."""
        return await self._embedder.embed_documents(texts)

    async def embed_questions(self, texts: Sequence[str], run: Run = OUTSIDE) -> Sequence[Vector]:
        """Return a vector for each text of a question; errors of the store propagate."""
        self._drop_old()
        keys = [self._hash(text) for text in texts]
        kept = {key: self._kept.pop(key)[1] for key in dict.fromkeys(keys) if key in self._kept}
        unknown = [key for key in dict.fromkeys(keys) if key not in kept]
        kept |= await self._read_shared(run, unknown)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in kept}
        if missing:
            vectors = await self._embedder.embed_questions([*missing.values()], run)
            made = dict(zip(missing, vectors, strict=True))
            expires = self._clock() + KEPT_SECONDS
            self._kept.update({key: (expires, vector) for key, vector in made.items()})
            kept |= made
            await self._share(run, made)
        return [kept[key] for key in keys]

    def _hash(self, text: str) -> str:
        named = f"{self.name}/{self.dimensions}/{self.forms}\n{text}"
        return hashlib.blake2b(named.encode("utf-8", "replace"), digest_size=32).hexdigest()

    async def _read_shared(self, run: Run, keys: Sequence[str]) -> dict[str, Vector]:
        if self._store is None:
            return {}
        frames = await asyncio.gather(*(self._store.get(run, key) for key in keys))
        vectors = {
            key: np.frombuffer(frame, dtype=np.float32)
            for key, frame in zip(keys, frames, strict=True)
            if frame is not None
        }
        return {key: vector.tolist() for key, vector in vectors.items()}

    async def _share(self, run: Run, made: Mapping[str, Vector]) -> None:
        if self._store is not None:
            frames = {
                key: np.asarray(vector, dtype=np.float32).tobytes() for key, vector in made.items()
            }
            await asyncio.gather(
                *(self._store.put(run, key, frame) for key, frame in frames.items())
            )

    def _drop_old(self) -> None:
        now = self._clock()
        fresh = [(key, kept) for key, kept in self._kept.items() if kept[0] > now]
        self._kept = dict(fresh[-MOST_KEPT:])


class RememberingEmbedder:
    """An embedder that embeds each question only once, for runs that repeat searches."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self.forms = embedder.forms
        self._embedder = embedder
        self._known: dict[str, Vector] = {}

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return a vector for each text of a document, without caching them."""
        return await self._embedder.embed_documents(texts)

    async def embed_questions(self, texts: Sequence[str], run: Run = OUTSIDE) -> Sequence[Vector]:
        """Return a vector for each text of a question."""
        missing = [text for text in texts if text not in self._known]
        if missing:
            vectors = await self._embedder.embed_questions(missing, run)
            self._known.update(zip(missing, vectors, strict=True))
        return [self._known[text] for text in texts]


class EarlyEmbedding:
    """Sends the texts of an upcoming search to a vendor. A failure is logged and not raised.

    The search embeds missing texts again, and has a fallback if that fails as well. `store_errors`
    are the errors of the vector store, which the next call of the store raises.
    """

    def __init__(
        self, vectors: QuestionVectors, *, store_errors: tuple[type[Exception], ...] = ()
    ) -> None:
        self._vectors = vectors
        self._expected: tuple[type[Exception], ...] = (EmbeddingFailed, *store_errors)

    async def embed(self, request: SearchRequest) -> None:
        """Embed the texts of a search; texts that were already embedded for this question cost
        nothing.
        """
        try:
            await self._vectors.embed_questions(wordings(request).embedded, request.run)
        except self._expected as error:
            log.warning("early_embedding_failed", error=f"{type(error).__name__}: {error}")

    @asynccontextmanager
    async def during(self, request: SearchRequest) -> AsyncIterator[None]:
        """Embed while the block runs, and wait for both; an error in the block ends both."""
        failure: Exception | None = None
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.embed(request))
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised again outside of the group
                failure = error
                task.cancel()
        if failure is not None:
            raise failure
