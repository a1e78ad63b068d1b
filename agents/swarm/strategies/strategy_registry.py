"""The strategies by name, and the choice of one."""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from inspect import isclass
from pkgutil import iter_modules

from agents.swarm.errors import UnknownName
from agents.swarm.strategies.strategy import SwarmStrategy

AUTO = "auto"
"""The planner chooses."""
USUAL = "intelligent"
"""The strategy of a planner that names none."""


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
        self, *, caller: str = "", planner: str = "", configured: str = AUTO
    ) -> SwarmStrategy:
        """Return the strategy that the caller names, else the configuration, else the planner.

        Raises `UnknownName` for a name of the caller; a planner that names none, or one that does
        not exist, gets the usual one.
        """
        if caller:
            return self.find(caller)
        if configured != AUTO:
            return self.find(configured)
        return self._strategies[planner if planner in self._strategies else USUAL]


def make_strategies() -> StrategyRegistry:
    """Return a registry of the strategies of this project."""
    return StrategyRegistry(found() for found in list_strategies())


@cache
def list_strategies() -> tuple[type[SwarmStrategy], ...]:
    """Return the classes of the modules below `swarm/strategies`, by their names."""
    return tuple(sorted(_find_classes(), key=lambda found: found.name))


def _find_classes() -> Iterator[type[SwarmStrategy]]:
    package = import_module("agents.swarm.strategies")
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        for found in vars(import_module(module.name)).values():
            is_own = isclass(found) and found.__module__ == module.name
            if is_own and issubclass(found, SwarmStrategy) and found is not SwarmStrategy:
                yield found
