"""A strategy of somebody else is one class: it is registered, and its plans are checked."""

from collections.abc import Iterable, Sequence
from typing import get_args

import pytest

from agents.swarm.strategies import AUTO, USUAL, SwarmStrategy, make_strategies
from agents.swarm.swarm_plan import UnknownName, WorkerPlan
from config.settings import Settings


class StrangeStrategy(SwarmStrategy):
    name = "strange"


def test_a_further_strategy_is_registered_beside_those_of_the_project() -> None:
    strategies = make_strategies()
    strategies.register(StrangeStrategy())

    assert strategies.names == ("council", "intelligent", "parallel", "strange")
    assert strategies.choose(planner="strange").name == "strange"


def test_two_strategies_of_one_name_are_refused() -> None:
    registry = make_strategies()

    with pytest.raises(ValueError, match="two strategies have the name 'council'"):
        registry.register(registry.find("council"))


def test_the_caller_comes_before_the_settings_and_they_before_the_planner() -> None:
    registry = make_strategies()

    assert registry.choose(caller="council", configured="parallel").name == "council"
    assert registry.choose(configured="parallel", planner="council").name == "parallel"
    assert registry.choose(planner="council").name == "council"
    assert registry.choose(planner="unknown").name == registry.choose().name == USUAL
    with pytest.raises(UnknownName, match="expected one of council, intelligent, parallel"):
        registry.choose(caller="unknown")


def test_a_strategy_may_refuse_workers() -> None:
    class Alone(SwarmStrategy):
        name = "alone"

        def find_problems(self, workers: Sequence[WorkerPlan]) -> Iterable[str]:
            return () if len(workers) == 1 else ("expected one worker",)

    assert list(Alone().find_problems([])) == ["expected one worker"]
    assert list(SwarmStrategy.find_problems(Alone(), [])) == []


def test_the_setting_offers_every_strategy() -> None:
    offered = get_args(Settings.model_fields["swarm_strategy"].annotation)

    assert set(offered) == {AUTO, *make_strategies().names}
