"""Creates the models and embedders that the settings name, with their stores and limits."""

import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from agents.roster import AGENTS
from broker.keys import record_of
from config.prompts import PromptFiles
from config.settings import Settings
from knowledge.errors import EmbeddingFailed
from llm.errors import ModelError
from llm.offline.model import RULES
from llm.port import Model, Task, VectorModel
from llm.prompts import OWN_PROMPTS, Prompts
from llm.registry import AnswerStores, Registry, providers_of
from llm.stored_calls.stored_model import SharedCache
from llm.vendors.catalogue import vendors_by_name
from memory.model_calls import RedisCacheStore, RedisCallStore
from memory.rate_limits import RedisLimiter

if TYPE_CHECKING:
    from typing import Any

    from redis.asyncio import Redis

TASK_OF_ROLE = {spec.role.value: spec.model_task for spec in AGENTS if spec.model_task is not None}
"""The model task of each role whose agents use a model."""
TASKS = (*TASK_OF_ROLE.values(), "understand", "describe")


def make_registry(
    settings: Settings, client: "Redis | None" = None, *, prompts: Prompts | None = None
) -> Registry:
    """Return the registry of this process's models; the libraries of vendors load on first use.

    With a Redis client the limits hold over all processes; without one there are none. Without
    `prompts`, those of the product are rendered.
    """
    limits = settings.model_limits
    return Registry(
        prompts=load_prompts() if prompts is None else prompts,
        access=settings.vendor_access(),
        timeout_seconds=settings.model_timeout_seconds,
        patience_seconds=settings.model_patience_seconds,
        limiter=RedisLimiter(client, limits) if client is not None and limits else None,
    )


async def check_keys(settings: Settings, tasks: Sequence[str]) -> None:
    """Ask the vendors of these tasks' models whether they accept the keys; raises `MissingKey`."""
    from llm.vendors.key_check import check_key

    access = settings.vendor_access()
    vendors = vendors_by_name(access)
    async with asyncio.TaskGroup() as checks:
        for name in sorted(providers_of(map(settings.model_of, tasks), vendors)):
            checks.create_task(check_key(vendors[name], access[name]))


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
        last_resort = settings.model_last_resort if task in RULES else ""
        return registry.model(settings.model_of(task), stores, last_resort=last_resort)

    return model


def load_prompts() -> PromptFiles:
    """Return every prompt, checked against its task; raises `PromptError`."""
    tasks: list[Task[Any, Any]] = [import_module(f"llm.tasks.{name}").TASK for name in TASKS]
    return PromptFiles({**{task.name: task.inputs for task in tasks}, **OWN_PROMPTS})


class VendorEmbedding:
    """A vendor's embedder behind the knowledge port: its errors become `EmbeddingFailed`."""

    def __init__(self, embedder: VectorModel) -> None:
        self.name = embedder.name
        self.dimensions = embedder.dimensions
        self._embedder = embedder

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each text."""
        try:
            return await self._embedder.embed(texts)
        except ModelError as error:
            raise EmbeddingFailed(str(error)) from error
