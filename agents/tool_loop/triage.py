"""Chooses the way of a question where the settings leave it open."""

from typing import Literal, Protocol, Self

from pydantic import BaseModel

from agents.agent import Agent, AgentParts
from agents.desk_domain import DeskDomain, ResponseSettings
from envelope.conversation import ClarificationReason
from envelope.outcome import GaveUp, HopOutcome, Wrote
from envelope.role import Role
from envelope.ways.tool_loop import QueryType, Triage, WayName
from llm.errors import ModelError
from llm.port import Model
from llm.tasks.triage import TASK, Inputs, Output

_WHOLE = frozenset({QueryType.COMPLIANCE, QueryType.RISK, QueryType.REPORTING})
_VAGUE = 0.6
"""Above this vagueness the user is asked, if the judgement says that nobody could begin."""


class TriageSettings(ResponseSettings, Protocol):
    """The settings that the agent needs."""

    @property
    def search_below_complexity(self) -> int: ...

    @property
    def swarm_above_complexity(self) -> int: ...


class Reads(BaseModel, frozen=True):
    """The question, and the earlier turns that it refers to."""

    canonical_question: str
    language: str = "en"
    related_history: tuple[str, ...] = ()


class Writes(BaseModel, frozen=True):
    """The decision; a clarification where nobody could begin."""

    triage: Triage
    needs_clarification: bool = False
    clarification_reason: ClarificationReason | None = None
    clarification_message: str = ""


class TriageAgent(Agent[Reads, Writes]):
    """Asks a model, or the rules, how much a question needs."""

    role = Role.TRIAGE
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        model: Model,
        domain: DeskDomain | None = None,
        search_below: int = 30,
        swarm_above: int = 70,
    ) -> None:
        self._model = model
        self._domain = DeskDomain() if domain is None else domain
        self._search_below = search_below
        self._swarm_above = swarm_above

    @classmethod
    def make(cls, parts: AgentParts[TriageSettings]) -> Self:
        return cls(
            model=parts.model(TASK.name),
            domain=DeskDomain.of(parts.settings),
            search_below=parts.settings.search_below_complexity,
            swarm_above=parts.settings.swarm_above_complexity,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        inputs = Inputs(
            question=reads.canonical_question,
            related=reads.related_history,
            domain_name=self._domain.name,
            domain_scope=self._domain.scope,
        )
        try:
            given = await self._model.ask(TASK, inputs)
        except ModelError as error:
            return GaveUp(f"{type(error).__name__}: {error}")
        triage = self._decide(given.output, given.model)
        if not (given.output.needs_clarification and triage.vagueness > _VAGUE):
            return Wrote(Writes(triage=triage))
        return Wrote(
            Writes(
                triage=triage,
                needs_clarification=True,
                clarification_reason=ClarificationReason.MISSING_DETAILS,
                clarification_message=triage.reasoning or "It is unclear what is meant.",
            )
        )

    def _decide(self, output: Output, model: str) -> Triage:
        return Triage(
            way=self._find_way(output),
            complexity=output.complexity,
            query_type=output.query_type,
            semantic_type=output.semantic_type[:100],
            vagueness=output.vagueness,
            needs_clarification=output.needs_clarification,
            reasoning=output.reasoning[:500],
            decided_by=model,
        )

    def _find_way(self, output: Output) -> Literal[WayName.SEARCH, WayName.TOOLS, WayName.SWARM]:
        """Return the way by complexity; reviews and reports are read as a whole, not divided."""
        if output.complexity < self._search_below:
            return WayName.SEARCH
        is_large = output.complexity > self._swarm_above
        return WayName.SWARM if is_large and output.query_type not in _WHOLE else WayName.TOOLS
