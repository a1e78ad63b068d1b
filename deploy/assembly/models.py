"""Creates the models and embedders that the settings name, with their stores and limits."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import structlog

from broker.keys import record_of
from config.model_settings import ModelLimit
from config.settings import Settings
from deploy.assembly.assistant_prompts import load_overriding_prompts
from deploy.assembly.model_choice import find_context_tokens, list_answering_models, vendor_access
from envelope.run import OUTSIDE, Run
from knowledge.embedding_forms import TextForms
from knowledge.errors import EmbeddingFailed, RerankingFailed
from knowledge.search.question_vectors import VectorStore
from llm.errors import ModelError
from llm.port import Model, ScoreModel, VectorModel
from llm.prompts import Prompts
from llm.quotas import InProcessLimiter, Limiter, ModelQuota, SharedLimits
from llm.registry import AnswerStores, Registry, providers_of
from llm.stored_model import CallKey, CallStore, SharedCache
from llm.vendors.catalogue import vendors_by_name
from memory.budgets import RedisBudgets
from memory.model_calls import RedisCacheStore, RedisCallStore
from memory.rate_limits import RedisLimiter
from worker.budgets import BudgetLimits, ModelCallBudget

if TYPE_CHECKING:
    from redis.asyncio import Redis

log = structlog.get_logger("models")

EMBEDDING = "embedding"
"""The place of vectors, and of the scores of a reranker, among the paid calls of a question."""


class SharesVectors(Protocol):
    """Keeps what a vendor has returned for a question in a store that processes share."""

    def share_through(self, store: VectorStore) -> None: ...


def make_limits(settings: Settings) -> SharedLimits | None:
    """Return the limits of this process by `MODEL_LIMITS`, if there are any."""
    limits = {
        model: ModelQuota(limit.requests_per_minute, limit.tokens_per_minute)
        for model, limit in settings.model_limits.items()
    }
    return SharedLimits(InProcessLimiter(limits)) if limits else None


def make_registry(
    settings: Settings,
    client: "Redis | None" = None,
    *,
    prompts: Prompts | None = None,
    limiter: Limiter | None = None,
) -> Registry:
    """Return the registry of this process's models; the libraries of vendors load on first use.

    With a Redis client, limits and budgets hold over all processes; without one, `limiter` limits
    requests, and there is no budget.
    Without `prompts`, those of `PROMPTS_FOLDER`, of specialists, and of the product are rendered.
    """
    limits = settings.model_limits
    if prompts is None:
        prompts = load_overriding_prompts(settings.prompts_folder, settings.specialists_folder)
    return Registry(
        prompts=prompts,
        access=vendor_access(settings),
        timeout_seconds=settings.model_timeout_seconds,
        first_token_seconds=settings.model_timeout_seconds / 2,
        patience_seconds=settings.model_patience_seconds,
        limiter=RedisLimiter(client, limits) if client is not None and limits else limiter,
        budget=None if client is None else open_call_budget(settings, client),
    )


def open_call_budget(settings: Settings, client: "Redis") -> ModelCallBudget | None:
    """Return the budget of paid model calls; None where no limit is set: nothing is asked then."""
    limits = BudgetLimits.of(
        model_calls=settings.budget_model_calls,
        tokens=settings.budget_tokens,
        usd=settings.budget_usd,
        tenant_usd=settings.budget_tenant_usd,
    )
    if limits is None:
        return None
    return ModelCallBudget(RedisBudgets(client, shards=settings.shards), limits)


async def check_keys(settings: Settings, tasks: Sequence[str]) -> None:
    """Ask the vendors of these tasks' models whether they accept the keys; raises `MissingKey`."""
    from llm.vendors.catalogue import check_key

    access = vendor_access(settings)
    vendors = vendors_by_name(access)
    async with asyncio.TaskGroup() as checks:
        for name in sorted(providers_of(map(settings.model_of, tasks), vendors)):
            checks.create_task(check_key(vendors[name], access[name]))


async def note_windows(settings: Settings) -> Settings:
    """Return the settings with the context windows that servers of one's own really have.

    Only the models that write and judge answers are looked up, and only where `MODEL_LIMITS` states
    no window. A window that is too small for the context that is set is logged.
    """
    from llm.vendors.context_window import find_window

    access = vendor_access(settings)
    vendors = vendors_by_name(access)
    limits = dict(settings.model_limits)
    for name in list_answering_models(settings):
        vendor = vendors[name.provider]
        is_own = vendor.is_local or vendor.is_configured or access[name.provider].base_url
        limit = limits.get(str(name), ModelLimit())
        if not is_own or limit.context_window is not None:
            continue
        window = await find_window(name.model, vendor, access[name.provider])
        if window is None:
            continue
        limits[str(name)] = limit.model_copy(update={"context_window": window.tokens})
        if window.tokens < 2 * find_context_tokens(settings):
            log.warning(
                "model_reads_little",
                model=str(name),
                window=window.tokens,
                origin=window.origin,
                hint="start its server with a larger context; see: refdesk models",
            )
    return settings.model_copy(update={"model_limits": limits})


