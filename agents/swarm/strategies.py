"""The strategies of a swarm, which determine how a question is divided and the form of the
answer.
"""

from abc import ABC
from collections.abc import Iterable, Sequence

from agents.swarm.swarm_plan import UnknownName, WorkerPlan

LEAST_MEMBERS = 3
AUTO = "auto"
"""The planner chooses the strategy."""
USUAL = "intelligent"
"""The strategy that is used if a planner does not name one."""


class SwarmStrategy(ABC):
    """A way to divide a question; it keeps no state between questions.

    The prompt `plan_swarm` tells a planner how to divide a question with this strategy, and
    `synthesize_findings` tells the writer how to use the workers' texts.
    """

    name: str

    def find_problems(self, workers: Sequence[WorkerPlan]) -> Iterable[str]:
        """Return why the workers are not a valid plan for this strategy; none by default."""
        return ()


class IntelligentStrategy(SwarmStrategy):
    """Leaves the division to the planner."""

    name = "intelligent"


class ParallelStrategy(SwarmStrategy):
    """No worker waits for another one."""

    name = "parallel"

    def find_problems(self, workers: Sequence[WorkerPlan]) -> Iterable[str]:
        waiting = [worker.id for worker in workers if worker.depends_on]
        if waiting:
            yield f"workers of this strategy must not depend on other workers; {waiting[0]!r} does"


class CouncilStrategy(SwarmStrategy):
    """Each member represents a different side, or reads different material."""

    name = "council"

    def find_problems(self, workers: Sequence[WorkerPlan]) -> Iterable[str]:
        perspectives = {
            worker.specialization.casefold() for worker in workers if worker.specialization
        }
        if len(perspectives) < LEAST_MEMBERS:
            yield (
                f"expected at least {LEAST_MEMBERS} members of a council with different "
                f"perspectives in specialization, found {len(perspectives)}"
            )
        if len({worker.objective.casefold() for worker in workers}) < len(workers):
            yield "the members must take different sides in their objectives"


class StrategyRegistry:
    """Strategies by name; raises `ValueError` if two have the same name."""

    def __init__(self, strategies: Iterable[SwarmStrategy]) -> None:
        self._strategies: dict[str, SwarmStrategy] = {}
        for strategy in strategies:
            self.register(strategy)

    def register(self, strategy: SwarmStrategy) -> None:
        if strategy.name in self._strategies or strategy.name == AUTO:
            raise ValueError(f"two strategies have the name {strategy.name!r}")
        self._strategies[strategy.name] = strategy

    def find(self, name: str) -> SwarmStrategy:
        """Return a strategy; raises `UnknownName`."""
        if name not in self._strategies:
            known = ", ".join(sorted(self._strategies))
            raise UnknownName(f"expected one of {known} as a strategy, found {name[:80]!r}")
        return self._strategies[name]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all strategies, in alphabetical order."""
        return tuple(sorted(self._strategies))

    def choose(
        self, *, caller: str = "", planner: str = "", configured: str = AUTO
    ) -> SwarmStrategy:
        """Return the strategy named by the caller or, if there is none, the configured one or the
        planner's.

        Raises `UnknownName` for an unknown name from the caller. If the planner names none, or an
        unknown one, the default is used.
        """
        if caller:
            return self.find(caller)
        if configured != AUTO:
            return self.find(configured)
        return self._strategies[planner if planner in self._strategies else USUAL]


def make_strategies() -> StrategyRegistry:
    """Return a registry of the built-in strategies."""
    return StrategyRegistry((CouncilStrategy(), IntelligentStrategy(), ParallelStrategy()))
