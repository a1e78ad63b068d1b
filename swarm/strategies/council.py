"""The strategy `council`: several perspectives on one question, and a balanced report."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from pydantic import BaseModel

from swarm.planning.complexity import is_opinion
from swarm.planning.plan import QueryComplexity, SwarmPlan, WorkerPlan, name_worker
from swarm.strategies.strategy import StrategyContext, SwarmStrategy
from swarm.synthesis.council_report import write_council_report
from swarm.synthesis.report import SwarmReport
from swarm.synthesis.report_wording import ReportWording
from swarm.workers.output import WorkerOutput

ENGLISH = "en"
LEAST_PERSONAS = 3
MOST_PERSONAS = 6
_LEAST_PASSAGES = 6
"""Passages of a member, of which it quotes those that speak for its side."""


class CouncilPersona(BaseModel, frozen=True, extra="forbid"):
    """A member of a council; `asks` are the words by which the offline search takes its side."""

    name: str
    perspective: str
    asks: str


@cache
def load_personas(language: str = ENGLISH) -> tuple[CouncilPersona, ...]:
    """Return the members of a council in a language, in English where there are none."""
    listed = _read_file()
    members = listed.get(language) or listed[ENGLISH]
    return tuple(CouncilPersona(name=name, **words) for name, words in members.items())


@cache
def _read_file() -> dict[str, dict[str, dict[str, str]]]:
    file = Path(__file__).with_name("personas.toml")
    listed: dict[str, dict[str, dict[str, str]]] = tomllib.loads(file.read_text("utf-8"))
    return listed


class CouncilStrategy(SwarmStrategy):
    """Each persona searches alone; then agreement and dissent are named.

    Without `personas`, those of the file sit in it, in the language of the question.
    """

    name = "council"
    description = "several perspectives on one question"

    def __init__(self, personas: Sequence[CouncilPersona] = ()) -> None:
        self._personas = tuple(personas)[:MOST_PERSONAS]
        if not personas:
            return
        perspectives = {one.perspective.casefold() for one in personas}
        if len(perspectives) < LEAST_PERSONAS or len(perspectives) < len(personas):
            raise ValueError(
                f"expected at least {LEAST_PERSONAS} personas, each with another perspective, "
                f"found {len(personas)} with {len(perspectives)} perspectives"
            )

    def suits(self, question: str, complexity: QueryComplexity) -> float:
        return 0.8 if is_opinion(question) else 0.05

    def generate_workers(
        self, question: str, complexity: QueryComplexity, context: StrategyContext
    ) -> Sequence[WorkerPlan]:
        personas = self._personas or load_personas(context.language)[:LEAST_PERSONAS]
        share = max(_LEAST_PASSAGES, context.most_passages // len(personas))
        return [
            WorkerPlan(
                id=name_worker(number, "analysis"),
                role="analysis",
                specialization=persona.name,
                objective=f"{question[:3_000]} ({persona.perspective}: {persona.asks})",
                output=f"{persona.perspective}, quoted",
                tools=("search",),
                passages=share,
                sides=(persona.asks,),
            )
            for number, persona in enumerate(personas)
        ]

    def synthesize_results(
        self, plan: SwarmPlan, outputs: Mapping[str, WorkerOutput], wording: ReportWording
    ) -> SwarmReport:
        return write_council_report(plan, outputs, wording)
