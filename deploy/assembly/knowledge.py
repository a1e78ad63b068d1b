"""Opens the index, the embedder, and the search over both."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING

import structlog

from config.settings import Settings
from deploy.assembly.data_folder import check_redis_of_owner, note_redis
from knowledge.answerability import ENGLISH_NOTE, UNCALIBRATED_NOTE, find_uncalibrated
from knowledge.calibration.learning import learn_calibrations
from knowledge.data_folder import protect_data_folder
from knowledge.embedding import (
    DEFAULT,
    FASTEMBED_SUFFIX,
    SHIPPED_NAMES,
    Embedder,
    LocalEmbedder,
    UnavailableEmbedder,
    earlier_embedder,
    local_embedder,
)
from knowledge.embedding_forms import TextForms, VectorIdentity, find_forms, read_forms
from knowledge.errors import EmbeddingFailed, IndexMismatch, IndexOwned, RerankingFailed
from knowledge.index.port import Index
from knowledge.library.attached_documents import AttachmentSource
from knowledge.library.library import Library
from knowledge.port import Findings, SearchRequest
from knowledge.search.question_vectors import QuestionVectors
from knowledge.search.reranking import Reranker
from knowledge.search.searcher import LevelSearcher
from llm.errors import ModelError

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from knowledge.index.index_folders import IndexFolders
    from knowledge.index.qdrant import Identity
    from knowledge.index.server.server_collections import ServerCollections
    from knowledge.index.server.server_following import ServerFollower
    from llm.quotas import Limiter, SharedLimits


log = structlog.get_logger("knowledge")


async def calibrate(index: Index, embedder: Embedder) -> Sequence[tuple[str, str]]:
    """Calibrate the cosines for the present documents; return notes for the operator.

    The shipped model is not calibrated: on English documents its weights were fitted, and in other
    languages words alone decide better. If questions cannot be embedded, the previous calibrations
    stay.
    """
    if embedder.name not in SHIPPED_NAMES:
        known = await index.calibrations()
        try:
            learned = await learn_calibrations(index, embedder, known)
        except EmbeddingFailed as error:
            log.warning("calibration_failed", embedding=embedder.name, error=str(error))
            reason = f"it could not be calibrated: {error}"
            return (f"EMBEDDING_MODEL={embedder.name}", reason), *await find_notes(index)
        if dict(learned) != dict(known):
            await index.put_calibrations(learned)
    return await find_notes(index)


async def find_notes(index: Index) -> Sequence[tuple[str, str]]:
    """Return the setting of the embedding model with a note if something can be done for it.

    Nothing can be done for a language of too few chunks to calibrate the model.
    """
    embedding = (await index.info()).embedding
    missing = await _find_uncalibrated(index, embedding)
    if not missing:
        return ()
    where = f", documents in {', '.join(sorted(missing))}"
    note = ENGLISH_NOTE if embedding in SHIPPED_NAMES else UNCALIBRATED_NOTE
    setting = DEFAULT if embedding in SHIPPED_NAMES else embedding
    return ((f"EMBEDDING_MODEL={setting}{where}", note),)


async def log_uncalibrated(index: Index) -> None:
    """Log the languages for which an ingestion can calibrate the embedding model."""
    embedding = (await index.info()).embedding
    missing = () if embedding in SHIPPED_NAMES else await _find_uncalibrated(index, embedding)
    if missing:
        log.warning(
            "embedding_model_not_calibrated", embedding=embedding, languages=sorted(missing)
        )


async def _find_uncalibrated(index: Index, embedding: str) -> tuple[str, ...]:
    """Return the languages of documents without a calibration that something can be done for.

    An ingestion tries each; it cannot learn one from too few chunks.
    """
    known = await index.calibrations()
    missing = find_uncalibrated(embedding, await index.languages(), known)
    return tuple(one for one in missing if embedding in SHIPPED_NAMES or one not in known)


@dataclass(slots=True, eq=False)
class Knowledge:
    """An open index with its embedder and its searcher.

    On a Qdrant server another index may replace it while the process runs; see `search`.
    """

    index: Index
    embedder: Embedder
    searcher: LevelSearcher
    reranker: Reranker | None = None
    others: Mapping[tuple[str, str], "Knowledge"] = field(default_factory=dict)
    """The indexes of the further assistants, by tenant and assistant."""
    is_replaced: Callable[[], bool] = bool
    """Returns whether another index answers since this one was opened."""
    limits: "SharedLimits | None" = None
    """The limits of the vendors' embedder and reranker."""
    follow_server: "ServerFollower[Knowledge] | None" = None
    """Adopts the index that answers on the server, if another one does."""
    shared_with: "tuple[Settings, Redis] | None" = None
    library: Library = field(init=False)
    """The documents of the index, with the names in them once these were read."""

    def __post_init__(self) -> None:
        """Make the library, which keeps what it has read."""
        self.library = Library(self.index)

    def of(self, tenant: str, assistant: str, *, own: tuple[str, str]) -> "Knowledge | None":
        """Return the index of an assistant, or None; `own` is the assistant of this one."""
        return self if (tenant, assistant) == own else self.others.get((tenant, assistant))

    async def follow(self) -> None:
        """Have the index that answers now; raises `KnowledgeError`."""
        if self.follow_server is not None:
            await self.follow_server.follow(self.adopt)

    def adopt(self, opened: "Knowledge") -> None:
        """Answer from another index from now on."""
        self.index, self.embedder, self.searcher = opened.index, opened.embedder, opened.searcher
        self.library.adopt(opened.index)
        if self.shared_with is not None:
            self.share_vectors(*self.shared_with)

    async def search(self, request: SearchRequest) -> Findings:
        """Search the index that answers now; see `knowledge.port.Searcher`."""
        await self.follow()
        return await self.searcher.search(request)

    async def read_revision(self) -> str:
        """Return the revision of the index that answers now."""
        await self.follow()
        return await self.index.revision()

    async def has_documents(self) -> bool:
        """Return whether the index contains documents."""
        return (await self.index.info()).documents > 0

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

    def attach(self, attachments: AttachmentSource) -> None:
        """Find the documents of the conversation around a call by their ids, too."""
        for one in (self, *self.others.values()):
            one.library.attach(attachments)

    async def warm(self) -> None:
        """Load what the first question needs."""
        # Warming the model of a vendor would cost a call.
        try:
            if isinstance(self.embedder, LocalEmbedder):
                await self.searcher.warm()
        except EmbeddingFailed as error:
            # Each search records the failure in the journal of its question, and continues with
            # keywords.
            log.warning("embedding_model_not_loaded", error=str(error))
        try:
            if self.reranker is not None:
                await self.reranker.warm()
        except RerankingFailed as error:
            # As above; a search continues in its own order.
            log.warning("reranker_not_loaded", error=str(error))


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
    follower = ServerFollower(collections, serving, open_serving)
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


async def _open_replacement(settings: Settings, identity: "Identity") -> Index:
    if settings.qdrant_url is None:
        protect_data_folder(settings.refdesk_data)
        return await open_folders(settings).open_replacement(identity)
    async with open_collections(settings) as collections:
        name = collections.name_replacement(identity.vectors)
    return await _open_on_server(settings, identity, name)


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
