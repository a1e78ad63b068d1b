"""Adapts the embedders and rerankers of vendors to the interfaces of `knowledge`."""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from envelope.run import OUTSIDE, Run
from knowledge.embedding_forms import TextForms
from knowledge.errors import EmbeddingFailed, RerankingFailed
from knowledge.search.question_vectors import VectorStore
from llm.errors import ModelError
from llm.port import ScoreModel
from llm.stored_model import CallKey, CallStore

if TYPE_CHECKING:
    from llm.vendors.embeddings import VendorEmbedder

EMBEDDING = "embedding"
"""Stage name under which embeddings and reranker scores are stored for a question."""


class RunningVectors:
    """Stores the vectors of a running question with its paid model calls until the question
    ends.
    """

    def __init__(self, calls: CallStore) -> None:
        self._calls = calls

    async def get(self, run: Run, key: str) -> bytes | None:
        """Return the stored vector of a text, or None."""
        called = _name_embedding(run, key)
        return None if called is None else await self._calls.get(called)

    async def put(self, run: Run, key: str, vector: bytes) -> None:
        """Store the vector of a text; do nothing outside a question."""
        called = _name_embedding(run, key)
        if called is not None:
            await self._calls.put(called, vector)


class VendorEmbedding:
    """Adapts the embedder of a vendor; its errors become `EmbeddingFailed`.

    `forms` are the prefixes of questions and documents, in addition to those of the vendor.
    """

    def __init__(self, embedder: "VendorEmbedder", forms: TextForms) -> None:
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self.forms = "; ".join(filter(None, (embedder.forms, forms.name)))
        self._embedder = embedder
        self._forms = forms

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each document text."""
        return await self._embed(self._forms.make_documents(texts), OUTSIDE, are_questions=False)

    async def embed_questions(
        self, texts: Sequence[str], run: Run = OUTSIDE
    ) -> Sequence[Sequence[float]]:
        """Return a vector for each question."""
        return await self._embed(self._forms.make_questions(texts), run, are_questions=True)

    async def _embed(
        self, texts: Sequence[str], run: Run, *, are_questions: bool
    ) -> Sequence[Sequence[float]]:
        try:
            return await self._embedder.embed(texts, run, are_questions=are_questions)
        except ModelError as error:
            raise EmbeddingFailed(str(error)) from error


class ServerReranker:
    """Adapts the reranker of a server; its errors become `RerankingFailed`.

    With a store, a redelivered envelope reuses the stored scores.
    """

    def __init__(self, model: ScoreModel, close: Callable[[], Awaitable[None]]) -> None:
        self.name = model.name
        self._close = close
        self._model = model
        self._store: VectorStore | None = None

    def share_through(self, store: VectorStore) -> None:
        """Store the scores of a running question in `store`."""
        self._store = store

    async def warm(self) -> None:
        """Do nothing, because the model runs on a server."""

    async def score(
        self, question: str, passages: Sequence[str], run: Run = OUTSIDE
    ) -> Sequence[float]:
        """Return a score for each passage; errors of the store propagate."""
        key = self._hash(question, passages)
        kept = None if self._store is None else await self._store.get(run, key)
        if kept is not None:
            stored: list[float] = np.frombuffer(kept, dtype=np.float64).tolist()
            return stored
        try:
            scores = await self._model.score(question, passages, run)
        except ModelError as error:
            raise RerankingFailed(str(error)) from error
        if self._store is not None:
            await self._store.put(run, key, np.asarray(scores, dtype=np.float64).tobytes())
        return scores

    async def close(self) -> None:
        """Close the connections to the server."""
        await self._close()

    def _hash(self, question: str, passages: Sequence[str]) -> str:
        named = repr((self.name, question, tuple(passages))).encode("utf-8", "replace")
        return hashlib.blake2b(named, digest_size=32).hexdigest()


def _name_embedding(run: Run, key: str) -> CallKey | None:
    """Return the key of an embedding, which is the same in every stage and attempt."""
    return None if run.question is None else CallKey(run.question, EMBEDDING, 0, key)
