"""A decision of a planner becomes a plan that can run, or is rejected with its problems."""

import pytest

from llm.tasks.plan_swarm import Output, PlannedWorker
from swarm.errors import PlanRejected
from swarm.planning.plan import SwarmPlan
from swarm.planning.tool_allocation import OfferedTool
from swarm.strategies.strategy import StrategyContext
from swarm.strategies.strategy_registry import make_strategies
from swarm.way.proposal import propose_decision, read_plan
from swarm.workers.worker_type import make_registry
from tools.calls import EffectClass

QUESTION = "Compare retries of webhooks and of the API"
TOOLS = (
    OfferedTool(name="search"),
    OfferedTool(name="lookup"),
    OfferedTool(name="file_write", effect=EffectClass.DANGEROUS),
)


def plan(*workers: PlannedWorker, **context: object) -> SwarmPlan:
    decision = Output(action="orchestrate", complexity=0.5, workers=workers)
    return read_plan(
        QUESTION,
        decision,
        make_strategies().find("intelligent"),
        StrategyContext.model_validate({"tools": TOOLS, **context}),
        make_registry(),
    )


def worker(objective: str, **changes: object) -> PlannedWorker:
    return PlannedWorker.model_validate({"role": "research", "objective": objective, **changes})


def test_workers_of_a_model_get_ids_and_dependencies_by_position() -> None:
    made = plan(worker("List the services"), worker("Who owns them?", depends_on=(0,)))

    assert [one.id for one in made.workers] == ["worker_0_research", "worker_1_research"]
    assert made.workers[1].depends_on == ("worker_0_research",)


def test_a_dangerous_tool_is_withheld_from_a_worker_that_does_not_need_it() -> None:
    made = plan(worker("List the services", tools=("search", "file_write")))

    assert made.workers[0].tools == ("search",)
    assert "file_write is withheld" in made.notes[0]


@pytest.mark.parametrize(
    ("workers", "problem"),
    [
        ([worker(f"Question {number} about topic{number}") for number in range(500)], "at most"),
        ([worker("a one", depends_on=(1,)), worker("b two", depends_on=(0,))], "cycle"),
        ([worker("a", depends_on=(7,))], "positions"),
        ([worker(" ")], "an objective"),
        ([worker("a", role="assassin")], "one of analysis"),
    ],
)
def test_a_plan_that_cannot_run_is_rejected_with_its_problems(
    workers: list[PlannedWorker], problem: str
) -> None:
    with pytest.raises(PlanRejected, match=problem):
        plan(*workers)


def test_overlapping_briefs_become_one_worker() -> None:
    made = plan(worker("How often are webhooks retried?"), worker("how often are webhooks retried"))

    assert len(made.workers) == 1


def test_without_workers_the_strategy_plans_and_numbers_go_on() -> None:
    decision = propose_decision(QUESTION)
    made = read_plan(
        QUESTION,
        decision,
        make_strategies().find("parallel"),
        StrategyContext(tools=TOOLS),
        make_registry(),
        first=3,
    )

    assert decision.workers == ()
    assert [one.id for one in made.workers] == ["worker_3_analysis"], "its words compare"
