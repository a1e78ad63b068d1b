"""Opens the index and the embedder, and the search that uses both."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from pydantic import SecretStr

from config.model_settings import ModelLimit
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


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """The location of an assistant's index: on the server at `url`, or in the data folder."""

    tenant: str
    assistant: str
    data_folder: Path
    url: str | None
    api_key: SecretStr | None

    @property
    def folders(self) -> "IndexFolders":
        """The folders of the embedded indexes."""
        from knowledge.index.index_folders import IndexFolders

        return IndexFolders(self.data_folder / "index", self.tenant, self.assistant)

    def identify(self, embedder: Embedder) -> "Identity":
        """Return the identity of the index with the vectors of an embedder."""
        from knowledge.index.qdrant import Identity

        return Identity(self.tenant, self.assistant, *identify_vectors(embedder))


@dataclass(slots=True, eq=False)
class Knowledge(OpenIndex):
    """An open index, with the rate limits of its embedding and reranking vendors."""

    limits: "SharedLimits | None" = None
    """The rate limits of the embedding and reranking vendors."""
    shared_with: "tuple[Redis, int, Mapping[str, ModelLimit]] | None" = None

    def adopt(self, opened: OpenIndex) -> None:
        """Use a different index from now on."""
        # The class of a dataclass with slots is not the one that `super()` would find.
        OpenIndex.adopt(self, opened)
        if self.shared_with is not None:
            self.share_vectors(*self.shared_with)

    def share_vectors(
        self, client: "Redis", shards: int, model_limits: Mapping[str, ModelLimit]
    ) -> None:
        """Share the vectors and scores that a vendor has returned here with other processes.

        The vendor's rate limits then apply across all processes.
        """
        self.shared_with = client, shards, model_limits
        if isinstance(self.embedder, LocalEmbedder) and self.reranker is None:
            return
        from deploy.assembly.models import share_vectors
        from memory.rate_limits import RedisLimiter
        from worker.vendor_vectors import ServerReranker

        if self.limits is not None:
            self.limits.count_with(RedisLimiter(client, model_limits))
        for vendor in (self.embedder, self.reranker):
            if isinstance(vendor, QuestionVectors | ServerReranker):
                share_vectors(vendor, client, shards)


def load_libraries(settings: Settings) -> None:
    """Import the libraries needed to open the index and to embed the first question."""
    names = ["knowledge.index.index_folders"] if settings.qdrant_url is None else []
    if isinstance(make_embedder(settings), LocalEmbedder):
        names += ["onnxruntime", "tokenizers"]
    for name in names:
        import_module(name)


@asynccontextmanager
async def open_knowledge(settings: Settings, *, alone: bool = False) -> AsyncIterator[Knowledge]:
    """Open the index of every assistant or, if `alone` is true, only the index of the first
    assistant.

    Raises `IndexOwned` if another process owns one of them, and `CommandError` if that process uses
    a different Redis.
    """
    limits = _make_limits(settings.model_limits)
    embedder, reranker = make_embedder(settings, limits), make_reranker(settings, limits)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(close_embedder, embedder)
        if reranker is not None:
            stack.push_async_callback(reranker.close)
        first, *further = settings.of_assistants()
        try:
            others = {
                settings_of_one.assistant_key: await _open_one(
                    settings_of_one, embedder, reranker, limits, stack
                )
                for settings_of_one in (() if alone else further)
            }
            known = await _open_one(first, embedder, reranker, limits, stack)
        except IndexOwned:
            check_redis_of_owner(settings.refdesk_data, settings.redis_url)
            raise
        if settings.qdrant_url is None:
            note_redis(settings.refdesk_data, settings.redis_url)
        yield replace(known, others=others)


