"""Runs one worker process: `... branch_failures.refdesk_run FOLDER URL [--fails]`.

It runs until it is stopped. The question is asked by the process that starts it.
"""

import argparse
import asyncio
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agents.agent import Agent
from benchmarks.speed.branch_failures.workers import WIDTH, WorkerNotes
from benchmarks.speed.branches import Shape, make_flow
from benchmarks.speed.refdesk_flow import PLACES, IdleAgent, NoTexts
from broker.maintenance.lease_renewer import LeaseRenewal
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from manager.machine import Limits
from manager.manager import Manager
from memory.conversation import RedisMemory
from worker.agent_handler import AgentHandler
from worker.port import SilentMeter
from worker.process import WorkerProcess, WorkerSpec

LEASE_SECONDS = 15.0
"""The default of the product."""


class Reads(BaseModel, frozen=True):
    """The call, whose key has the number of the worker."""

    tool_call: dict[str, Any]


class Writes(BaseModel, frozen=True):
    """The result of the worker, with its record."""

    multi_tool_results: dict[str, Any]
    tool_executions: tuple[dict[str, Any], ...]


class TimedAgent(Agent[Reads, Writes]):
    """Works as the numbered worker of its call."""

    role = Role.TOOL
    reads = Reads
    writes = Writes

    def __init__(self, notes: WorkerNotes, *, fails: bool) -> None:
        self._notes = notes
        self._fails = fails

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        """Wait, and return the number."""
        name = str(reads.tool_call["call_id"])
        await self._notes.work(int(name.rpartition("_")[2]), fails_once=self._fails)
        done = ({"call_id": name},)
        return Wrote(Writes(multi_tool_results={name: "result"}, tool_executions=done))


def main() -> None:
    """Run the worker process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("url")
    parser.add_argument("--fails", action="store_true")
    chosen = parser.parse_args()
    asyncio.run(_run(chosen))


async def _run(chosen: argparse.Namespace) -> None:
    def open_broker() -> RedisBroker:
        return RedisBroker(connect(chosen.url), lease_seconds=LEASE_SECONDS)

    manager = Manager(
        {"assistant": make_flow(Shape("100 branches", 1, WIDTH))},
        RedisMemory(connect(chosen.url), shards=1),
        NoTexts(),
        limits=Limits(research=0, process_count=10_000, parallel_tools=WIDTH),
        quality_threshold=0.7,
    )
    agents: tuple[Agent[Any, Any], ...] = (
        IdleAgent(Role.LANG, {"language": "en"}),
        TimedAgent(WorkerNotes(chosen.folder / "notes"), fails=chosen.fails),
    )
    specs = [WorkerSpec(manager, 4 * PLACES)]
    for agent in agents:
        handler = AgentHandler(agent, limit_seconds=30)
        specs.append(WorkerSpec(handler, 2 * PLACES))
    renewal = LeaseRenewal(open_broker, lease_seconds=LEASE_SECONDS)
    process = WorkerProcess(open_broker(), specs, renewal=renewal, meter=SilentMeter())
    async with process.running():
        await asyncio.Event().wait()


if __name__ == "__main__":
    main()
