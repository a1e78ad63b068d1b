"""Runs the graph in one process: `... systems.langgraph_branches FOLDER ...`.

It starts the thread, or, with `--resume`, goes on with it, as a caller does after a failure. The
number of results is printed. `--durability` is LangGraph's; `--retry` gives the workers its policy.
"""

import argparse
import asyncio
import operator
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy, Send

from benchmarks.speed.branch_failures import WIDTH, FailedOnceError, WorkerNotes


class State(TypedDict):
    """The state of the graph: the results are appended by a reducer."""

    number: int
    results: Annotated[list[int], operator.add]


def main() -> None:
    """Run or resume the graph."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--fails", action="store_true")
    parser.add_argument("--retry", action="store_true")
    parser.add_argument("--durability", default="async")
    chosen = parser.parse_args()
    try:
        found = asyncio.run(_run(chosen))
    except FailedOnceError as error:
        sys.exit(str(error))
    sys.stdout.write(f"{found}\n")


async def _run(chosen: argparse.Namespace) -> int:
    notes = WorkerNotes(chosen.folder / "notes")

    async def work(state: State) -> dict[str, Any]:
        await notes.work(state["number"], fails_once=chosen.fails)
        return {"results": [state["number"]]}

    async def plan(_state: State) -> dict[str, Any]:
        return {}

    async def join(_state: State) -> dict[str, Any]:
        return {}

    def scatter(_state: State) -> Sequence[Send]:
        return [Send("work", {"number": number}) for number in range(WIDTH)]

    policy = RetryPolicy(initial_interval=0.05, retry_on=FailedOnceError) if chosen.retry else None
    graph: StateGraph[Any] = StateGraph(State)
    graph.add_node("plan", plan)
    graph.add_node("work", work, retry_policy=policy)
    graph.add_node("join", join)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", scatter, ["work"])
    graph.add_edge("work", "join")
    graph.add_edge("join", END)
    async with AsyncSqliteSaver.from_conn_string(str(chosen.folder / "checkpoints")) as saver:
        await saver.setup()
        compiled = graph.compile(checkpointer=saver)
        given = None if chosen.resume else {"number": 0, "results": []}
        config: Any = {"configurable": {"thread_id": "one"}, "recursion_limit": 100}
        state = await compiled.ainvoke(given, config, durability=chosen.durability)
    return len(set(state["results"]))


if __name__ == "__main__":
    main()
