"""Measures what branches cost without their work: loops of parallel calls, and a wide scatter.

`python -m benchmarks.speed.branches` prints, as medians of single questions on an idle process,

- a question that goes ten rounds of three parallel calls each;
- a question that scatters a hundred branches and gathers them;
- both with LangGraph and its SQLite saver, if it is installed (`requirements/bench.txt`), in turns.
"""

import asyncio
import operator
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, TypedDict

from pydantic import BaseModel, JsonValue

from agents.agent import Agent
from benchmarks.speed.redis_server import private_redis
from benchmarks.speed.refdesk_flow import PLACES, IdleAgent, NoTexts
from broker.lease_renewer import LeaseRenewal
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from gateway.desk import Desk, Message
from manager.classify import classify_done
from manager.flow import (
    BranchItem,
    Counter,
    Ending,
    Final,
    Flow,
    Join,
    Return,
    Row,
    Scatter,
    Stage,
    StageEvent,
    make_gather_stage,
)
from manager.flows.stages import START
from manager.machine import Limits
from manager.manager import Manager
from memory.conversation import RedisMemory
from worker.agent_handler import AgentHandler
from worker.port import SilentMeter
from worker.process import WorkerProcess, WorkerSpec, collect_rarely

QUESTIONS, WARM, TURNS = 40, 10, 3
_E = StageEvent
_EITHER = frozenset({_E.DONE, _E.FAILED})
_REASON = Stage("reason", Role.LANG, _EITHER, classify_done)
_CALL = Stage("call", Role.TOOL, _EITHER, classify_done)
_ACT = make_gather_stage("act")

Ask = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Shape:
    """`rounds` of `width` parallel branches each."""

    name: str
    rounds: int
    width: int


SHAPES = (Shape("10 rounds of 3 branches", 10, 3), Shape("100 branches", 1, 100))


def main() -> None:
    """Print the table."""
    collect_rarely()
    for shape in SHAPES:
        systems = {"refdesk": ask_refdesk}
        if find_spec("langgraph") is not None:
            systems["langgraph with SQLite"] = ask_langgraph
        found: dict[str, list[float]] = {name: [] for name in systems}
        for _ in range(TURNS):
            for name, system in systems.items():
                found[name] += asyncio.run(_measure(system, shape))
        for name, seconds in found.items():
            middle, late = statistics.median(seconds), statistics.quantiles(seconds, n=20)[-1]
            times = f"p50 {middle * 1000:6.1f} ms  p95 {late * 1000:6.1f} ms"
            print(f"{shape.name:<24} {name:<22} {times}")


async def _measure(system: Callable[[Shape], Any], shape: Shape) -> list[float]:
    seconds = []
    async with system(shape) as ask:
        for number in range(WARM + QUESTIONS):
            began = time.perf_counter()
            await ask(f"q{number}")
            if number >= WARM:
                seconds.append(time.perf_counter() - began)
    return seconds


class CallReads(BaseModel, frozen=True):
    """The call of a branch."""

    tool_call: dict[str, JsonValue]


class CallWrites(BaseModel, frozen=True):
    """The result of a call, with its record."""

    multi_tool_results: dict[str, JsonValue]
    tool_executions: tuple[dict[str, JsonValue], ...]


class CallAgent(Agent[CallReads, CallWrites]):
    """Returns a result for its call at once."""

    role = Role.TOOL
    reads = CallReads
    writes = CallWrites

    async def work(self, reads: CallReads) -> HopOutcome[CallWrites]:
        """Return the result."""
        name = str(reads.tool_call["call_id"])
        executions: tuple[dict[str, JsonValue], ...] = ({"call_id": name},)
        return Wrote(CallWrites(multi_tool_results={name: "result"}, tool_executions=executions))


@asynccontextmanager
async def ask_refdesk(shape: Shape) -> AsyncIterator[Ask]:
    """Open a process with all roles on a private Redis; agents write and do nothing else."""
    with private_redis() as url:
        broker, client = RedisBroker(connect(url)), connect(url)
        desk = Desk(
            broker.producer,
            broker.replies,
            tenant="bench",
            assistant="bench",
            channel="bench",
            deadline_seconds=60,
            words=lambda _key, language: language,
        )

        async def ask(name: str) -> None:
            reply = await desk.ask(Message("how", name, name))
            if reply["outcome"] != "answered":
                raise RuntimeError(f"expected an answer, found {reply}")

        async with _make_process(broker, url, client, shape).running():
            yield ask
        await broker.close()
        await client.aclose()


