"""The strategy `council`: several perspectives on one question, and a balanced report."""

from collections.abc import Iterable, Sequence

from agents.swarm.planning.plan import WorkerPlan
from agents.swarm.strategies.strategy import SwarmStrategy

LEAST_MEMBERS = 3


class CouncilStrategy(SwarmStrategy):
    """Each member takes a side of its own, or reads other material than the others."""

    name = "council"
    description = (
        "at least three members with different perspectives on one question, for opinions and "
        "decisions; each takes a side of its own, or reads other documents than the others"
    )
    form = (
        "a balanced report: what each member says and from which sources, where they agree, and "
        "where they disagree; a dissent is what a member wrote"
    )

    def find_problems(self, workers: Sequence[WorkerPlan]) -> Iterable[str]:
        perspectives = {one.specialization.casefold() for one in workers if one.specialization}
        if len(perspectives) < LEAST_MEMBERS:
            yield (
                f"expected at least {LEAST_MEMBERS} members of a council with different "
                f"perspectives in specialization, found {len(perspectives)}"
            )
        if len({one.objective.casefold() for one in workers}) < len(workers):
            yield "expected members that take different sides in their objectives, found equal ones"
