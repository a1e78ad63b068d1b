"""A further plan looks elsewhere for the missing parts, and ends when nothing is new."""

from swarm.way.proposal import extend_plan
from swarm.way.replanning import describe_done, plan_missing
from tests.swarm.builders import make_output, make_passage, make_swarm_plan, make_worker

PLAN = make_swarm_plan(make_worker("worker_0_research"), make_worker("worker_1_research"))
FOUND = {"worker_0_research": make_output("worker_0_research", make_passage("a", "text"))}


def test_only_parts_without_a_result_are_planned_again_with_other_tools() -> None:
    further = plan_missing(PLAN, FOUND, replans=0)

    assert further is not None
    [worker] = further.workers
    assert worker.id == "worker_2_research"
    assert worker.objective == PLAN.workers[1].objective
    assert worker.tools == ("hybrid_search",)
    assert [one.id for one in extend_plan(PLAN, further).workers][:2] == [
        one.id for one in PLAN.workers
    ]


def test_with_all_results_the_gaps_of_the_answer_become_the_brief() -> None:
    found = {one.id: make_output(one.id, make_passage("a", "text")) for one in PLAN.workers}

    further = plan_missing(PLAN, found, replans=1, lacks="the year")

    assert further is not None
    assert [one.objective for one in further.workers] == ["What is it? the year"]


def test_the_rules_plan_twice_at_most() -> None:
    assert plan_missing(PLAN, {}, replans=2) is None


def test_a_planner_reads_what_came_of_each_brief() -> None:
    assert describe_done(PLAN, FOUND) == [
        "look up worker_0_research: 1 passages",
        "look up worker_1_research: no result",
    ]
