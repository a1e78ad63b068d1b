"""Plans that can run, plans that are repaired, and plans that are sent back."""

import pytest

from agents.swarm.errors import PlanRejected
from agents.swarm.plan_making import (
    OfferedTool,
    accept_plan,
    allocate_plan,
    allocate_tools,
    arrange_workers,
    list_risky,
    merge_overlapping,
)
from agents.swarm.swarm_plan import MOST_WORKERS
from tests.agents.swarm.builders import make_swarm_plan, make_worker
from tools.calls import EffectClass

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

    with pytest.raises(PlanRejected, match="wait for no cycle, found"):
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
    with pytest.raises(PlanRejected, match="at least one worker"):
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

    assert [one.id for one in merged.workers] == ["a", "c"]
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

    assert [[one.id for one in wave] for wave in waves] == [["b", "a"], ["c"]]


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

    assert [one.tools for one in allocated.workers] == [
        ("search",), ("search",),
    ]  # fmt: skip
    assert allocated.notes == (
        "shell is withheld from a: dangerous, and the brief does not need it",
    )


def test_a_tool_that_nobody_offers_is_withheld_with_the_reason() -> None:
    allocation = allocate_tools(make_worker("a", tools=("invented",)), (), {})

    assert allocation.withheld == {"invented": "no such tool is offered"}
