"""Embeds documents for an ingestion: waits for the vendor's limits, and counts calls and cost."""

from collections.abc import Sequence

from config.settings import Settings
from deploy.assembly.knowledge import identify_vectors, make_embedder
from envelope.run import OUTSIDE, Run
from knowledge.embedding import Embedder
from knowledge.ingestion_report import EmbeddingUsage, LimitWaits
from llm.port import ModelCall, record_calls
from llm.quotas import Limiter, PatientLimiter


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


def make_patient(limits: Limiter | None) -> PatientLimiter | None:
    """Return the limits for an ingestion, which waits as long as necessary."""
    return None if limits is None else PatientLimiter(limits)


def choose_embedder(
    settings: Settings, present: Embedder, patient: PatientLimiter | None
) -> Embedder:
    """Return the embedder of an index that waits for the limits; `present` has answered so far.

    An embedder that other settings have made goes on as it is.
    """
    if patient is None or not settings.has_vendor_embedding:
        return present
    made = make_embedder(settings, patient)
    return made if identify_vectors(made) == identify_vectors(present) else present


def count_waits(patient: PatientLimiter | None) -> LimitWaits | None:
    """Return how long an ingestion waited for limits; None if it did not."""
    if patient is None or not patient.waits:
        return None
    return LimitWaits(patient.waits, patient.seconds)
