"""The flow of the swarm: rounds of workers, pauses, and one search where it fails."""

import pytest
from pydantic import JsonValue

from manager.flow import Counter, PauseFor, Return, Scatter, Stage
from manager.flows import stages as at
from manager.flows.auto_flow import AUTO_FLOW
from manager.flows.swarm import SWARM_FLOW, list_tasks, list_worker_calls
from manager.machine import Action, Context, End, Limits, Send, decide
from manager.stage_event import StageEvent

LIMITS = Limits(parallel_workers=5)
PLAN: dict[str, JsonValue] = {
    "workers": [
        {"id": "w0", "role": "research", "objective": "Look up retries", "tools": ["search"]},
        {"id": "w1", "role": "research", "objective": "x" * 300, "depends_on": ["w0"],
         "priority": 7},
    ]
}  # fmt: skip


def act(
    stage: Stage, event: StageEvent, counters: dict[str, int] | None = None, **facts: bool | str
) -> Action:
    context = Context()
    for name, value in facts.items():
        setattr(context, name, value)
    [action] = decide(SWARM_FLOW, stage, event, counters or {}, LIMITS, context).actions
    return action


def test_tasks_that_begin_become_branches_with_what_others_found() -> None:
    output: dict[str, JsonValue] = {"passages": [{"text": "Retries are 8."}], "items": ["a", "b"]}
    payload: dict[str, JsonValue] = {
        "swarm_plan": PLAN,
        "ready_tasks": ["w1", "unknown"],
        "worker_outputs": {"w0": output},
        "collected_info": {"aspect": "cost"},
    }

    [item] = list_tasks(payload)

    task = item.adds["worker_task"]
    assert isinstance(task, dict)
    assert (item.key, item.priority, len(item.label)) == ("w1", 7, 100)
    assert task["found"] == ["a; b Retries are 8."]
    assert task["known"] == {"aspect": "cost"}
    assert item.depends_on == ()


def test_calls_of_a_worker_carry_its_name_and_its_tools() -> None:
    call: dict[str, JsonValue] = {"call_id": "s1-1", "tool": "search", "arguments": {}}
    workers = PLAN["workers"]
    assert isinstance(workers, list)
    payload: dict[str, JsonValue] = {
        "tool_calls": [call],
        "worker_task": {"worker": workers[0]},
    }

    [item] = list_worker_calls(payload)

    assert item.adds["tool_caller"] == {"agent": "w0", "tools": ["search"]}


@pytest.mark.parametrize(
    ("stage", "event"),
    [
        (at.PLAN, StageEvent.FAILED),
        (at.SYNTHESIZE, StageEvent.NOTHING),
        (at.SYNTHESIZE, StageEvent.FAILED),
    ],
)
def test_a_swarm_that_fails_falls_back_to_one_search(stage: Stage, event: StageEvent) -> None:
    action = act(stage, event)

    assert isinstance(action, Send)
    assert action.stage is at.SEARCH
    assert SWARM_FLOW.row(stage, event).is_fallback


def test_a_simple_question_is_searched_without_a_fallback() -> None:
    assert not SWARM_FLOW.row(at.PLAN, StageEvent.SEARCHES).is_fallback


def test_a_risky_plan_and_missing_facts_pause() -> None:
    approval = act(at.PLAN, StageEvent.NEEDS_APPROVAL)
    facts = act(at.GATHER, StageEvent.NEEDS_INPUT)

    assert isinstance(approval, PauseFor)
    assert isinstance(facts, PauseFor)
    assert (approval.kind, approval.resume) == ("approval", at.APPROVED_PLAN)
    assert (facts.kind, facts.resume) == ("information", at.GIVEN_FACTS)


@pytest.mark.parametrize("stage", [at.APPROVED_PLAN, at.RESUMED_WORK])
def test_a_denial_ends_with_what_is_there(stage: Stage) -> None:
    action = act(stage, StageEvent.DENIED)

    assert isinstance(action, Send)
    assert action.stage is at.SYNTHESIZE


def test_at_most_two_further_plans_are_made() -> None:
    again = act(at.LEDGER, StageEvent.AGAIN, {Counter.RESEARCH.value: 1})
    used_up = act(at.LEDGER, StageEvent.AGAIN, {Counter.RESEARCH.value: LIMITS.research})

    assert isinstance(again, Send)
    assert isinstance(used_up, Send)
    assert (again.stage, used_up.stage) == (at.PLAN, at.SYNTHESIZE)


def test_the_judge_sends_back_to_the_synthesis_or_to_the_plan() -> None:
    retry, replan = act(at.JUDGE, StageEvent.REGENERATE), act(at.JUDGE, StageEvent.RESEARCH)

    assert isinstance(retry, Send)
    assert isinstance(replan, Send)
    assert (retry.stage, replan.stage) == (at.SYNTHESIZE, at.PLAN)


def test_the_best_answer_is_kept_when_no_further_plan_is_allowed() -> None:
    used_up = {Counter.RESEARCH.value: LIMITS.research}

    action = act(at.JUDGE, StageEvent.RESEARCH, used_up, has_best_answer=True)

    assert isinstance(action, End)


def test_workers_run_at_once_within_the_setting_and_enough_of_them_suffice() -> None:
    work = act(at.LEDGER, StageEvent.BEGINS)
    assert isinstance(work, Scatter)

    assert LIMITS.find_at_once(work) == 5
    assert LIMITS.find_needed(work, 10) == 10
    assert Limits(enough_share=0.75).find_needed(work, 10) == 8


def test_a_branch_at_its_limit_or_without_budget_returns_what_it_found() -> None:
    used_up = {Counter.STEP.value: LIMITS.steps}
    facts = Context(in_branch=True, stop_reason="budget_usd")

    at_limit = act(at.WORK, StageEvent.CALLS, used_up, in_branch=True)
    [exhausted] = decide(SWARM_FLOW, at.WORK, StageEvent.CALLS, {}, LIMITS, facts).actions

    assert isinstance(at_limit, Return)
    assert isinstance(exhausted, Return)
    assert "worker_outputs" in at_limit.attributes
    assert "worker_outputs" in exhausted.attributes


def test_a_worker_that_fails_is_sent_again_in_its_branch_until_its_retries_are_used_up() -> None:
    used_up = {Counter.RETRY.value: LIMITS.retries}

    again = act(at.WORK, StageEvent.FAILED, in_branch=True)
    at_limit = act(at.WORK, StageEvent.FAILED, used_up, in_branch=True)
    without_budget = act(at.WORK, StageEvent.FAILED, in_branch=True, stop_reason="budget_usd")

    assert isinstance(again, Send)
    assert again.stage is at.WORK
    assert isinstance(at_limit, Return)
    assert isinstance(without_budget, Return)


def test_an_exhausted_budget_ends_in_an_answer_from_what_was_found() -> None:
    facts = Context(stop_reason="budget_model_calls")

    [action] = decide(SWARM_FLOW, at.LEDGER, StageEvent.BEGINS, {}, LIMITS, facts).actions

    assert isinstance(action, Send)
    assert action.stage is at.SYNTHESIZE


def test_triage_leads_to_the_swarm() -> None:
    [action] = decide(AUTO_FLOW, at.TRIAGE, StageEvent.USES_SWARM, {}, LIMITS, Context()).actions

    assert isinstance(action, Send)
    assert action.stage is at.PLAN
