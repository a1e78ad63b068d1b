"""The flow of the tool loop: rounds are counted, failures fall back to one search."""

import pytest
from pydantic import JsonValue

from envelope.outcome import Outcome
from envelope.tool_loop import WayName
from manager.flow import Counter, Ending, Scatter, Stage
from manager.flows import NEWEST, stages
from manager.flows.auto_flow import AUTO_FLOW
from manager.flows.tool_loop import TOOLS_FLOW, list_calls
from manager.machine import NO_BETTER, Context, End, Limits, Send, decide
from manager.stage_event import StageEvent

LIMITS = Limits()


def test_every_way_has_a_flow() -> None:
    assert {way.value for way in WayName} <= set(NEWEST)


def test_planned_calls_become_branches_in_their_order() -> None:
    calls: list[JsonValue] = [
        {"call_id": "r1-1", "tool": "search", "depends_on": []},
        {"call_id": "r1-2", "tool": "calculator", "depends_on": ["r1-1"]},
    ]

    items = list_calls({"tool_calls": [*calls, "no call"]})

    assert [item.key for item in items] == ["r1-1", "r1-2"]
    assert items[1].depends_on == ("r1-1",)
    assert items[0].adds == {"tool_call": calls[0]}
    assert list_calls({}) == []


@pytest.mark.parametrize(
    ("stage", "event"),
    [
        (stages.REASON, StageEvent.FAILED),
        (stages.RESULTS, StageEvent.FAILED),
        (stages.REFLECT, StageEvent.NOTHING),
    ],
)
def test_a_loop_that_fails_falls_back_to_one_search(stage: Stage, event: StageEvent) -> None:
    decision = decide(TOOLS_FLOW, stage, event, {}, LIMITS, Context())

    [action] = decision.actions
    assert isinstance(action, Send)
    assert action.stage is stages.SEARCH
    assert TOOLS_FLOW.row(stage, event).is_fallback


def test_the_last_round_goes_on_to_the_check_of_quality_even_with_a_better_answer_before() -> None:
    used_up = {Counter.ITERATION.value: LIMITS.iterations}
    facts = Context(has_best_answer=True)

    decision = decide(TOOLS_FLOW, stages.ASSESS, StageEvent.AGAIN, used_up, LIMITS, facts)

    [action] = decision.actions
    assert isinstance(action, Send)
    assert action.stage is stages.QUALITY
    assert decision.termination_reason == ""


def test_the_next_round_begins_with_a_plan_and_is_counted() -> None:
    decision = decide(TOOLS_FLOW, stages.ASSESS, StageEvent.AGAIN, {}, LIMITS, Context())

    [action] = decision.actions
    assert isinstance(action, Send)
    assert action.stage is stages.REASON
    assert decision.counters == {Counter.ITERATION: 1}


@pytest.mark.parametrize(
    ("event", "stage"),
    [
        (StageEvent.NONE_UNANSWERED, stages.ASSESS),
        (StageEvent.NONE_ANSWERED, stages.QUALITY),
        (StageEvent.NONE_JUDGED, stages.CLARIFICATION),
    ],
)
def test_a_round_without_new_calls_writes_and_assesses_nothing(
    event: StageEvent, stage: Stage
) -> None:
    decision = decide(TOOLS_FLOW, stages.REASON, event, {}, LIMITS, Context())

    [action] = decision.actions
    assert isinstance(action, Send)
    assert action.stage is stage


def test_a_judge_who_wants_more_than_can_be_found_gets_the_best_answer_sent() -> None:
    facts, counters = Context(has_best_answer=True), {Counter.RESEARCH.value: 1}
    event = StageEvent.NONE_JUDGED

    decision = decide(TOOLS_FLOW, stages.REASON, event, counters, LIMITS, facts)

    assert decision.actions == (End(Ending.BEST, Outcome.ANSWERED),)
    assert decision.termination_reason == NO_BETTER


def test_a_plan_that_goes_on_gathers_before_the_next_plan() -> None:
    more = decide(TOOLS_FLOW, stages.REASON, StageEvent.CALLS_AND_PLANS, {}, LIMITS, Context())
    last = decide(TOOLS_FLOW, stages.REASON, StageEvent.CALLS, {}, LIMITS, Context())

    [first], [second] = more.actions, last.actions
    assert isinstance(first, Scatter)
    assert isinstance(second, Scatter)
    assert first.gather is stages.INTERIM_RESULTS
    assert second.gather is stages.RESULTS


def test_a_loop_ends_at_the_limit_of_hops_like_every_flow() -> None:
    facts = Context(process_count=LIMITS.process_count)

    decision = decide(TOOLS_FLOW, stages.REASON, StageEvent.CALLS, {}, LIMITS, facts)

    assert isinstance(decision.actions[0], End)
    assert decision.termination_reason == "process_count_limit"


def test_triage_leads_to_either_way_and_its_failure_to_the_search() -> None:
    def target(event: StageEvent) -> object:
        [action] = decide(AUTO_FLOW, stages.TRIAGE, event, {}, LIMITS, Context()).actions
        return action.stage if isinstance(action, Send) else action

    assert target(StageEvent.SEARCHES) is stages.SEARCH
    assert target(StageEvent.USES_TOOLS) is stages.REASON
    assert target(StageEvent.FAILED) is stages.SEARCH
