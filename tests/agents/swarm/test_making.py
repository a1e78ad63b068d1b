"""Plans: from the decision of a model, and without one from what a question lists."""

import pytest

from agents.swarm.errors import PlanRejected
from agents.swarm.expansion import expand_plan
from agents.swarm.material import choose_shown, find_closest
from agents.swarm.plan_making import (
    OfferedTool,
    arrange_workers,
    describe_done,
    extend_plan,
    plan_listed,
    read_plan,
)
from agents.swarm.strategies import make_strategies
from agents.swarm.swarm_plan import SwarmPlan
from agents.swarm.worker_output import WorkerOutput
from agents.swarm.workers import make_registry
from benchmarks.quality.multistep import run_worker
from llm.tasks.plan_swarm import Output, PlannedWorker
from tests.agents.swarm.builders import make_output, make_passage, make_swarm_plan, make_worker
from tests.agents.swarm.conftest import ISLANDS
from tools.executor import ToolExecutor

QUESTION = "Compare the vendors Alfa, Beta and Gamma by price and support"
OFFERED = (OfferedTool(name="search"), OfferedTool(name="read_section"))


def work(objective: str, **fields: object) -> PlannedWorker:
    return PlannedWorker.model_validate({"role": "research", "objective": objective, **fields})


def decide(*workers: PlannedWorker, **fields: object) -> Output:
    known = {"action": "orchestrate", "complexity": 0.6, **fields, "workers": workers}
    return Output.model_validate(known)


def read(decision: Output, strategy: str = "intelligent", first: int = 0) -> SwarmPlan:
    chosen = make_strategies().find(strategy)
    return read_plan(QUESTION, decision, chosen, make_registry(), OFFERED, first=first)


async def run(plan: SwarmPlan, executor: ToolExecutor) -> dict[str, WorkerOutput]:
    registry = make_registry()
    return {
        worker.id: await run_worker(worker, executor, registry)
        for wave in arrange_workers(plan.workers)
        for worker in wave
    }


def test_a_table_of_a_model_keeps_its_items_and_criteria() -> None:
    plan = read(
        decide(
            work("What does Alfa cost, and which support has it?", item="Alfa"),
            work("What does Beta cost, and which support has it?", item="Beta"),
            items=["Alfa", "Beta", "Alfa"],
            criteria=["price", "support"],
        )
    )

    assert (plan.items, plan.criteria) == (("Alfa", "Beta"), ("price", "support"))
    assert [one.subject for one in plan.workers] == ["Alfa", "Beta"]
    assert plan.workers[0].tools == ("search", "read_section")


@pytest.mark.parametrize(
    ("workers", "problem"),
    [
        ([], "expected at least one worker"),
        ([work(" ")], "expected an objective"),
        ([work("a", depends_on=(7,))], "expected positions from 0 to 0"),
        ([work("a", role="wizard")], "expected one of analysis, code, data, research"),
    ],
)
def test_a_plan_that_cannot_run_is_rejected(workers: list[PlannedWorker], problem: str) -> None:
    with pytest.raises(PlanRejected, match=problem):
        read(decide(*workers))


def test_the_members_of_a_council_take_different_sides() -> None:
    sides = [work(f"What speaks {name} it?", specialization=name) for name in ("for", "against")]

    with pytest.raises(PlanRejected, match="at least 3 members"):
        read(decide(*sides), "council")
    assert (
        len(
            read(decide(*sides, work("Who has used it?", specialization="user")), "council").workers
        )
        == 3
    )


def test_workers_side_by_side_wait_for_nobody() -> None:
    with pytest.raises(PlanRejected, match="wait for no other one"):
        read(decide(work("first thing"), work("second part", depends_on=(0,))), "parallel")


def test_a_further_plan_has_ids_of_its_own_and_adds_to_the_first() -> None:
    first = read(decide(work("the price of all vendors")))
    further = read(decide(work("the support of all vendors")), first=1)
    outputs = {
        first.workers[0].id: make_output("a", make_passage("p", "12"), text="It is 12 [p#0].")
    }

    assert [one.id for one in extend_plan(first, further).workers] == [
        "worker_0_research", "worker_1_research",
    ]  # fmt: skip
    assert describe_done(first, outputs) == ["the price of all vendors: It is 12 [p#0]."]


def test_without_a_model_each_listed_item_gets_a_worker() -> None:
    plan = plan_listed(QUESTION)

    assert plan.items == ("Alfa", "Beta", "Gamma")
    assert [one.objective for one in plan.workers] == [
        f"{item} compare vendors price support" for item in plan.items
    ]


def test_without_a_model_each_listed_question_gets_a_worker() -> None:
    plan = plan_listed("What does a licence cost? Who reads the logs?", most_passages=10)

    assert [one.objective for one in plan.workers] == [
        "What does a licence cost?", "Who reads the logs?",
    ]  # fmt: skip
    assert [one.passages for one in plan.workers] == [5, 5]


async def test_what_a_passage_lists_is_looked_up_item_by_item(executor: ToolExecutor) -> None:
    plan = plan_listed("When do ferries leave for the islands of the county?")
    outputs = await run(plan, executor)

    expanded = expand_plan(plan, outputs)
    fresh = tuple(one for one in expanded.workers if one.id not in outputs)
    outputs |= await run(expanded.model_copy(update={"workers": fresh}), executor)

    assert expanded.items == ISLANDS
    closest = find_closest(expanded, outputs)
    assert {name: one and one.citation.document_id for name, one in closest.items()} == {
        one: one.lower() for one in ISLANDS
    }
    shown = [one.citation.document_id for one in choose_shown(expanded, outputs, 4)]
    assert shown == ["islands", *(one.lower() for one in ISLANDS)]


async def test_an_item_that_no_passage_names_is_not_found(executor: ToolExecutor) -> None:
    plan = make_swarm_plan(
        make_worker("w0", objective="Amrum ferry", subject="Amrum", tools=("search",)),
        make_worker("w1", objective="Atlantis ferry", subject="Atlantis", tools=("search",)),
    )

    closest = find_closest(plan, await run(plan, executor))

    assert closest["Amrum"] is not None
    assert closest["Atlantis"] is None
