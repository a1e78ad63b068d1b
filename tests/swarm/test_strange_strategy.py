"""A strategy of somebody else is one file: it is found, planned by, and chosen like the others."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import swarm.strategies
from llm.tasks.plan_swarm import Output
from swarm.planning.complexity import measure_complexity
from swarm.strategies.strategy import StrategyContext
from swarm.strategies.strategy_registry import list_strategies, make_strategies
from swarm.way.proposal import read_plan
from swarm.workers.worker_type import make_registry

NAME = "debate"
MODULE = '''
"""The strategy `debate`: one worker for, one against."""

from swarm.planning.plan import WorkerPlan, name_worker
from swarm.strategies.strategy import SwarmStrategy
from swarm.synthesis.report import write_report


class DebateStrategy(SwarmStrategy):
    """One side searches for reasons, the other one against them."""

    name = "debate"
    description = "reasons for and against"

    def suits(self, question, complexity):
        return 0.9 if "pros and cons" in question else 0.0

    def generate_workers(self, question, complexity, context):
        return [
            WorkerPlan(
                id=name_worker(number, "analysis"),
                role="analysis",
                specialization=side,
                objective=f"{side}: {question}",
            )
            for number, side in enumerate(("for", "against"))
        ]

    def synthesize_results(self, plan, outputs, wording):
        return write_report(plan, outputs, wording)
'''


@pytest.fixture
def strange_strategy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / f"{NAME}.py").write_text(MODULE)
    monkeypatch.setattr(swarm.strategies, "__path__", [*swarm.strategies.__path__, str(tmp_path)])
    list_strategies.cache_clear()
    yield NAME
    list_strategies.cache_clear()
    sys.modules.pop(f"swarm.strategies.{NAME}", None)


def test_one_file_is_enough(strange_strategy: str) -> None:
    question = "What are the pros and cons of webhooks?"
    strategies = make_strategies()

    by_caller = strategies.choose(question, measure_complexity(question), caller=strange_strategy)
    by_suit = strategies.choose(question, measure_complexity(question), configured="auto")
    decision = Output(action="orchestrate", complexity=0.5)
    plan = read_plan(question, decision, by_caller, StrategyContext(), make_registry())

    assert by_caller is by_suit
    assert strange_strategy in strategies.names
    assert [one.specialization for one in plan.workers] == ["for", "against"]


def test_it_is_gone_with_its_file() -> None:
    assert NAME not in make_strategies().names
