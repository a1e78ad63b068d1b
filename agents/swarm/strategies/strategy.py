"""The interface of a strategy: how a question is divided, and in which form it is answered."""

from abc import ABC
from collections.abc import Iterable, Sequence

from agents.swarm.planning.plan import WorkerPlan


class SwarmStrategy(ABC):
    """One way to divide a question; it keeps nothing between questions.

    `description` tells a planner how to divide by it, `form` tells the writer what to make of what
    the workers wrote.
    """

    name: str
    description: str
    form: str

    def find_problems(self, workers: Sequence[WorkerPlan]) -> Iterable[str]:
        """Return why workers are no plan by this strategy; by default they always are."""
        return ()
