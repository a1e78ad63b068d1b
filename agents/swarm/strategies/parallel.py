"""The strategy `parallel`: independent sub-questions, side by side, gathered in a table."""

from collections.abc import Iterable, Sequence

from agents.swarm.planning.plan import WorkerPlan
from agents.swarm.strategies.strategy import SwarmStrategy


class ParallelStrategy(SwarmStrategy):
    """No worker waits for another one."""

    name = "parallel"
    description = "independent sub-questions side by side, such as one for each item of a table"
    form = "the same facts about each item, side by side"

    def find_problems(self, workers: Sequence[WorkerPlan]) -> Iterable[str]:
        waiting = [one.id for one in workers if one.depends_on]
        if waiting:
            yield f"expected workers that wait for no other one, found {waiting[0]!r}"
