"""Opens the index, the embedder, and the search over both."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING

import structlog

from config.settings import Settings
from deploy.assembly.data_folder import check_redis_of_owner, note_redis
from knowledge.calibration.calibrating import log_uncalibrated
from knowledge.data_folder import protect_data_folder
from knowledge.embedding import (
    FASTEMBED_SUFFIX,
    Embedder,
    LocalEmbedder,
    UnavailableEmbedder,
    earlier_embedder,
    local_embedder,
)
from knowledge.embedding_forms import TextForms, VectorIdentity, find_forms, read_forms
from knowledge.errors import EmbeddingFailed, IndexMismatch, IndexOwned
from knowledge.index.port import Index
from knowledge.open_index import OpenIndex
from knowledge.search.question_vectors import QuestionVectors
from knowledge.search.reranking import Reranker
from knowledge.search.searcher import LevelSearcher
from llm.errors import ModelError

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from knowledge.index.index_folders import IndexFolders
    from knowledge.index.qdrant import Identity
    from knowledge.index.server.server_collections import ServerCollections
    from llm.quotas import Limiter, SharedLimits

log = structlog.get_logger("knowledge")


@dataclass(slots=True, eq=False)
class Knowledge(OpenIndex):
    """An open index whose vendors of vectors and scores have limits that processes share."""

    limits: "SharedLimits | None" = None
    """The limits of the vendors' embedder and reranker."""
    shared_with: "tuple[Settings, Redis] | None" = None

    def adopt(self, opened: OpenIndex) -> None:
        """Answer from another index from now on."""
        # The class of a dataclass with slots is not the one that `super()` would find.
        OpenIndex.adopt(self, opened)
        if self.shared_with is not None:
            self.share_vectors(*self.shared_with)

    def share_vectors(self, settings: Settings, client: "Redis") -> None:
        """Let other processes use the vectors and scores that a vendor has returned here.

        The vendor's limits hold over all processes from then on.
        """
        from deploy.assembly.models import share_vectors
        from memory.rate_limits import RedisLimiter
        from worker.vendor_vectors import ServerReranker

        self.shared_with = settings, client
        if self.limits is not None:
            self.limits.count_with(RedisLimiter(client, settings.model_limits))
        for vendor in (self.embedder, self.reranker):
            if isinstance(vendor, QuestionVectors | ServerReranker):
                share_vectors(vendor, settings, client)


def load_libraries(settings: Settings) -> None:
    """Import the libraries for opening the index and embedding the first question."""
    names = ["knowledge.index.index_folders"] if settings.qdrant_url is None else []
    if isinstance(make_embedder(settings), LocalEmbedder):
        names += ["onnxruntime", "tokenizers"]
    for name in names:
        import_module(name)


@asynccontextmanager
async def open_knowledge(settings: Settings, *, alone: bool = False) -> AsyncIterator[Knowledge]:
    """Open the index of every assistant; `alone`: only of the first one.

    Raises `IndexOwned` when another process owns one, and `CommandError` if that process uses
    another Redis.
    """
    limits = _make_limits(settings)
    embedder, reranker = make_embedder(settings, limits), make_reranker(settings, limits)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(close_embedder, embedder)
        if reranker is not None:
            stack.push_async_callback(reranker.close)
        first, *further = settings.of_assistants()
        try:
            others = {
                (one.tenant, one.assistant): await _open_one(one, embedder, reranker, limits, stack)
                for one in (() if alone else further)
            }
            known = await _open_one(first, embedder, reranker, limits, stack)
        except IndexOwned:
            check_redis_of_owner(settings)
            raise
        if settings.qdrant_url is None:
            note_redis(settings)
        yield replace(known, others=others)


@asynccontextmanager
async def open_collections(settings: Settings) -> "AsyncIterator[ServerCollections]":
    """Open the collections of the assistant on `QDRANT_URL`."""
    from knowledge.index.server.server_collections import ServerCollections
    from knowledge.index.server.server_engine import connect_server

    url, key = settings.qdrant_url, settings.qdrant_api_key
    if url is None:
        raise ValueError("expected QDRANT_URL, found none")
    client = connect_server(url, api_key=None if key is None else key.get_secret_value())
    try:
        yield ServerCollections(client, settings.tenant, settings.assistant, url)
    finally:
        await client.close()


@asynccontextmanager
async def open_replacement(settings: Settings) -> AsyncIterator[Knowledge]:
    """Open the index that is written to replace the one of another embedding model.

    Raises `IndexOwned` when another process writes it, embedded.
    """
    limits = _make_limits(settings)
    embedder = make_embedder(settings, limits)
    index = await _open_replacement(settings, _identify(settings, embedder))
    try:
        searcher = make_searcher(settings, index, embedder)
        yield Knowledge(index, embedder, searcher, limits=limits)
    finally:
        await index.close()
        await close_embedder(embedder)


async def close_embedder(embedder: Embedder) -> None:
    """Close the connections of an embedder to its vendor, if there are any."""
    if isinstance(embedder, QuestionVectors):
        await embedder.close()


def make_embedder(settings: Settings, limiter: "Limiter | None" = None) -> Embedder:
    """Return the embedder of `EMBEDDING_MODEL`: shipped, of fastembed, or a vendor's.

    `limiter` limits the requests to a vendor.
    """
    name = settings.embedding_model
    if settings.has_vendor_embedding:
        from deploy.assembly.models import make_registry
        from worker.vendor_vectors import VendorEmbedding

        registry = make_registry(settings, limiter=limiter)
        model = registry.embedder(name, settings.embedding_dimensions)
        vendor = VendorEmbedding(model, choose_forms(settings))
        return QuestionVectors(vendor, close=registry.close)
    return local_embedder(
        name, dimensions=settings.embedding_dimensions, forms=choose_forms(settings)
    )


