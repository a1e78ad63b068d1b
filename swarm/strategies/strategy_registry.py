"""The strategies by name, and the choice of one."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from inspect import isabstract, isclass
from pkgutil import iter_modules

from llm.offline.criteria.read_criteria import read_set_question
from swarm.errors import UnknownName
from swarm.planning.complexity import measure_complexity
from swarm.planning.plan import QueryComplexity, SwarmPlan
from swarm.planning.plan_checks import accept_plan
from swarm.planning.tool_allocation import allocate_plan
from swarm.strategies.document_sets import select_collection
from swarm.strategies.strategy import StrategyContext, SwarmStrategy
from swarm.workers.worker_type import WorkerRegistry

AUTO = "auto"
"""Chooses the strategy that suits a question best."""


class StrategyRegistry:
    """Strategies by name; raises `ValueError` when two have the same."""

    def __init__(self, strategies: Iterable[SwarmStrategy]) -> None:
        self._strategies: dict[str, SwarmStrategy] = {}
        for one in strategies:
            self.register(one)

    def register(self, strategy: SwarmStrategy) -> None:
        if strategy.name in self._strategies or strategy.name == AUTO:
            raise ValueError(f"expected one strategy named {strategy.name!r}, found two")
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
        self,
        question: str,
        complexity: QueryComplexity,
        *,
        caller: str = "",
        planner: str = "",
        configured: str = "intelligent",
        learned: Mapping[str, float] | None = None,
    ) -> SwarmStrategy:
        """Return the strategy that the caller names, else the planner, else the configuration.

        Where that is `auto`, the strategy suits the question best; `learned` has a small bonus or
        malus by strategy. Raises `UnknownName`.
        """
        named = next((one for one in (caller, planner, configured) if one), AUTO)
        if named != AUTO:
            return self.find(named)
        bonus = learned or {}
        rated = {
            name: one.suits(question, complexity) + bonus.get(name, 0.0)
            for name, one in sorted(self._strategies.items())
        }
        return self._strategies[max(rated, key=lambda name: rated[name])]


def make_strategies() -> StrategyRegistry:
    """Return a registry of the strategies of this project."""
    return StrategyRegistry(found() for found in list_strategies())


@cache
def list_strategies() -> tuple[type[SwarmStrategy], ...]:
    """Return the classes of the modules below `swarm/strategies`, by their names."""
    return tuple(sorted(_find_classes(), key=lambda found: found.name))


def make_plan(
    question: str,
    strategy: SwarmStrategy,
    context: StrategyContext,
    registry: WorkerRegistry,
) -> SwarmPlan:
    """Return the checked plan of a question; raises `PlanRejected`."""
    asked = read_set_question(question)
    documents = select_collection(asked, context.documents) if asked is not None else ()
    complexity = measure_complexity(question, documents=len(documents))
    workers = tuple(strategy.generate_workers(question, complexity, context))
    plan = SwarmPlan(
        question=question,
        strategy=strategy.name,
        complexity=complexity,
        workers=workers,
        criteria=asked.criteria if asked is not None and documents else (),
        is_counted=asked is not None and asked.is_counted,
        reasoning=f"{strategy.description}; complexity {complexity.score:.2f}",
    )
    accepted = accept_plan(plan, roles=registry.names, most_workers=context.most_workers)
    if not context.tools:
        return accepted
    return allocate_plan(accepted, registry.usual_tools, context.tools)


def _find_classes() -> Iterator[type[SwarmStrategy]]:
    package = import_module("swarm.strategies")
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        if module.name == __name__:
            continue
        for found in vars(import_module(module.name)).values():
            is_own = isclass(found) and found.__module__ == module.name
            if is_own and issubclass(found, SwarmStrategy) and not isabstract(found):
                yield found
