"""Agents that do nothing: each writes at once what it is given to write."""

from collections.abc import Callable, Mapping

from pydantic import BaseModel, create_model

from agents.agent import Agent
from benchmarks.speed.payload import IDLE_WRITES, Fields
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role

WRITES: dict[Role, Fields] = {Role(role): writes for role, writes in IDLE_WRITES.items()}
"""Just what lets a question pass each stage."""


def ignore_work() -> None:
    """Do nothing."""


class Reads(BaseModel, frozen=True):
    """Every idle agent reads the text."""

    text: str


class IdleAgent(Agent[Reads, BaseModel]):
    """Write the stage's fixed attributes at once."""

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
