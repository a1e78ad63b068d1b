"""Embeds texts with a vendor's model, in batches, and records usage and cost."""

from collections.abc import Sequence
from math import sqrt

from llm.errors import UnknownModel, UnreadableOutput
from llm.metering import UsageMeter
from llm.prices import PriceSource
from llm.vendors.catalogue import VENDORS, embedding_dimensions
from llm.vendors.model_transport import Transport
from llm.vendors.vendor_model import CHARACTERS_PER_TOKEN
from llm.vendors.wire import EmbeddingClient

TASK_NAME = "embed"
DIMENSIONS = embedding_dimensions(VENDORS)
"""How many numbers the vendors' models return."""


class VendorEmbedder:
    """One embedding model of one vendor, behind the port; vectors are L2-normalised."""

    def __init__(
        self,
        *,
        transport: Transport,
        wire: EmbeddingClient,
        dimensions: int,
        prices: PriceSource,
    ) -> None:
        self.name = transport.name
        self.dimensions = dimensions
        self._transport = transport
        self._wire = wire
        self._prices = prices

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        vectors: list[Sequence[float]] = []
        for start in range(0, len(texts), self._wire.batch):
            vectors.extend(await self._embed(texts[start : start + self._wire.batch]))
        return vectors

    async def close(self) -> None:
        """Close the connections to the vendor."""
        await self._wire.close()

    async def _embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        account = UsageMeter(TASK_NAME, self.name, self._prices)
        tokens = sum(len(text) for text in texts) // CHARACTERS_PER_TOKEN
        with account.exchange() as entry:
            vectors, usage = await self._transport.call(
                tokens, lambda seconds: self._wire.embed(texts, seconds)
            )
            entry.record_usage(usage)
            self._check(texts, vectors)
        return [_normalise(vector) for vector in vectors]

    def _check(self, texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> None:
        found = sorted({len(vector) for vector in vectors})
        if len(vectors) != len(texts) or found != [self.dimensions]:
            raise UnreadableOutput(
                f"expected {len(texts)} vectors of {self.dimensions} numbers from {self.name!r}, "
                f"found {len(vectors)} of {found}"
            )


def dimensions_of(model: str) -> int:
    """Return how many numbers a vendor's embedding model gives; raises `UnknownModel`."""
    if model not in DIMENSIONS:
        raise UnknownModel(
            f"expected an embedding model of {', '.join(DIMENSIONS)}, found {model!r}"
        )
    return DIMENSIONS[model]


def _normalise(vector: Sequence[float]) -> Sequence[float]:
    length = sqrt(sum(number * number for number in vector))
    return vector if length == 0 else [number / length for number in vector]