@asynccontextmanager
async def open_collections(place: IndexPlace) -> "AsyncIterator[ServerCollections]":
    """Open an assistant's collections on its server."""
    from knowledge.index.server.server_collections import ServerCollections
    from knowledge.index.server.server_engine import connect_server

    url, secret = _read_server(place)
    client = connect_server(url, api_key=secret)
    try:
        yield ServerCollections(client, place.tenant, place.assistant, url)
    finally:
        await client.close()


@asynccontextmanager
async def open_replacement(settings: Settings) -> AsyncIterator[Knowledge]:
    """Open the index that will replace an index with the vectors of a different embedding model.

    Raises `IndexOwned` if it is embedded and another process is writing it.
    """
    limits = _make_limits(settings.model_limits)
    embedder = make_embedder(settings, limits)
    index = await _open_replacement(locate_index(settings), embedder)
    try:
        searcher = LevelSearcher(index, embedder, threshold=settings.search_confidence_threshold)
        yield Knowledge(index, embedder, searcher, limits=limits)
    finally:
        await index.close()
        await close_embedder(embedder)


async def close_embedder(embedder: Embedder) -> None:
    """Close the connections of an embedder to its vendor, if it has any."""
    if isinstance(embedder, QuestionVectors):
        await embedder.close()


def make_embedder(settings: Settings, limiter: "Limiter | None" = None) -> Embedder:
    """Return the embedder for `EMBEDDING_MODEL`: the built-in model, a fastembed model, or a
    vendor's model.

    `limiter` limits the requests to a vendor.
    """
    name = settings.embedding_model
    forms = choose_forms(
        name, settings.embedding_question_prefix, settings.embedding_document_prefix
    )
    if settings.has_vendor_embedding:
        from deploy.assembly.models import make_registry
        from worker.vendor_vectors import VendorEmbedding

        registry = make_registry(settings, limiter=limiter)
        model = registry.embedder(name, settings.embedding_dimensions)
        vendor = VendorEmbedding(model, forms)
        return QuestionVectors(vendor, close=registry.close)
    return local_embedder(name, dimensions=settings.embedding_dimensions, forms=forms)


def make_reranker(settings: Settings, limiter: "Limiter | None" = None) -> Reranker | None:
    """Return the configured reranker, or None; raises `UnknownProvider` and `MissingKey`.

    `limiter` limits the requests to a server. Libraries are imported on first use, because most
    installations have no reranker.
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


def choose_forms(model: str, question: str | None, document: str | None) -> TextForms:
    """Return the prefixes of questions and documents, as configured or based on the model's
    name.
    """
    known = find_forms(model.rpartition("@")[0] or model)
    return TextForms(
        known.question if question is None else question,
        known.document if document is None else document,
    )


def locate_index(settings: Settings) -> IndexPlace:
    """Return the location of the assistant's index."""
    return IndexPlace(
        settings.tenant,
        settings.assistant,
        settings.refdesk_data,
        settings.qdrant_url,
        settings.qdrant_api_key,
    )


async def open_index(settings: Settings, embedder: Embedder) -> Index:
    """Return the serving embedded index, or the index on the server at `QDRANT_URL`."""

    def make(changes: dict[str, object]) -> Embedder:
        return make_embedder(settings.model_copy(update=changes))

    restore = partial(restore_embedder, make)
    return (await _open_serving(locate_index(settings), embedder, restore))[0]


def restore_embedder(
    make: Callable[[dict[str, object]], Embedder], vectors: VectorIdentity
) -> Embedder:
    """Return the embedder for vectors that were created with other settings.

    `make` returns the embedder for changed settings. If it can no longer be created, the returned
    embedder always fails, so that searches use keywords.
    """
    earlier = earlier_embedder(vectors)
    if earlier is not None:
        return earlier
    forms = read_forms(vectors.forms)
    reason = f"the prefixes stored with it are {vectors.forms!r}"
    for dimensions in (None, vectors.dimensions):
        changes: dict[str, object] = {
            "embedding_model": vectors.model,
            "embedding_dimensions": dimensions,
            "embedding_question_prefix": forms.question,
            "embedding_document_prefix": forms.document,
        }
        try:
            embedder = make(changes)
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


