"""The tools of an assistant, and what their calls need: budget, receipts, stored work."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.keys import record_of
from config.settings import Settings
from deploy.errors import CommandError
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

    from tools.effects import ToolReceipts
    from tools.executor import ToolBudget
    from tools.outside.outside_tool import OutsideTool
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


@asynccontextmanager
async def open_outside_tools(path: Path | None) -> "AsyncIterator[list[OutsideTool]]":
    """Yield the tools of a file, connected inside the block; without a file there are none.

    Raises `InvalidToolSet` for a file that is wrong, and `CommandError` without the extra `mcp`. A
    server that is away is logged: its tools are there and fail until it is back.
    """
    if path is None:
        yield []
        return
    # Imported here: most installations have none, and the client of MCP takes a second to import.
    from tools.outside.configuration import load_outside_tools
    from tools.outside.operation_tool import open_apis

    found = load_outside_tools(path)
    async with AsyncExitStack() as stack:
        tools: list[OutsideTool] = [
            *await stack.enter_async_context(open_apis(found.apis, path.parent))
        ]
        if found.servers:
            try:
                from tools.outside.mcp_tools import open_servers
            except ModuleNotFoundError as error:
                raise CommandError(
                    f"{path.name}: expected the package {error.name!r} for MCP servers, "
                    "found none: install refdesk[mcp]"
                ) from error
            tools += await stack.enter_async_context(open_servers(found.servers))
        yield tools