def _make_process(broker: RedisBroker, url: str, client: Any, shape: Shape) -> WorkerProcess:
    limits = Limits(research=shape.rounds - 1, process_count=10_000, parallel_tools=shape.width)
    manager = Manager(
        {"assistant": make_flow(shape)},
        RedisMemory(client, shards=1),
        NoTexts(),
        limits=limits,
        quality_threshold=0.7,
    )
    agents: tuple[Agent[Any, Any], ...] = (IdleAgent(Role.LANG, {"language": "en"}), CallAgent())
    specs = [WorkerSpec(manager, 4 * PLACES)]
    for agent in agents:
        handler = AgentHandler(agent, limit_seconds=30)
        specs.append(WorkerSpec(handler, 2 * PLACES))
    renewal = LeaseRenewal(lambda: RedisBroker(connect(url)))
    return WorkerProcess(broker, specs, renewal=renewal, meter=SilentMeter())


def make_flow(shape: Shape) -> Flow:
    """Return a flow whose only work is the branches of a shape."""
    items = [
        BranchItem(f"call_{number}", {"tool_call": {"call_id": f"call_{number}"}, "text": "how"})
        for number in range(shape.width)
    ]
    answer, best = Final(Ending.ANSWER), Final(Ending.BEST)
    calls = Scatter(_CALL, _ACT, lambda _payload: items, Join(at_once=shape.width))
    rows = (
        Row(START, _E.QUESTION, _REASON),
        Row(START, _E.COMMAND, best),
        Row(START, _E.FAILED, best),
        Row(_REASON, _E.DONE, calls),
        Row(_REASON, _E.FAILED, best),
        Row(_CALL, _E.DONE, Return(("multi_tool_results", "tool_executions"))),
        Row(_CALL, _E.FAILED, Return()),
        Row(_ACT, _E.GATHERED, _REASON, Counter.RESEARCH, answer),
        Row(_ACT, _E.MORE, best),
        Row(_ACT, _E.FAILED, best),
    )
    return Flow("branches", 1, rows)


@asynccontextmanager
async def ask_langgraph(shape: Shape) -> AsyncIterator[Ask]:
    """Open the same graph in LangGraph: its nodes do nothing, and every step is a checkpoint."""
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.graph import END, StateGraph
    from langgraph.graph import START as FIRST
    from langgraph.types import Send

    class State(TypedDict):
        name: str
        round: int
        results: Annotated[list[str], operator.add]

    async def reason(state: State) -> dict[str, Any]:
        return {"round": state["round"] + 1}

    async def call(_state: State) -> dict[str, Any]:
        return {"results": ["result"]}

    async def act(_state: State) -> dict[str, Any]:
        return {}

    def begin(_state: State) -> Sequence[Send]:
        return [Send("call", {"name": "call"}) for _ in range(shape.width)]

    def follow(state: State) -> str:
        return "reason" if state["round"] < shape.rounds else END

    graph: StateGraph[Any] = StateGraph(State)
    for name, node in (("reason", reason), ("call", call), ("act", act)):
        graph.add_node(name, node)
    graph.add_edge(FIRST, "reason")
    graph.add_conditional_edges("reason", begin, ["call"])
    graph.add_edge("call", "act")
    graph.add_conditional_edges("act", follow, ["reason", END])
    with tempfile.TemporaryDirectory(prefix="refdesk-bench-") as folder:
        file = str(Path(folder) / "checkpoints.sqlite")
        async with AsyncSqliteSaver.from_conn_string(file) as saver:
            await saver.setup()
            run = partial(_run_graph, graph.compile(checkpointer=saver))
            yield run


async def _run_graph(graph: Any, name: str) -> None:
    await graph.ainvoke(
        {"name": name, "round": 0, "results": []},
        {"configurable": {"thread_id": name}, "recursion_limit": 100},
    )


if __name__ == "__main__":
    main()
