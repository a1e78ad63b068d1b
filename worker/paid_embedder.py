"""Counts the calls of an ingestion to the vendor of its embedder."""

from collections.abc import Sequence

from envelope.run import OUTSIDE, Run
from knowledge.embedding import Embedder
from knowledge.ingestion_report import EmbeddingUsage
from llm.port import ModelCall, record_calls


class PaidEmbedder:
    """An embedder whose calls to a vendor are counted; `usage` is None while there were none."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self.forms = embedder.forms
        self.usage: EmbeddingUsage | None = None
        self._embedder = embedder

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each text of a document."""
        return await self._embed(texts, are_questions=False)

    async def embed_questions(
        self, texts: Sequence[str], run: Run = OUTSIDE
    ) -> Sequence[Sequence[float]]:
        """Return a vector for each text of a question, by which a model is calibrated."""
        return await self._embed(texts, are_questions=True)

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
        costs = usage.cost_usd, call.cost_usd
        self.usage = EmbeddingUsage(
            calls=usage.calls + 1,
            input_tokens=usage.input_tokens + call.usage.input_tokens,
            cost_usd=None if costs[0] is None or costs[1] is None else costs[0] + costs[1],
        )
