"""Embeds texts with a vendor's model in batches, and records usage and cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt

import structlog

from envelope.run import OUTSIDE, Run
from llm.errors import RejectedRequest, UnknownModel, UnreadableOutput
from llm.metering import UsageMeter
from llm.prices import PriceSource
from llm.vendors.catalogue import VENDORS, embedding_dimensions
from llm.vendors.model_transport import Transport
from llm.vendors.vendor_model import CHARACTERS_PER_TOKEN
from llm.vendors.wire import EmbeddingClient

TASK_NAME = "embed"
DIMENSIONS = embedding_dimensions(VENDORS)
"""The vector length of each known embedding model."""
SHORTENABLE = frozenset[str]().union(*(vendor.shortenable_embeddings for vendor in VENDORS))
"""The models that return shorter vectors on request."""


log = structlog.get_logger("llm")


class VendorEmbedder:
    """One embedding model of one vendor; its vectors have `dimensions` numbers and L2 norm 1.

    `forms` identifies the model's separate modes for questions and documents, and is empty if it
    has none.
    """

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
        self.forms = wire.forms
        self._transport = transport
        self._wire = wire
        self._batch = wire.batch
        self._prices = prices

    async def embed(
        self, texts: Sequence[str], run: Run = OUTSIDE, *, are_questions: bool = False
    ) -> Sequence[Sequence[float]]:
        vectors: list[Sequence[float]] = []
        batch = self._batch
        while len(vectors) < len(texts):
            part = texts[len(vectors) : len(vectors) + batch]
            try:
                vectors.extend(await self._embed(part, run, are_questions))
            except RejectedRequest as error:
                # The server may accept fewer texts per request: try half of them.
                if len(part) == 1:
                    raise
                batch = len(part) // 2
                log.info("embedding_batch_halved", model=self.name, texts=batch, reason=str(error))
        self._batch = batch
        return vectors

    async def close(self) -> None:
        """Close the connections to the vendor."""
        await self._wire.close()

    async def _embed(
        self, texts: Sequence[str], run: Run, are_questions: bool
    ) -> Sequence[Sequence[float]]:
        account = UsageMeter(TASK_NAME, self.name, self._prices)
        tokens = sum(len(text) for text in texts) // CHARACTERS_PER_TOKEN
        with account.exchange() as entry:
            vectors, usage = await self._transport.call(
                run,
                tokens,
                lambda seconds: self._wire.embed(texts, seconds, are_questions=are_questions),
            )
            entry.record_usage(usage)
            self._check(texts, vectors)
        return [_normalise(vector) for vector in vectors]

    def _check(self, texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> None:
        lengths = sorted({len(vector) for vector in vectors})
        if not all(isfinite(sum(vector)) for vector in vectors):
            raise UnreadableOutput(
                f"{self.name!r} returned vectors with values that are not finite numbers"
            )
        if len(vectors) != len(texts) or lengths != [self.dimensions]:
            raise UnreadableOutput(
                f"{self.name!r}: expected {len(texts)} vectors with {self.dimensions} "
                f"dimensions, found {len(vectors)} with dimensions {lengths}"
            )


@dataclass(frozen=True, slots=True)
class VectorSize:
    """The vector length of a model; `requested` is sent to the vendor if it is not None."""

    dimensions: int
    requested: int | None


def choose_size(model: str, wanted: int | None) -> VectorSize:
    """Return the size of a model's vectors; `wanted` is the configured size, or None.

    If `wanted` differs from the default of a known model, it is requested if the model can shorten
    its vectors. For a model that is not in the table, `wanted` is required, but not sent to the
    vendor. Raises `UnknownModel`.
    """
    known = DIMENSIONS.get(model)
    if wanted is None:
        if known is None:
            raise UnknownModel(
                f"expected an embedding model of {', '.join(DIMENSIONS)}, found {model!r}; for "
                "another model, set EMBEDDING_DIMENSIONS to the length of its vectors"
            )
        return VectorSize(known, None)
    if known is None or wanted == known:
        return VectorSize(wanted, None)
    if model not in SHORTENABLE or wanted > known:
        fewer = ", or fewer" if model in SHORTENABLE else ""
        raise UnknownModel(
            f"expected EMBEDDING_DIMENSIONS={known}{fewer} for {model!r}, found {wanted}"
        )
    return VectorSize(wanted, wanted)


def _normalise(vector: Sequence[float]) -> Sequence[float]:
    length = sqrt(sum(number * number for number in vector))
    return vector if length == 0 else [number / length for number in vector]
