"""Plans that can run, plans that are repaired, and plans that are sent back."""

import pytest

from agents.swarm.material import find_closest
from agents.swarm.plan_making import (
    OfferedTool,
    accept_plan,
    allocate_plan,
    allocate_tools,
    arrange_workers,
    describe_done,
    extend_plan,
    list_risky,
    merge_overlapping,
    plan_listed,
    read_plan,
)
from agents.swarm.strategies import make_strategies
from agents.swarm.swarm_plan import MOST_WORKERS, PlanRejected, SwarmPlan
from agents.swarm.workers import WorkerOutput, WorkerType, make_registry
from benchmarks.quality.multistep import run_worker
from llm.tasks.swarm import PlannedWorker, PlanSwarmOutput
from tests.agents.swarm.builders import make_output, make_passage, make_swarm_plan, make_worker
from tools.calls import EffectClass
from tools.executor import ToolExecutor

ROLES = ("research", "data")


def test_a_plan_of_five_hundred_workers_is_sent_back() -> None:
    plan = make_swarm_plan(
        *(make_worker(f"w{n}", objective=f"look up item number {n}") for n in range(500))
    )

    with pytest.raises(PlanRejected, match=rf"expected at most {MOST_WORKERS} workers, found 500"):
        accept_plan(plan, roles=ROLES)


def test_a_plan_that_is_far_too_long_is_sent_back_without_comparing_its_briefs() -> None:
    plan = make_swarm_plan(*(make_worker(f"w{n}", objective="look it up") for n in range(1_001)))

    with pytest.raises(PlanRejected, match=r"expected at most \d+ workers, found 1001"):
        accept_plan(plan, roles=ROLES)


def test_a_cycle_is_shown_in_the_reason() -> None:
    plan = make_swarm_plan(make_worker("a", depends_on=("b",)), make_worker("b", depends_on=("a",)))

    with pytest.raises(PlanRejected, match="form a cycle"):
        accept_plan(plan, roles=ROLES)


def test_all_problems_of_a_plan_are_named_at_once() -> None:
    plan = make_swarm_plan(
        make_worker("a", role="spy"),
        make_worker("b", depends_on=("nobody",)),
        make_worker("c", objective="first"),
        make_worker("c", objective="second thing"),
    )

    with pytest.raises(PlanRejected) as caught:
        accept_plan(plan, roles=ROLES)

    assert len(caught.value.problems) == 3


def test_an_empty_plan_is_sent_back() -> None:
    with pytest.raises(PlanRejected, match="contains no worker"):
        accept_plan(make_swarm_plan(), roles=ROLES)


def test_briefs_that_overlap_become_one_worker_and_who_waited_waits_for_it() -> None:
    plan = make_swarm_plan(
        make_worker("a", objective="retention rules of the Alfa contract", tools=("search",)),
        make_worker(
            "b", objective="Alfa contract: rules of retention", tools=("lookup",), priority=9
        ),
        make_worker("c", depends_on=("b",)),
    )

    merged = accept_plan(plan, roles=ROLES)

    assert [worker.id for worker in merged.workers] == ["a", "c"]
    assert merged.workers[0].tools == ("search", "lookup")
    assert merged.workers[0].priority == 9
    assert merged.workers[1].depends_on == ("a",)
    assert merged.notes == ("b has the brief of a and was merged into it",)


def test_the_same_question_about_two_subjects_is_no_overlap() -> None:
    plan = make_swarm_plan(
        make_worker("a", objective="fees", subject="Alfa"),
        make_worker("b", objective="fees", subject="Beta"),
    )

    assert merge_overlapping(plan) is plan


def test_waves_follow_dependencies_and_priority() -> None:
    workers = [
        make_worker("a"),
        make_worker("b", priority=8),
        make_worker("c", depends_on=("a", "b")),
    ]

    waves = arrange_workers(workers)

    assert [[plan.id for plan in wave] for wave in waves] == [["b", "a"], ["c"]]


def test_a_dangerous_tool_is_given_only_to_a_brief_that_names_it() -> None:
    offered = {
        "search": OfferedTool(name="search"),
        "file_write": OfferedTool(name="file_write", effect=EffectClass.DANGEROUS),
    }
    asking = make_worker("a", tools=("file_write",), objective="summarise the contract")
    needing = make_worker("b", tools=("file_write",), objective="write the file of results")

    withheld = allocate_tools(asking, ("search",), offered)
    given = allocate_tools(needing, ("search",), offered)

    assert withheld.tools == ("search",)
    assert list(withheld.withheld) == ["file_write"]
    assert given.tools == ("file_write",)
    assert list_risky([needing.model_copy(update={"tools": given.tools})], offered) == {
        "b": ("file_write",)
    }


