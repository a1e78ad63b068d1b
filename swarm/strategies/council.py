"""The strategy `council`: several perspectives on one question, and a balanced report."""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from swarm.planning.complexity import is_opinion
from swarm.planning.plan import QueryComplexity, SwarmPlan, WorkerPlan, name_worker
from swarm.strategies.strategy import StrategyContext, SwarmStrategy
from swarm.synthesis.council_report import write_council_report
from swarm.synthesis.report import SwarmReport
from swarm.synthesis.wording import ReportWording
from swarm.workers.output import WorkerOutput

LEAST_PERSONAS = 3
MOST_PERSONAS = 6


class CouncilPersona(BaseModel, frozen=True, extra="forbid"):
    """A member of a council; `asks` are the words by which the offline search takes its side."""

    name: str
    perspective: str
    asks: str


PERSONAS = (
    CouncilPersona(
        name="advocate", perspective="what speaks for it", asks="benefit advantage allows support"
    ),
    CouncilPersona(
        name="critic",
        perspective="what speaks against it",
        asks="risk limitation disadvantage must not warning",
    ),
    CouncilPersona(
        name="practitioner",
        perspective="what it takes in practice",
        asks="steps requirement cost how to example",
    ),
    CouncilPersona(
        name="auditor",
        perspective="which rules and duties apply",
        asks="rule duty exception penalty deadline",
    ),
)


class CouncilStrategy(SwarmStrategy):
    """Each persona searches alone; then agreement and dissent are named."""

    name = "council"
    description = "several perspectives on one question"

    def __init__(self, personas: Sequence[CouncilPersona] = PERSONAS[:LEAST_PERSONAS]) -> None:
        perspectives = {one.perspective.casefold() for one in personas}
        if len(perspectives) < LEAST_PERSONAS or len(perspectives) < len(personas):
            raise ValueError(
                f"expected at least {LEAST_PERSONAS} personas, each with another perspective, "
                f"found {len(personas)} with {len(perspectives)} perspectives"
            )
        self._personas = tuple(personas)[:MOST_PERSONAS]

    def suits(self, question: str, complexity: QueryComplexity) -> float:
        return 0.8 if is_opinion(question) else 0.05

    def generate_workers(
        self, question: str, complexity: QueryComplexity, context: StrategyContext
    ) -> Sequence[WorkerPlan]:
        share = max(2, context.most_passages // len(self._personas))
        return [
            WorkerPlan(
                id=name_worker(number, "analysis"),
                role="analysis",
                specialization=persona.name,
                objective=f"{question[:3_000]} ({persona.perspective}: {persona.asks})",
                output=f"{persona.perspective}, quoted",
                tools=("search",),
                passages=share,
            )
            for number, persona in enumerate(self._personas)
        ]

    def synthesize_results(
        self, plan: SwarmPlan, outputs: Mapping[str, WorkerOutput], wording: ReportWording
    ) -> SwarmReport:
        return write_council_report(plan, outputs, wording)
