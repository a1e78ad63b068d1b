"""Refdesk's whole assistant flow in one process, with agents that do nothing."""

import asyncio
import json
import sys

from benchmarks.idle_agents import idle_agents
from benchmarks.measuring import TEXT, Figures, measured
from broker.connecting import connect
from broker.redis_broker import RedisBroker
from broker.renewal import LeaseRenewal
from gateway.desk import Desk, Message
from manager.flow import ASSISTANT, Flow
from manager.machine import Limits
from manager.manager import Manager
from memory.conversation import RedisMemory
from worker.agent_handler import AgentHandler
from worker.deciding import OnTheSpot
from worker.port import SilentMeter
from worker.process import Staffing, WorkerProcess, collect_rarely

PLACES = 64


class NoTexts:
    """Fixed texts that nobody reads here."""

    def text(self, key: str, language: str, **values: str) -> str:
        """Return the key."""
        return key


def process(url: str, broker: RedisBroker) -> WorkerProcess:
    """Return a process of the manager and the eight roles."""
    memory = RedisMemory(connect(url), shards=1)
    manager = Manager(Flow(ASSISTANT), memory, NoTexts(), limits=Limits(), quality_threshold=0.7)
    staff = [Staffing(manager, 4 * PLACES)]
    here = OnTheSpot(manager, SilentMeter())
    staff += [
        Staffing(AgentHandler(agent, limit_seconds=30, manager=here), PLACES)
        for agent in idle_agents()
    ]
    renewal = LeaseRenewal(lambda: RedisBroker(connect(url)))
    return WorkerProcess(broker, staff, renewal=renewal, meter=SilentMeter())


async def figures(url: str) -> Figures:
    """Return what was measured."""
    collect_rarely()
    broker = RedisBroker(connect(url))
    desk = Desk(
        broker,
        tenant="bench",
        assistant="bench",
        channel="bench",
        deadline_seconds=60,
        apology=lambda language: language,
    )

    async def ask(name: str) -> None:
        reply = await desk.ask(Message(TEXT, name, name))
        if reply["outcome"] != "answered":
            raise SystemExit(f"expected an answer, found {reply}")

    async with process(url, broker).running():
        found = await measured(ask)
    await broker.close()
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(figures(sys.argv[1])).fields()))
