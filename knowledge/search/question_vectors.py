"""Keeps the vectors of a question for its next search, so that a vendor embeds it once."""

import hashlib
from collections.abc import Callable, Sequence
from time import monotonic

from knowledge.embedding import Embedder

MOST_TEXTS = 4
"""The most texts of one question; ingestion embeds more per call, and none of those are kept."""
MOST_KEPT = 512
KEPT_SECONDS = 60.0


class QuestionVectors:
    """An embedder that embeds the texts of a question once for two searches in this process.

    Guardrails and search look the same question up. The first call keeps the vectors under a hash
    of their text, the second one takes them; what nobody takes is dropped after `KEPT_SECONDS`, or
    when there are more than `MOST_KEPT`. A search in another process embeds the question again.
    """

    def __init__(self, embedder: Embedder, *, clock: Callable[[], float] = monotonic) -> None:
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self._embedder = embedder
        self._clock = clock
        self._kept: dict[bytes, tuple[float, Sequence[float]]] = {}

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each text."""
        if len(texts) > MOST_TEXTS:
            return await self._embedder.embed(texts)
        self._drop_old()
        keys = [hashlib.blake2b(text.encode("utf-8", "replace")).digest() for text in texts]
        found = {key: self._kept.pop(key)[1] for key in dict.fromkeys(keys) if key in self._kept}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            vectors = await self._embedder.embed([*missing.values()])
            made = dict(zip(missing, vectors, strict=True))
            expires = self._clock() + KEPT_SECONDS
            self._kept.update({key: (expires, vector) for key, vector in made.items()})
            found |= made
        return [found[key] for key in keys]

    def _drop_old(self) -> None:
        now = self._clock()
        fresh = [(key, kept) for key, kept in self._kept.items() if kept[0] > now]
        self._kept = dict(fresh[-MOST_KEPT:])
