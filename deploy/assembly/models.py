"""Makes the models and embedders that settings name, with their stores and limits."""

import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from broker.keys import record_of
from config.prompts import PromptFiles
from config.settings import Settings
from knowledge.errors import EmbeddingFailed
from llm.errors import ModelError
from llm.port import Model, Task, VectorModel
from llm.prompts import OWN_PROMPTS, Prompts
from llm.registry import Registry, Vendor, parse
from llm.stored_calls.replay import StoredModel
from llm.stored_calls.shared_cache import CachedModel
from memory.model_calls import RedisCacheStore, RedisCallStore
from memory.rate_limits import RedisLimiter

if TYPE_CHECKING:
    from typing import Any

    from pydantic import SecretStr
    from redis.asyncio import Redis

TASK_OF_ROLE = {
    "translation": "translate",
    "essence": "essence",
    "guardrails": "scope",
    "response": "respond",
    "quality": "judge",
    "clarification": "clarify",
}
"""What the agents of a role ask a model for."""
TASKS = ("translate", "essence", "scope", "respond", "judge", "clarify", "describe")


def make_registry(
    settings: Settings, client: "Redis | None" = None, *, prompts: Prompts | None = None
) -> Registry:
    """Return the registry of this process's models; vendors' libraries load when first used.

    With a client of Redis the limits hold over all processes; without one there are none. Without
    `prompts`, those of the product are rendered.
    """
    limits = settings.model_limits
    return Registry(
        prompts=load_prompts() if prompts is None else prompts,
        openai=Vendor(
            api_key=_secret(settings.openai_api_key),
            base_url=settings.openai_base_url,
            json_object=settings.openai_json_object,
        ),
        google=Vendor(api_key=_secret(settings.google_api_key), base_url=settings.google_base_url),
        timeout_seconds=settings.model_timeout_seconds,
        limiter=RedisLimiter(client, limits) if client is not None and limits else None,
    )


async def check_keys(settings: Settings, tasks: Sequence[str]) -> None:
    """Ask the vendors of these tasks' models whether they accept our keys; raises `MissingKey`."""
    from llm.key_check import check_key

    names = {name for task in tasks for name in parse(settings.model_of(task))}
    providers = {name.provider for name in names}
    vendors = {
        "openai": (settings.openai_api_key, settings.openai_base_url),
        "google": (settings.google_api_key, settings.google_base_url),
    }
    async with asyncio.TaskGroup() as checks:
        for provider, (key, url) in vendors.items():
            if provider in providers:
                checks.create_task(check_key(provider, Vendor(_secret(key), url)))


def make_stored_models(
    settings: Settings, registry: Registry, client: "Redis"
) -> Callable[[str], Model]:
    """Return what makes the model of a task: nothing is paid twice, and answers are shared."""
    prompts = load_prompts()
    shards = settings.shards
    calls = RedisCallStore(client, shards=shards, record_of=record_of(shards))

    def model(task: str) -> Model:
        found = registry.model(settings.model_of(task))
        if settings.model_cache_seconds:
            found = CachedModel(
                found,
                RedisCacheStore(client, shards=shards, record_of=record_of(shards)),
                prompts=prompts,
                ttl_seconds=settings.model_cache_seconds,
            )
        return StoredModel(found, calls, prompts=prompts)

    return model


def load_prompts() -> PromptFiles:
    """Return every prompt, checked against its task; raises `PromptError`."""
    tasks: list[Task[Any, Any]] = [import_module(f"llm.tasks.{name}").TASK for name in TASKS]
    return PromptFiles({**{task.name: task.inputs for task in tasks}, **OWN_PROMPTS})


class VendorEmbedding:
    """A vendor's embedder as knowledge knows embedders: it fails with `EmbeddingFailed`."""

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


def _secret(value: "SecretStr | None") -> str | None:
    return None if value is None else value.get_secret_value()
