"""Opens the index, the embedder, and the search over both."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING

import structlog

from config.settings import Settings
from deploy.assembly.calibration import log_uncalibrated
from deploy.assembly.data_folder import protect_data_folder
from knowledge.embedding import FASTEMBED_SUFFIX, Embedder, LocalEmbedder, local_embedder
from knowledge.embedding_forms import TextForms, find_forms
from knowledge.errors import EmbeddingFailed, RerankingFailed
from knowledge.index.port import Index
from knowledge.search.question_vectors import QuestionVectors
from knowledge.search.reranking.reranker import Reranker
from knowledge.search.searcher import LevelSearcher

if TYPE_CHECKING:
    from redis.asyncio import Redis

log = structlog.get_logger("knowledge")


@dataclass(frozen=True, slots=True)
class Knowledge:
    """An open index with its embedder and its searcher."""

    index: Index
    embedder: Embedder
    searcher: LevelSearcher
    reranker: Reranker | None = None
    others: Mapping[tuple[str, str], "Knowledge"] = field(default_factory=dict)
    """The indexes of the further assistants, by tenant and assistant."""

    def of(self, tenant: str, assistant: str, *, own: tuple[str, str]) -> "Knowledge | None":
        """Return the index of an assistant, or None; `own` is the assistant of this one."""
        return self if (tenant, assistant) == own else self.others.get((tenant, assistant))

    async def has_documents(self) -> bool:
        """Return whether the index contains documents."""
        return (await self.index.info()).documents > 0

    def share_vectors(self, settings: Settings, client: "Redis") -> None:
        """Let other processes use the vectors and scores that a vendor has returned here."""
        from deploy.assembly.models import ServerReranker, share_vectors

        for vendor in (self.embedder, self.reranker):
            if isinstance(vendor, QuestionVectors | ServerReranker):
                share_vectors(vendor, settings, client)

    @asynccontextmanager
    async def warming(self) -> AsyncIterator[None]:
        """Load what the first question needs while the block inside runs."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._warm())
            yield

    async def _warm(self) -> None:
        # To warm a model of a vendor would cost a call.
        try:
            if isinstance(self.embedder, LocalEmbedder):
                await self.searcher.warm()
        except EmbeddingFailed as error:
            # Each search records it too, in its question's journal, and continues by keywords.
            log.warning("embedding_model_not_loaded", error=str(error))
        try:
            if self.reranker is not None:
                await self.reranker.warm()
        except RerankingFailed as error:
            # As above; a search continues in its own order.
            log.warning("reranker_not_loaded", error=str(error))


def load_libraries(settings: Settings) -> None:
    """Import the libraries for opening the index and embedding the first question."""
    names = ["knowledge.index.embedded"] if settings.qdrant_url is None else []
    if isinstance(make_embedder(settings), LocalEmbedder):
        names += ["onnxruntime", "tokenizers"]
    for name in names:
        import_module(name)


@asynccontextmanager
async def open_knowledge(settings: Settings, *, alone: bool = False) -> AsyncIterator[Knowledge]:
    """Open the index of every assistant; `alone`: only of the first one.

    Raises `IndexOwned` when another process owns one.
    """
    embedder, reranker = make_embedder(settings), make_reranker(settings)
    async with AsyncExitStack() as stack:
        if reranker is not None:
            stack.push_async_callback(reranker.close)
        first, *further = settings.of_assistants()
        others = {
            (one.tenant, one.assistant): await _open_one(one, embedder, reranker, stack)
            for one in (() if alone else further)
        }
        known = await _open_one(first, embedder, reranker, stack)
        yield replace(known, others=others)


async def _open_one(
    settings: Settings, embedder: Embedder, reranker: Reranker | None, stack: AsyncExitStack
) -> Knowledge:
    index = await open_index(settings, embedder)
    stack.push_async_callback(index.close)
    await log_uncalibrated(index)
    return Knowledge(index, embedder, make_searcher(settings, index, embedder, reranker), reranker)


def make_embedder(settings: Settings) -> Embedder:
    """Return the embedder of `EMBEDDING_MODEL`: shipped, of fastembed, or a vendor's."""
    name = settings.embedding_model
    if settings.has_vendor_embedding:
        from deploy.assembly.models import VendorEmbedding, make_registry

        model = make_registry(settings).embedder(name, settings.embedding_dimensions)
        return QuestionVectors(VendorEmbedding(model, choose_forms(settings)))
    return local_embedder(
        name, dimensions=settings.embedding_dimensions, forms=choose_forms(settings)
    )


def make_reranker(settings: Settings) -> Reranker | None:
    """Return the reranker of the settings, or None; raises `UnknownProvider` and `MissingKey`.

    Its libraries are imported here and when it is first used: most settings have no reranker.
    """
    if not settings.reranker:
        return None
    if settings.reranker.endswith(FASTEMBED_SUFFIX):
        from knowledge.search.reranking.cross_encoder import make_cross_encoder

        return make_cross_encoder(settings.reranker, settings.reranker_seconds)
    from deploy.assembly.models import ServerReranker, make_registry

    registry = make_registry(settings)
    model = registry.reranker(settings.reranker, settings.reranker_seconds)
    return ServerReranker(model, registry.close)


def choose_forms(settings: Settings) -> TextForms:
    """Return the forms of questions and documents: of the settings, or by the model's name."""
    known = find_forms(settings.embedding_model.rpartition("@")[0] or settings.embedding_model)
    question, document = settings.embedding_question_prefix, settings.embedding_document_prefix
    return TextForms(
        known.question if question is None else question,
        known.document if document is None else document,
    )


def make_searcher(
    settings: Settings, index: Index, embedder: Embedder, reranker: Reranker | None = None
) -> LevelSearcher:
    """Return the search over an index."""
    threshold = settings.search_confidence_threshold
    return LevelSearcher(index, embedder, threshold=threshold, reranker=reranker)


async def open_index(settings: Settings, embedder: Embedder) -> Index:
    """Return the embedded index, or the one on `QDRANT_URL`."""
    from knowledge.index.qdrant import Identity

    identity = Identity(
        tenant=settings.tenant,
        assistant=settings.assistant,
        embedding=embedder.name,
        dimensions=embedder.dimensions,
        forms=embedder.forms,
    )
    if settings.qdrant_url is not None:
        from knowledge.index.server import open_server

        key = settings.qdrant_api_key
        secret = key.get_secret_value() if key is not None else None
        return await open_server(settings.qdrant_url, identity, api_key=secret)
    from knowledge.index.embedded import open_embedded

    protect_data_folder(settings.refdesk_data)
    return await open_embedded(settings.refdesk_data / "index", identity)
