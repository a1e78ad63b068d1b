"""Refdesk put together with agents that do nothing, as `deploy` puts it together."""

from collections.abc import Callable, Sequence
from typing import Any

from agents.agent import Agent
from broker.maintenance.lease_renewer import LeaseRenewal
from broker.ports import Broker
from broker.redis_broker import RedisBroker
from manager.flows import FLOWS
from manager.machine import Limits
from manager.manager import Manager
from memory.port import Memory
from worker.agent_handler import AgentHandler
from worker.port import Handler, SilentMeter
from worker.process import WorkerProcess, WorkerSpec

PLACES = 64


class NoTexts:
    """Fixed texts that nobody reads here."""

    languages = ("en",)

    def text(self, key: str, language: str, **values: str) -> str:
        """Return the key."""
        return key


def process(
    broker: Broker,
    own: Callable[[], RedisBroker],
    memory: Memory,
    agents: Sequence[Agent[Any, Any]],
    *,
    lease_seconds: float = 15.0,
    watched: Callable[[Handler], Handler] = lambda handler: handler,
) -> WorkerProcess:
    """Return a process of the manager and these agents; `own` makes the renewal's broker."""
    manager = Manager(FLOWS, memory, NoTexts(), limits=Limits(), quality_threshold=0.7)
    specs = [WorkerSpec(watched(manager), 4 * PLACES)]
    for agent in agents:
        handler = AgentHandler(agent, limit_seconds=30)
        specs.append(WorkerSpec(watched(handler), PLACES))
    return WorkerProcess(
        broker, specs, renewal=LeaseRenewal(own, lease_seconds=lease_seconds), meter=SilentMeter()
    )
