"""Counts the paid embedding calls of an ingestion, and caches their vectors."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from envelope.run import OUTSIDE, Run
from knowledge.embedding import Embedder
from knowledge.ingestion_report import EmbeddingUsage
from llm.port import ModelCall, record_calls

TEXTS_AT_ONCE = 100
"""Batch size for caching; every vendor accepts at least this many texts per call."""


class PaidAnswers(Protocol):
    """Stores paid embeddings until their documents are indexed."""

    async def get(self, keys: Sequence[str]) -> Mapping[str, bytes]: ...

    async def put(self, answers: Mapping[str, bytes]) -> None: ...


class PaidEmbedder:
    """An embedder whose vendor calls are counted; `usage` is None before the first call.

    With `kept`, document vectors are cached, so that they are not paid for again if the ingestion
    is killed.
    """

    def __init__(self, embedder: Embedder, kept: PaidAnswers | None = None) -> None:
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self.forms = embedder.forms
        self.usage: EmbeddingUsage | None = None
        self._embedder = embedder
        self._kept = kept

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each document text, from the cache if possible."""
        if self._kept is None:
            return await self._embed(texts, are_questions=False)
        keys = [self.name_text(text) for text in texts]
        known = dict(await self._kept.get(keys))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        for start in range(0, len(missing), TEXTS_AT_ONCE):
            part = list(missing)[start : start + TEXTS_AT_ONCE]
            vectors = await self._embed([missing[key] for key in part], are_questions=False)
            made = (np.asarray(vector, dtype=np.float32).tobytes() for vector in vectors)
            paid = dict(zip(part, made, strict=True))
            await self._kept.put(paid)
            known |= paid
        return [np.frombuffer(known[key], dtype=np.float32).tolist() for key in keys]

    async def embed_questions(
        self, texts: Sequence[str], run: Run = OUTSIDE
    ) -> Sequence[Sequence[float]]:
        """Return a vector for each question; used for calibration."""
        return await self._embed(texts, are_questions=True)

    def name_text(self, text: str) -> str:
        """Return the key under which the vector of a text is cached."""
        named = repr((self.name, self.dimensions, self.forms, text)).encode("utf-8", "replace")
        return hashlib.blake2b(named, digest_size=32).hexdigest()

    async def _embed(
        self, texts: Sequence[str], *, are_questions: bool
    ) -> Sequence[Sequence[float]]:
        embedder = self._embedder
        embed = embedder.embed_questions if are_questions else embedder.embed_documents
        with record_calls() as calls:
            try:
                return await embed(texts)
            finally:
                for call in calls:
                    self._count(call)

    def _count(self, call: ModelCall) -> None:
        usage = EmbeddingUsage() if self.usage is None else self.usage
        self.usage = usage + EmbeddingUsage(1, call.usage.input_tokens, call.cost_usd)
