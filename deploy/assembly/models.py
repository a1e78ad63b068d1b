"""Creates the configured models and embedders, with their stores and limits."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import structlog

from agents.review.cost_estimate import ReviewCost, estimate_cost
from broker.keys import record_of
from config.model_settings import ModelLimit
from config.settings import Settings
from deploy.assembly.assistant_prompts import load_overriding_prompts
from deploy.assembly.model_choice import find_context_tokens, list_answering_models, vendor_access
from knowledge.search.question_vectors import QuestionVectors
from llm.port import Model
from llm.prompts import Prompts
from llm.quotas import Limiter
from llm.registry import AnswerStores, Registry, estimate_call_usd, providers_of
from llm.stored_model import SharedCache
from llm.vendors.catalogue import VendorAccess, parse_models, vendors_by_name
from memory.budgets import RedisBudgets
from memory.model_calls import RedisCacheStore, RedisCallStore
from memory.model_speed import RedisModelSpeeds
from memory.rate_limits import RedisLimiter
from worker.budgets import BudgetLimits, ModelCallBudget
from worker.vendor_vectors import RunningVectors, ServerReranker

if TYPE_CHECKING:
    from redis.asyncio import Redis

log = structlog.get_logger("models")


def make_registry(
    settings: Settings,
    client: "Redis | None" = None,
    *,
    prompts: Prompts | None = None,
    limiter: Limiter | None = None,
) -> Registry:
    """Return the model registry of this process; vendor libraries are loaded on first use.

    With a Redis client, limits and budgets apply across all processes. Without one, `limiter`
    limits requests, and there is no budget. If `prompts` is not given, the prompts in
    `PROMPTS_FOLDER`, the prompts of specialists, and the built-in prompts are used.
    """
    limits = settings.model_limits
    if prompts is None:
        prompts = load_overriding_prompts(settings.prompts_folder, settings.specialists_folder)
    budget = BudgetLimits.of(
        model_calls=settings.budget_model_calls,
        tokens=settings.budget_tokens,
        usd=settings.budget_usd,
        tenant_usd=settings.budget_tenant_usd,
    )
    return Registry(
        prompts=prompts,
        access=vendor_access(settings),
        timeout_seconds=settings.model_timeout_seconds,
        first_token_seconds=settings.model_timeout_seconds / 2,
        patience_seconds=settings.model_patience_seconds,
        limiter=RedisLimiter(client, limits) if client is not None and limits else limiter,
        budget=None if client is None else _make_budget(budget, client, settings.shards),
    )


async def check_keys(access: Mapping[str, VendorAccess], models: Iterable[str]) -> None:
    """Check whether the vendors of these models accept the keys; raises `MissingKey`."""
    from llm.vendors.catalogue import check_key

    vendors = vendors_by_name(access)
    async with asyncio.TaskGroup() as checks:
        for name in sorted(providers_of(models, vendors)):
            checks.create_task(check_key(vendors[name], access[name]))


async def note_windows(settings: Settings) -> Settings:
    """Return the settings with the actual context windows of self-hosted servers.

    Only the models that write and judge answers are checked, and only if `MODEL_LIMITS` does not
    contain their window. If a window is too small for the configured context, this is logged.
    """
    from llm.vendors.context_window import find_window

    access = vendor_access(settings)
    vendors = vendors_by_name(access)
    limits = dict(settings.model_limits)
    for name in list_answering_models(access, settings.model_of):
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
    registry: Registry,
    client: "Redis",
    model_of: Callable[[str], str],
    *,
    shards: int,
    cache_seconds: int,
) -> Callable[[str], Model]:
    """Return a function that returns the model for a task; see `Registry.model` for its parts.

    Each answer is paid for only once, and questions of the same assistant share answers.
    """
    find_record = record_of(shards)
    stores = AnswerStores(
        calls=RedisCallStore(client, shards=shards, record_of=find_record),
        cache=SharedCache(
            RedisCacheStore(client, shards=shards, record_of=find_record),
            ttl_seconds=cache_seconds,
        )
        if cache_seconds
        else None,
        speeds=RedisModelSpeeds(client),
    )

    def model(task: str) -> Model:
        return registry.model(model_of(task), stores)

    return model


async def estimate_review(
    model: str, access: Mapping[str, VendorAccess], client: "Redis", rules: int, documents: int
) -> ReviewCost:
    """Return the estimate for a review with the model that writes answers, based on the chunks of
    its documents.
    """
    [name, *_] = parse_models(model, vendors_by_name(access))
    return estimate_cost(
        rules,
        documents,
        price=lambda usage: estimate_call_usd(model, usage, access),
        tokens_per_second=await RedisModelSpeeds(client).read(str(name)),
    )


def share_vectors(vendor: QuestionVectors | ServerReranker, client: "Redis", shards: int) -> None:
    """Share the results that a vendor has returned for a question with all processes that work on
    it.
    """
    calls = RedisCallStore(client, shards=shards, record_of=record_of(shards))
    vendor.share_through(RunningVectors(calls))


def _make_budget(
    limits: BudgetLimits | None, client: "Redis | None", shards: int
) -> ModelCallBudget | None:
    """Return the budget for paid model calls, or None without limits or Redis."""
    if limits is None or client is None:
        return None
    return ModelCallBudget(RedisBudgets(client, shards=shards), limits)
