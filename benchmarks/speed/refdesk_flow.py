"""Provides agents without work, and Refdesk assembled with them in the same way as `deploy`
does.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, create_model

from agents.agent import Agent
from benchmarks.speed.payload import IDLE_WRITES, Fields
from broker.lease_renewer import LeaseRenewal
from broker.ports import Broker
from broker.redis_broker import RedisBroker
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from manager.flows import FLOWS
from manager.machine import Limits
from manager.manager import ManagerAgent
from memory.conversation import RedisMemory
from worker.agent_handler import AgentHandler
from worker.port import Handler, SilentMeter
from worker.process import WorkerProcess, WorkerSpec

PLACES = 64


class NoTexts:
    """Empty fixed texts."""

    languages = ("en",)

    def text(self, key: str, language: str, **values: str) -> str:
        """Return the key."""
        return key


def process(
    broker: Broker,
    own: Callable[[], RedisBroker],
    memory: RedisMemory,
    agents: Sequence[Agent[Any, Any]],
    *,
    lease_seconds: float = 15.0,
    watched: Callable[[Handler], Handler] = lambda handler: handler,
) -> WorkerProcess:
    """Return a process of the manager and these agents; `own` creates the broker that renews
    leases.
    """
    manager = ManagerAgent(FLOWS, memory, NoTexts(), limits=Limits(), quality_threshold=0.7)
    specs = [WorkerSpec(watched(manager), 4 * PLACES)]
    for agent in agents:
        handler = AgentHandler(agent, limit_seconds=30)
        specs.append(WorkerSpec(watched(handler), PLACES))
    return WorkerProcess(
        broker, specs, renewal=LeaseRenewal(own, lease_seconds=lease_seconds), meter=SilentMeter()
    )


WRITES: dict[Role, Fields] = {Role(role): writes for role, writes in IDLE_WRITES.items()}
"""The minimal writes with which a question passes each stage."""


def ignore_work() -> None:
    """Do nothing."""


class Reads(BaseModel, frozen=True):
    """Every idle agent reads the text of the question."""

    text: str


class IdleAgent(Agent[Reads, BaseModel]):
    """Writes the fixed attributes of a stage immediately."""

    reads = Reads

    def __init__(
        self, role: Role, writes: Fields | None = None, worked: Callable[[], None] = ignore_work
    ) -> None:
        writes = WRITES[role] if writes is None else writes
        self.role = role  # type: ignore[misc] # one class serves every role here, and only here
        fields: dict[str, object] = {name: (type(value), ...) for name, value in writes.items()}
        self.writes = create_model(f"{role.value.title()}Writes", **fields)  # type: ignore[call-overload] # made from data
        self._wrote = Wrote(self.writes(**writes))
        self._worked = worked

    async def work(self, reads: Reads) -> HopOutcome[BaseModel]:
        """Return the fixed writes."""
        self._worked()
        return self._wrote


def idle_agents(writes: Mapping[str, Fields], worked: Callable[[], None]) -> list[IdleAgent]:
    """Return one idle agent for each role of the main flow; each reports that it worked."""
    return [IdleAgent(Role(role), written, worked) for role, written in writes.items()]