def make_reranker(settings: Settings, limiter: "Limiter | None" = None) -> Reranker | None:
    """Return the reranker of the settings, or None; raises `UnknownProvider` and `MissingKey`.

    `limiter` limits the requests to a server. Its libraries are imported here and when it is first
    used: most settings have no reranker.
    """
    if not settings.reranker:
        return None
    if settings.reranker.endswith(FASTEMBED_SUFFIX):
        from knowledge.search.reranking import make_cross_encoder

        return make_cross_encoder(settings.reranker, settings.reranker_seconds)
    from deploy.assembly.models import make_registry
    from worker.vendor_vectors import ServerReranker

    registry = make_registry(settings, limiter=limiter)
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
    """Return the embedded index that answers, or the one on `QDRANT_URL`."""
    return (await _open_serving(settings, embedder))[0]


def restore_embedder(
    settings: Settings, vectors: VectorIdentity, limiter: "Limiter | None" = None
) -> Embedder:
    """Return the embedder of vectors that other settings have made.

    If it cannot be made any more, the returned one fails, so that searches use keywords.
    """
    earlier = earlier_embedder(vectors)
    if earlier is not None:
        return earlier
    forms = read_forms(vectors.forms)
    reason = f"its forms of texts are {vectors.forms!r}"
    for dimensions in (None, vectors.dimensions):
        changes = {
            "embedding_model": vectors.model,
            "embedding_dimensions": dimensions,
            "embedding_question_prefix": forms.question,
            "embedding_document_prefix": forms.document,
        }
        try:
            embedder = make_embedder(settings.model_copy(update=changes), limiter)
        except (EmbeddingFailed, ModelError, ImportError) as error:
            reason = str(error)
            continue
        if identify_vectors(embedder) == vectors:
            return embedder
    return UnavailableEmbedder(
        vectors, f"the embedding model {vectors.model!r} of the index cannot be loaded: {reason}"
    )


def identify_vectors(embedder: Embedder) -> VectorIdentity:
    """Return the identity of an embedder's vectors."""
    return VectorIdentity(embedder.name, embedder.dimensions, embedder.forms)


def open_folders(settings: Settings) -> "IndexFolders":
    """Return the folders of the assistant's embedded indexes."""
    from knowledge.index.index_folders import IndexFolders

    return IndexFolders(settings.refdesk_data / "index", settings.tenant, settings.assistant)


async def _open_one(
    settings: Settings,
    embedder: Embedder,
    reranker: Reranker | None,
    limits: "SharedLimits | None",
    stack: AsyncExitStack,
) -> Knowledge:
    async def open_serving() -> Knowledge:
        index, own = await _open_serving(settings, embedder, limits)
        if own is not embedder:
            stack.push_async_callback(close_embedder, own)
        stack.push_async_callback(index.close)
        await log_uncalibrated(index)
        searcher = make_searcher(settings, index, own, reranker)
        return Knowledge(index, own, searcher, reranker, limits=limits)

    if settings.qdrant_url is None:
        return replace(await open_serving(), is_replaced=_watch_folder(settings))
    from knowledge.index.server.server_following import ServerFollower

    collections = await stack.enter_async_context(open_collections(settings))
    serving = await collections.find_serving()
    follower: ServerFollower[OpenIndex] = ServerFollower(collections, serving, open_serving)
    return replace(await open_serving(), follow_server=follower)


def _make_limits(settings: Settings) -> "SharedLimits | None":
    if not settings.model_limits:
        return None
    from deploy.assembly.models import make_limits

    return make_limits(settings)


def _watch_folder(settings: Settings) -> Callable[[], bool]:
    """Return a function that returns whether another embedded index answers now."""
    folders = open_folders(settings)
    serving = folders.serving
    return lambda: folders.serving != serving


async def _open_replacement(settings: Settings, identity: "Identity") -> Index:
    if settings.qdrant_url is None:
        protect_data_folder(settings.refdesk_data)
        return await open_folders(settings).open_replacement(identity)
    async with open_collections(settings) as collections:
        name = collections.name_replacement(identity.vectors)
    return await _open_on_server(settings, identity, name)


async def _open_serving(
    settings: Settings, embedder: Embedder, limiter: "Limiter | None" = None
) -> tuple[Index, Embedder]:
    """Return the index that answers, and the embedder of its vectors.

    That is another embedder than the one of the settings until an index of theirs is complete.
    """
    try:
        return await _open_with(settings, embedder), embedder
    except IndexMismatch as error:
        if error.written is None:
            raise
        earlier = restore_embedder(settings, error.written, limiter)
    log.warning(
        "index_of_another_model_serves",
        serving=earlier.name,
        dimensions=earlier.dimensions,
        wanted=embedder.name,
    )
    return await _open_with(settings, earlier), earlier


def _identify(settings: Settings, embedder: Embedder) -> "Identity":
    from knowledge.index.qdrant import Identity

    return Identity(settings.tenant, settings.assistant, *identify_vectors(embedder))


async def _open_with(settings: Settings, embedder: Embedder) -> Index:
    identity = _identify(settings, embedder)
    if settings.qdrant_url is not None:
        return await _open_on_server(settings, identity)
    protect_data_folder(settings.refdesk_data)
    return await open_folders(settings).open_serving(identity)


async def _open_on_server(
    settings: Settings, identity: "Identity", collection: str | None = None
) -> Index:
    from knowledge.index.server.server_engine import open_server

    url, key = settings.qdrant_url, settings.qdrant_api_key
    if url is None:
        raise ValueError("expected QDRANT_URL, found none")
    secret = key.get_secret_value() if key is not None else None
    return await open_server(url, identity, api_key=secret, collection=collection)
