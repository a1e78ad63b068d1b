"""A strategy of somebody else is one file: it is found by its module, and its plans are checked."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from agents.swarm import strategies
from agents.swarm.errors import UnknownName
from agents.swarm.planning.plan import WorkerPlan
from agents.swarm.strategies.strategy import SwarmStrategy
from agents.swarm.strategies.strategy_registry import USUAL, list_strategies, make_strategies

MODULE = """
from agents.swarm.strategies.strategy import SwarmStrategy

class StrangeStrategy(SwarmStrategy):
    name = "strange"
    description = "divides by the phases of the moon"
    form = "a poem"
"""


@pytest.fixture
def strange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module beside those of the project."""
    (tmp_path / "strange.py").write_text(MODULE)
    monkeypatch.setattr(strategies, "__path__", [*strategies.__path__, str(tmp_path)])
    list_strategies.cache_clear()
    yield
    list_strategies.cache_clear()


@pytest.mark.usefixtures("strange")
def test_a_new_module_is_a_new_strategy() -> None:
    assert make_strategies().names == ("council", "intelligent", "parallel", "strange")
    assert make_strategies().choose(planner="strange").name == "strange"


def test_two_strategies_of_one_name_are_refused() -> None:
    registry = make_strategies()

    with pytest.raises(ValueError, match="expected one strategy named 'council'"):
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
        name, description, form = "alone", "one worker", "one text"

        def find_problems(self, workers: Sequence[WorkerPlan]) -> Iterable[str]:
            return () if len(workers) == 1 else ("expected one worker",)

    assert list(Alone().find_problems([])) == ["expected one worker"]
    assert list(SwarmStrategy.find_problems(Alone(), [])) == []
