"""The tools of an assistant, and the resources for their calls: budget, receipts, and stored
work.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.keys import record_of
from config.settings import Settings
from deploy.errors import CommandError
from envelope.role import Role
from envelope.run import Run
from envelope.specialists import SpecialistName
from memory.budgets import RedisBudgets
from memory.receipts import RedisReceipts
from memory.work_store import RedisWorkStore
from worker.budgets import ToolCallBudget

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from knowledge.open_index import OpenIndex
    from tools.calls import ToolReceipts
    from tools.catalog import ToolCatalog
    from tools.executor import ToolBudget
    from tools.outside.outside_tool import OutsideTool
    from tools.tool import Tool

_USES_TOOLS = frozenset(
    {*(role.value for role in (Role.REASON, Role.TOOL, Role.PLAN, Role.WORK)), *SpecialistName}
)


@dataclass(frozen=True, slots=True)
class ToolAccess:
    """External tools, the budget for calls, the receipts for side effects, and stored results."""

    outside: "Sequence[Tool[Any, Any]]" = ()
    open_budget: "Callable[[Run], ToolBudget] | None" = None
    open_receipts: "Callable[[Run], ToolReceipts] | None" = None
    work: RedisWorkStore | None = None


NO_ACCESS = ToolAccess()


async def open_tool_access(
    settings: Settings, roles: Sequence[str], client: "Redis", stack: AsyncExitStack
) -> ToolAccess:
    """Return the tool access for these roles; external tools stay connected until `stack` is
    closed.

    Raises `InvalidToolSet` and `CommandError`, like `open_outside_tools`.
    """
    shards = settings.shards
    work = RedisWorkStore(client, shards=shards, record_of=record_of(shards))
    if _USES_TOOLS.isdisjoint(roles):
        return ToolAccess(work=work)
    outside = await stack.enter_async_context(open_outside_tools(settings.outside_tools))
    open_budget = make_tool_budgets(client, shards=shards, most_calls=settings.budget_tool_calls)
    return ToolAccess(tuple(outside), open_budget, partial(open_receipts, client, shards), work)


def open_receipts(client: "Redis", shards: int, run: Run) -> RedisReceipts:
    """Return the receipts of a run; raises `LookupError` outside of a question."""
    return RedisReceipts(
        client,
        run.find_question(),
        branch=run.branch,
        delivery=run.delivery,
        shards=shards,
        record_of=record_of(shards),
    )


def make_tool_budgets(
    client: "Redis", *, shards: int, most_calls: int
) -> Callable[[Run], ToolCallBudget] | None:
    """Return a factory for per-run tool budgets, or None without a limit."""
    if not most_calls:
        return None
    return partial(ToolCallBudget, RedisBudgets(client, shards=shards), most_calls)


@asynccontextmanager
async def open_outside_tools(path: Path | None) -> "AsyncIterator[list[OutsideTool]]":
    """Provide the tools in a file, which stay connected inside the context; without a file, there
    are no tools.

    Raises `InvalidToolSet` if the file is invalid, and `CommandError` if the extra `mcp` is not
    installed. If a server cannot be reached, this is logged, and calls to its tools fail until it
    is available.
    """
    if path is None:
        yield []
        return
    # Imported here: most installations have none, and the client of MCP takes a second to import.
    from tools.outside.openapi import open_apis
    from tools.outside.outside_tool import load_outside_tools

    outside_tools = load_outside_tools(path)
    async with AsyncExitStack() as stack:
        tools: list[OutsideTool] = [
            *await stack.enter_async_context(open_apis(outside_tools.apis, path.parent))
        ]
        if outside_tools.servers:
            try:
                from tools.outside.mcp_tools import open_servers
            except ModuleNotFoundError as error:
                raise CommandError(
                    f"{path.name}: MCP servers require the package {error.name!r}: pip install "
                    "'refdesk[mcp]'"
                ) from error
            tools += await stack.enter_async_context(open_servers(outside_tools.servers))
        yield tools


def make_tools(
    tool_set: Path | None, knowledge: "OpenIndex", outside: "Sequence[Tool[Any, Any]]" = ()
) -> "ToolCatalog":
    """Return the tools of an assistant, including external ones.

    Raises `InvalidToolSet` for an invalid tool set.
    """
    # Imported here: they are needed only where tools are planned or run.
    from knowledge.open_index import LevelSearch
    from tools.catalog import load_tool_set, make_builtin
    from tools.tool import ToolParts

    catalog = make_builtin(
        ToolParts(knowledge, partial(LevelSearch, knowledge), knowledge.library)
    ).extend(outside)
    if tool_set is not None:
        catalog = load_tool_set(tool_set, catalog)
    return catalog