async def _open_one(
    settings: Settings,
    embedder: Embedder,
    reranker: Reranker | None,
    limits: "SharedLimits | None",
    stack: AsyncExitStack,
) -> Knowledge:
    place = locate_index(settings)

    def make(changes: dict[str, object]) -> Embedder:
        return make_embedder(settings.model_copy(update=changes), limits)

    restore = partial(restore_embedder, make)

    async def open_serving() -> Knowledge:
        index, own = await _open_serving(place, embedder, restore)
        if own is not embedder:
            stack.push_async_callback(close_embedder, own)
        stack.push_async_callback(index.close)
        await log_uncalibrated(index)
        threshold = settings.search_confidence_threshold
        searcher = LevelSearcher(index, own, threshold=threshold, reranker=reranker)
        return Knowledge(index, own, searcher, reranker, limits=limits)

    if place.url is None:
        return replace(await open_serving(), is_replaced=_watch_folder(place.folders))
    from knowledge.index.server.server_following import ServerFollower

    collections = await stack.enter_async_context(open_collections(place))
    serving = await collections.find_serving()
    follower: ServerFollower[OpenIndex] = ServerFollower(collections, serving, open_serving)
    return replace(await open_serving(), follow_server=follower)


def _make_limits(model_limits: Mapping[str, ModelLimit]) -> "SharedLimits | None":
    """Return the limits of this process from `MODEL_LIMITS`, if there are any."""
    if not model_limits:
        return None
    from llm.quotas import InProcessLimiter, ModelQuota, SharedLimits

    return SharedLimits(
        InProcessLimiter(
            {
                model: ModelQuota(limit.requests_per_minute, limit.tokens_per_minute)
                for model, limit in model_limits.items()
            }
        )
    )


def _watch_folder(folders: "IndexFolders") -> Callable[[], bool]:
    """Return a function that returns whether a different embedded index is now in use."""
    serving = folders.serving
    return lambda: folders.serving != serving


async def _open_replacement(place: IndexPlace, embedder: Embedder) -> Index:
    identity = place.identify(embedder)
    if place.url is None:
        protect_data_folder(place.data_folder)
        return await place.folders.open_replacement(identity)
    async with open_collections(place) as collections:
        name = collections.name_replacement(identity.vectors)
    return await _open_on_server(place, identity, name)


async def _open_serving(
    place: IndexPlace, embedder: Embedder, restore: Callable[[VectorIdentity], Embedder]
) -> tuple[Index, Embedder]:
    """Return the serving index, and the embedder of its vectors.

    If the index does not contain the vectors of `embedder`, because no index with these vectors is
    complete yet, `restore` returns the embedder of the vectors that it contains.
    """
    try:
        return await _open_with(place, embedder), embedder
    except IndexMismatch as error:
        if error.written is None:
            raise
        earlier = restore(error.written)
    log.warning(
        "index_of_another_model_serves",
        serving=earlier.name,
        dimensions=earlier.dimensions,
        wanted=embedder.name,
    )
    return await _open_with(place, earlier), earlier


async def _open_with(place: IndexPlace, embedder: Embedder) -> Index:
    identity = place.identify(embedder)
    if place.url is not None:
        return await _open_on_server(place, identity)
    protect_data_folder(place.data_folder)
    return await place.folders.open_serving(identity)


def _read_server(place: IndexPlace) -> tuple[str, str | None]:
    """Return the URL of the index server, and its key."""
    if place.url is None:
        raise ValueError("QDRANT_URL is not set")
    return place.url, None if place.api_key is None else place.api_key.get_secret_value()


async def _open_on_server(
    place: IndexPlace, identity: "Identity", collection: str | None = None
) -> Index:
    from knowledge.index.server.server_engine import open_server

    url, secret = _read_server(place)
    return await open_server(url, identity, api_key=secret, collection=collection)
