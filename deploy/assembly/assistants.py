"""Gives each envelope to its own assistant: nobody's documents answer another's questions.

Workers take from streams that all assistants on one Redis share. A process serves those that its
settings name (`ASSISTANTS`); an envelope of any other ends in an apology, never in an answer from
documents that are not its own.
"""

from collections.abc import Mapping

from pydantic import BaseModel

from agents.agent import Agent
from broker.values import Delivery, Settlement
from envelope.envelope import Envelope
from envelope.outcome import GaveUp, HopOutcome
from envelope.role import Role
from worker.port import Handler

Name = tuple[str, str]
"""Tenant and assistant."""


class ByAssistant:
    """Hands an envelope to the handler of its assistant, else to the one that gives up."""

    def __init__(self, handlers: Mapping[Name, Handler], unserved: Handler) -> None:
        self.role = unserved.role
        self._handlers = dict(handlers)
        self._unserved = unserved

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        """Return the settlement of whoever serves the assistant."""
        question = delivery.question
        handler = self._handlers.get((question.tenant, question.assistant), self._unserved)
        return await handler.handle(delivery, envelope)


class Nothing(BaseModel, frozen=True):
    """Neither read nor written."""


class UnservedAgent(Agent[Nothing, Nothing]):
    """Gives up what no assistant of this process may answer."""

    reads = Nothing
    writes = Nothing

    def __init__(self, role: Role) -> None:
        self.role = role  # type: ignore[misc] # one class stands in for every role

    async def work(self, reads: Nothing) -> HopOutcome[Nothing]:
        return GaveUp("this process serves no such assistant: name it in ASSISTANTS")
