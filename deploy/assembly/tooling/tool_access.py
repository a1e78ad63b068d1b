"""Opens what calls of tools need besides the documents: outside tools, a budget, receipts."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.keys import record_of
from config.settings import Settings
from deploy.assembly.tooling.outside_tools import open_outside_tools
from envelope.question import Question
from envelope.role import Role
from envelope.ways.specialists import SpecialistName
from memory.attachments import RedisAttachments
from memory.budgets import RedisBudgets
from memory.learned_outcomes import RedisOutcomeLog
from memory.receipts import RedisReceipts
from memory.work_store import RedisWorkStore
from worker.budgets import ToolCallBudget
from worker.hop_stores import HopReceipts, HopWork

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from tools.budget import ToolBudget
    from tools.effects.receipts import ToolReceipts
    from tools.tool import Tool

_USES_TOOLS = frozenset(
    {*(one.value for one in (Role.REASON, Role.TOOL, Role.PLAN, Role.WORK)), *SpecialistName}
)


@dataclass(frozen=True, slots=True)
class ToolAccess:
    """Tools that run elsewhere, the budget of calls, receipts of effects, stored results."""

    outside: "Sequence[Tool[Any, Any]]" = ()
    budget: "ToolBudget | None" = None
    receipts: "ToolReceipts | None" = None
    work: HopWork | None = None
    outcomes: RedisOutcomeLog | None = None


NO_ACCESS = ToolAccess()


async def open_tool_access(
    settings: Settings, roles: Sequence[str], client: "Redis", stack: AsyncExitStack
) -> ToolAccess:
    """Return the access of these roles; outside tools are connected until `stack` is closed.

    Raises `InvalidToolSet` and `CommandError`, as `open_outside_tools` does.
    """
    shards = settings.shards
    work = HopWork(RedisWorkStore(client, shards=shards, record_of=record_of(shards)))
    if _USES_TOOLS.isdisjoint(roles):
        return ToolAccess(work=work)
    outside = await stack.enter_async_context(open_outside_tools(settings.outside_tools))

    def open_receipts(question: Question, branch: str, delivery: str) -> RedisReceipts:
        return RedisReceipts(
            client,
            question,
            branch=branch,
            delivery=delivery,
            shards=shards,
            record_of=record_of(shards),
        )

    outcomes = RedisOutcomeLog(client, shards=shards) if Role.PLAN.value in roles else None
    budget = open_tool_budget(settings, client)
    return ToolAccess(tuple(outside), budget, HopReceipts(open_receipts), work, outcomes)


def open_tool_budget(settings: Settings, client: "Redis") -> ToolCallBudget | None:
    """Return the budget of tool calls; None where no limit is set."""
    if not settings.budget_tool_calls:
        return None
    budgets = RedisBudgets(client, shards=settings.shards)
    return ToolCallBudget(budgets, settings.budget_tool_calls)


def open_attachments(settings: Settings, client: "Redis") -> RedisAttachments:
    """Return the documents that people gave to conversations, kept as long as these."""
    return RedisAttachments(
        client,
        shards=settings.shards,
        ttl_of=lambda one: settings.memory_seconds_of(one.tenant, one.assistant),
    )
