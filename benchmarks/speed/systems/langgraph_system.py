"""LangGraph with its SQLite saver: a node for each role, and edges chosen by a manager node.

There is no queue: the caller runs the graph, and every step is a checkpoint in the file.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

from benchmarks.speed.payload import ROLES, Fields
from benchmarks.speed.systems.port import Ask, Setting, Watch

STEPS = 2 * len(ROLES) + 4


@asynccontextmanager
async def harness(setting: Setting, watch: Watch) -> AsyncIterator[Ask]:
    """Open the system; several processes share one file."""
    file = Path(setting.folder) / "checkpoints.sqlite"
    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        await saver.setup()
        graph = _graph(setting, watch).compile(checkpointer=saver)

        async def ask(name: str) -> None:
            await graph.ainvoke(
                setting.payload.opening(name),
                {"configurable": {"thread_id": name}, "recursion_limit": STEPS},
            )
            watch.finished(name)

        yield ask


def _graph(setting: Setting, watch: Watch) -> "StateGraph[Any]":
    attributes = {name for writes in setting.payload.writes.values() for name in writes}
    fields: Any = dict.fromkeys(("name", "step", "text", "history", *attributes), Any)
    graph: StateGraph[Any] = StateGraph(TypedDict("State", fields))  # type: ignore[operator] # made from data

    async def manage(state: Fields) -> Fields:
        if state["step"] == 0:
            watch.started(str(state["name"]))
        return {"step": int(state["step"]) + 1}

    def following(state: Fields) -> str:
        step = int(state["step"]) - 1
        return ROLES[step] if step < len(ROLES) else END

    graph.add_node("manager", manage)
    graph.add_edge(START, "manager")
    graph.add_conditional_edges("manager", following, [*ROLES, END])
    for role in ROLES:
        graph.add_node(role, _working(setting.payload.writes[role], watch))
        graph.add_edge(role, "manager")
    return graph


def _working(writes: Fields, watch: Watch) -> Callable[[Fields], Awaitable[Fields]]:
    async def work(_state: Fields) -> Fields:
        watch.worked()
        return writes

    return work
