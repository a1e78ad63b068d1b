"""One worker process of the suite: the real worker, broker and manager, on scripted agents."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agents.agent import Agent
from broker.keys import record_of
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from config.texts import load_texts
from envelope.role import Role
from llm.stored_model import StoredModel
from manager.flow import Flow
from manager.flows import FLOWS
from manager.flows.swarm import SWARM_FLOW
from manager.machine import Limits
from manager.manager import ManagerAgent
from memory.conversation import RedisMemory, RedisPeople
from memory.model_calls import RedisCallStore
from tests.faults.desk_client import front, front_of
from tests.faults.labels import Plan, Watch, WatchedPolicy, carry_out
from tests.faults.ledger import Ledger
from tests.faults.scripted_agents import (
    KEEPS_TURNS,
    Bill,
    FollowingAgent,
    NotingCalls,
    NotingHandler,
    NotingMeter,
    NotingRenewal,
    SwarmScript,
    act_as_tool,
    make_act,
)
from tests.support.branching_flow import BRANCHING_FLOW, ToolAgent
from tests.support.pausing_flow import PAUSING_FLOW, AskingTool
from tests.support.swarm_agents import ActingWorker, make_hurried_flow, make_swarm
from tests.support.waiting import wait_until
from tests.support.worker_harness import WRITES, FixedTexts
from worker.agent_handler import AgentHandler, Assistant, make_poison_notice
from worker.call_recording import HopCalls
from worker.port import Handler, WorkerMeter
from worker.process import WorkerProcess, WorkerSpec, collect_rarely
from worker.shutdown import GracePeriod, stop_on_signals

ALL_ROLES = (Role.MANAGER, *WRITES)
BRANCHING_ROLES = tuple(role.value for role in (*ALL_ROLES, Role.TOOL))
SWARM_ROLES = (Role.PLAN, Role.GATHER, Role.LEDGER, Role.WORK, Role.SYNTHESIZE)
CHOICE_SECONDS = 600
UNTIL_IT_WORKS = (signal.SIGTERM,)
"""Signals that wait until the process does its work, and can end it in an orderly way."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What one process is to be; times in seconds.

    `takes_seconds` is how long its search blocks the loop for "block", or waits for "long".
    `plan` says where it dies or stops; with `discovers` it notes every label it passes instead.
    `branching`: every question has branches; `pausing`: these need an approval;
    `swarm`: workers divide every question.
    """

    url: str
    ledger: str
    roles: tuple[str, ...] = tuple(role.value for role in ALL_ROLES)
    lease_seconds: float = 1.5
    slots: int = 8
    limit_seconds: float = 60.0
    takes_seconds: float = 0.0
    grace_seconds: float = 0.5
    branching: bool = False
    pausing: bool = False
    swarm: SwarmScript | None = None
    discovers: bool = False
    plan: Plan | None = None


def main(settings: WorkerSettings) -> None:
    """Work until killed or stopped."""
    ledger = Ledger(Path(settings.ledger))
    if settings.discovers:
        asyncio.set_event_loop_policy(WatchedPolicy(_noting_labels(ledger)))
    elif settings.plan is not None:
        asyncio.set_event_loop_policy(WatchedPolicy(carry_out(settings.plan)))
    collect_rarely()
    asyncio.run(_work(settings, ledger))


def broker_of(settings: WorkerSettings) -> RedisBroker:
    """Return a broker with the leases of these settings."""
    return RedisBroker(
        connect(settings.url),
        lease_seconds=settings.lease_seconds,
        backoff_seconds=0.02,
        make_notice=make_poison_notice,
    )


async def _work(settings: WorkerSettings, ledger: Ledger) -> None:
    stop = asyncio.Event()
    broker = broker_of(settings)
    place = front_of(settings.ledger, os.getpid())
    process = _process(settings, ledger, broker)
    async with stop_on_signals(stop), process.running(), front(broker, place):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, UNTIL_IT_WORKS)
        ledger.note("working")
        async with asyncio.TaskGroup() as tasks:
            pausing = tasks.create_task(_pause_once(settings, process))
            await stop.wait()
            ledger.note("leaving")
            pausing.cancel()


async def _pause_once(settings: WorkerSettings, process: WorkerProcess) -> None:
    """Pause and resume a role where labels matter, so that a process may die while it is paused."""

    async def is_paused() -> bool:
        return settings.roles[-1] in process.paused_roles

    if settings.discovers or settings.plan is not None:
        process.pause(settings.roles[-1:])
        await wait_until(is_paused, patience_seconds=None)
        process.pause(())


def _process(settings: WorkerSettings, ledger: Ledger, broker: RedisBroker) -> WorkerProcess:
    meter = NotingMeter(ledger)
    return WorkerProcess(
        broker,
        [WorkerSpec(each, settings.slots) for each in _handlers(settings, ledger, meter)],
        renewal=NotingRenewal(
            lambda: broker_of(settings), ledger, lease_seconds=settings.lease_seconds
        ),
        meter=meter,
        grace=GracePeriod(settings.grace_seconds),
    )


def _handlers(settings: WorkerSettings, ledger: Ledger, meter: WorkerMeter) -> list[Handler]:
    client = connect(settings.url)
    flows = _find_flows(settings)
    memory = RedisMemory(client, shards=1, keep=KEEPS_TURNS)
    limits = Limits()
    if settings.swarm is not None:
        limits = replace(
            limits,
            parallel_workers=settings.swarm.parallel,
            retries=settings.swarm.retries,
        )
    texts = FixedTexts() if settings.swarm is None else load_texts(topic="desk")
    people = RedisPeople(client, lambda _question: CHOICE_SECONDS)
    manager = ManagerAgent(
        flows, memory, texts, limits=limits, quality_threshold=0.7, people=people
    )
    calls = RedisCallStore(client, shards=1, record_of=record_of(1))
    model = StoredModel(Bill(ledger), NotingCalls(calls, ledger), prompts=None)
    recorded = HopCalls(None)
    working: list[Agent[Any, Any]] = [
        FollowingAgent(role, model, takes_seconds=settings.takes_seconds)
        for role in WRITES
        if settings.swarm is None or role not in SWARM_ROLES
    ]
    tool: Agent[Any, Any] = AskingTool("approval") if settings.pausing else ToolAgent(act_as_tool)
    if settings.swarm is not None:
        script = settings.swarm
        worker = ActingWorker(make_act(script, model, ledger))
        working += make_swarm(worker, workers=script.workers, retries=script.retries)

    async def read_index(_assistant: Assistant) -> str:
        await client.ping()
        return ""

    agents = [
        AgentHandler(
            agent,
            limit_seconds=settings.limit_seconds,
            recorded=recorded,
            read_index=read_index if agent.role is Role.SEARCH else None,
        )
        for agent in (*working, tool)
    ]
    everybody: list[Handler] = [manager, *agents]
    return [NotingHandler(each, ledger) for each in everybody if each.role.value in settings.roles]


def _find_flows(settings: WorkerSettings) -> Mapping[str, Flow]:
    if settings.pausing:
        return {"assistant": PAUSING_FLOW}
    if settings.swarm is not None:
        seconds = settings.swarm.join_seconds
        return {"assistant": SWARM_FLOW if seconds is None else make_hurried_flow(seconds)}
    return {"assistant": BRANCHING_FLOW} if settings.branching else FLOWS


def _noting_labels(ledger: Ledger) -> Watch:
    known: set[str] = set()

    def watch(labels: Sequence[str], _phase: str) -> None:
        for label in labels:
            if label not in known:
                known.add(label)
                ledger.note("label", label=label, innermost=label == labels[-1])

    return watch