def test_the_tools_of_a_plan_are_allocated_with_a_note_for_each_that_is_withheld() -> None:
    plan = make_swarm_plan(
        make_worker("a", tools=("shell",)),
        make_worker("b", objective="what is the difference between the two versions"),
    )
    offered = [
        OfferedTool(name="search"),
        OfferedTool(name="compare_documents"),
        OfferedTool(name="shell", effect=EffectClass.DANGEROUS),
    ]

    allocated = allocate_plan(plan, {"research": ("search",)}, offered)

    assert [worker.tools for worker in allocated.workers] == [
        ("search",), ("search",),
    ]  # fmt: skip
    assert allocated.notes == (
        "shell is withheld from a: dangerous, and the brief does not require it",
    )


def test_a_tool_that_nobody_offers_is_withheld_with_the_reason() -> None:
    allocation = allocate_tools(make_worker("a", tools=("invented",)), (), {})

    assert allocation.withheld == {"invented": "no such tool is offered"}


QUESTION = "Compare the vendors Alfa, Beta and Gamma by price and support"
OFFERED = (OfferedTool(name="search"), OfferedTool(name="read_section"))


def work(objective: str, **fields: object) -> PlannedWorker:
    return PlannedWorker.model_validate({"role": "research", "objective": objective, **fields})


def decide(*workers: PlannedWorker, **fields: object) -> PlanSwarmOutput:
    known = {"action": "orchestrate", "complexity": 0.6, **fields, "workers": workers}
    return PlanSwarmOutput.model_validate(known)


def read(decision: PlanSwarmOutput, strategy: str = "intelligent", first: int = 0) -> SwarmPlan:
    chosen = make_strategies().find(strategy)
    return read_plan(QUESTION, decision, chosen, make_registry(), OFFERED, first=first)


async def run(plan: SwarmPlan, executor: ToolExecutor) -> dict[str, WorkerOutput]:
    return {
        worker.id: await run_worker(worker, executor)
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
    assert [worker.subject for worker in plan.workers] == ["Alfa", "Beta"]
    assert plan.workers[0].tools == ("search", "read_section")


@pytest.mark.parametrize(
    ("workers", "problem"),
    [
        ([], "the plan contains no worker"),
        ([work(" ")], "every worker requires an objective"),
        ([work("a", depends_on=(7,))], "expected positions from 0 to 0"),
        ([work("a", role="wizard")], "expected one of analysis, code, data, research"),
    ],
)
def test_a_plan_that_cannot_run_is_rejected(workers: list[PlannedWorker], problem: str) -> None:
    with pytest.raises(PlanRejected, match=problem):
        read(decide(*workers))


def test_a_further_type_of_worker_is_registered_and_planned_with_its_own_tools() -> None:
    registry = make_registry()
    registry.register(WorkerType("pricing", ("calculator",)))

    plan = read_plan(
        "What does it cost?",
        decide(work("Add up the fees", role="pricing")),
        make_strategies().find("intelligent"),
        registry,
        [OfferedTool(name="calculator")],
    )

    assert [(worker.role, worker.tools) for worker in plan.workers] == [
        ("pricing", ("calculator",))
    ]


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
    with pytest.raises(PlanRejected, match="must not depend on other workers"):
        read(decide(work("first thing"), work("second part", depends_on=(0,))), "parallel")


def test_a_further_plan_has_ids_of_its_own_and_adds_to_the_first() -> None:
    first = read(decide(work("the price of all vendors")))
    further = read(decide(work("the support of all vendors")), first=1)
    outputs = {
        first.workers[0].id: make_output("a", make_passage("p", "12"), text="It is 12 [p#0].")
    }

    assert [worker.id for worker in extend_plan(first, further).workers] == [
        "worker_0_research", "worker_1_research",
    ]  # fmt: skip
    assert describe_done(first, outputs) == ["the price of all vendors: It is 12 [p#0]."]


def test_without_a_model_each_listed_item_gets_a_worker() -> None:
    plan = plan_listed(QUESTION)

    assert plan.items == ("Alfa", "Beta", "Gamma")
    assert [worker.objective for worker in plan.workers] == [
        f"{item} compare vendors price support" for item in plan.items
    ]


def test_without_a_model_each_listed_question_gets_a_worker() -> None:
    plan = plan_listed("What does a licence cost? Who reads the logs?", most_passages=10)

    assert [worker.objective for worker in plan.workers] == [
        "What does a licence cost?", "Who reads the logs?",
    ]  # fmt: skip
    assert [worker.passages for worker in plan.workers] == [5, 5]


async def test_an_item_that_no_passage_names_is_not_found(executor: ToolExecutor) -> None:
    plan = make_swarm_plan(
        make_worker("w0", objective="Amrum ferry", subject="Amrum", tools=("search",)),
        make_worker("w1", objective="Atlantis ferry", subject="Atlantis", tools=("search",)),
    )

    closest = find_closest(plan, await run(plan, executor))

    assert closest["Amrum"] is not None
    assert closest["Atlantis"] is None