def make_stored_models(
    settings: Settings, registry: Registry, client: "Redis"
) -> Callable[[str], Model]:
    """Return a function from a task to its model; see `Registry.model` for its parts.

    No answer is paid twice, and questions of one assistant share answers.
    """
    shards = settings.shards
    find_record = record_of(shards)
    stores = AnswerStores(
        calls=RedisCallStore(client, shards=shards, record_of=find_record),
        cache=SharedCache(
            RedisCacheStore(client, shards=shards, record_of=find_record),
            ttl_seconds=settings.model_cache_seconds,
        )
        if settings.model_cache_seconds
        else None,
    )

    def model(task: str) -> Model:
        return registry.model(settings.model_of(task), stores)

    return model


class RunningVectors:
    """The vectors of the running question, stored with its paid model calls, which end with it."""

    def __init__(self, calls: CallStore) -> None:
        self._calls = calls

    async def get(self, run: Run, key: str) -> bytes | None:
        """Return the stored vector of a text of this question, or None."""
        called = _name_embedding(run, key)
        return None if called is None else await self._calls.get(called)

    async def put(self, run: Run, key: str, vector: bytes) -> None:
        """Store the vector of a text; without a running question nothing is stored."""
        called = _name_embedding(run, key)
        if called is not None:
            await self._calls.put(called, vector)


def _name_embedding(run: Run, key: str) -> CallKey | None:
    """Return the name of an embedding, which is the same in every stage and attempt."""
    return None if run.question is None else CallKey(run.question, EMBEDDING, 0, key)


def share_vectors(vendor: SharesVectors, settings: Settings, client: "Redis") -> None:
    """Let the processes that work on a question share what a vendor has returned for it."""
    shards = settings.shards
    calls = RedisCallStore(client, shards=shards, record_of=record_of(shards))
    vendor.share_through(RunningVectors(calls))


class VendorEmbedding:
    """A vendor's embedder behind the knowledge port: its errors become `EmbeddingFailed`.

    `forms` are the texts before questions and documents; a vendor's own forms come in addition.
    """

    def __init__(self, embedder: VectorModel, forms: TextForms) -> None:
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self.forms = "; ".join(filter(None, (embedder.forms, forms.name)))
        self._embedder = embedder
        self._forms = forms

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each text of a document."""
        return await self._embed(self._forms.make_documents(texts), OUTSIDE, are_questions=False)

    async def embed_questions(
        self, texts: Sequence[str], run: Run = OUTSIDE
    ) -> Sequence[Sequence[float]]:
        """Return a vector for each text of a question."""
        return await self._embed(self._forms.make_questions(texts), run, are_questions=True)

    async def _embed(
        self, texts: Sequence[str], run: Run, *, are_questions: bool
    ) -> Sequence[Sequence[float]]:
        try:
            return await self._embedder.embed(texts, run, are_questions=are_questions)
        except ModelError as error:
            raise EmbeddingFailed(str(error)) from error


class ServerReranker:
    """A server's reranker behind the knowledge port: its errors become `RerankingFailed`.

    With a store, a redelivered envelope takes the scores from there and pays nothing.
    """

    def __init__(self, model: ScoreModel, close: Callable[[], Awaitable[None]]) -> None:
        self.name = model.name
        self._close = close
        self._model = model
        self._store: VectorStore | None = None

    def share_through(self, store: VectorStore) -> None:
        """Keep the scores of the running question in this store."""
        self._store = store

    async def warm(self) -> None:
        """Do nothing: a server needs no loading."""

    async def score(
        self, question: str, passages: Sequence[str], run: Run = OUTSIDE
    ) -> Sequence[float]:
        """Return a score for each passage; raises also what the store raises."""
        key = self._hash(question, passages)
        kept = None if self._store is None else await self._store.get(run, key)
        if kept is not None:
            found: list[float] = np.frombuffer(kept, dtype=np.float64).tolist()
            return found
        try:
            scores = await self._model.score(question, passages, run)
        except ModelError as error:
            raise RerankingFailed(str(error)) from error
        if self._store is not None:
            await self._store.put(run, key, np.asarray(scores, dtype=np.float64).tobytes())
        return scores

    async def close(self) -> None:
        """Close the connections to the server."""
        await self._close()

    def _hash(self, question: str, passages: Sequence[str]) -> str:
        named = repr((self.name, question, tuple(passages))).encode("utf-8", "replace")
        return hashlib.blake2b(named, digest_size=32).hexdigest()
