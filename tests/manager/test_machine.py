"""What the manager decides: a row is an example, and its last column the decision in words."""

import pytest

from envelope.conversation import ClarificationReason as Reason
from manager.flow import Counter, Flow, Next, PauseFor, Return, Row, Scatter, Stage
from manager.flow import StageEvent as E
from manager.flows import stages as at
from manager.flows.auto_flow import AUTO_FLOW
from manager.flows.search_flow import SEARCH_FLOW
from manager.flows.specialists import SPECIALISTS_FLOW
from manager.flows.swarm import SWARM_FLOW
from manager.flows.tool_loop import TOOLS_FLOW
from manager.machine import (
    Context,
    Counters,
    Decision,
    End,
    Limits,
    Send,
    decide,
)

LIMITS = Limits(parallel_workers=5)
BEST = Context(has_best_answer=True)
UNJUDGED = Context(has_unjudged_answer=True)
BRANCH = Context(in_branch=True)
UNCLEAR = Context(reason=Reason.AMBIGUOUS_QUERY)
LATER_NOTHING = Context(has_best_answer=True, reason=Reason.INSUFFICIENT_CONTEXT)
NO_MONEY = Context(stop_reason="budget_usd")
NO_TOKENS = Context(stop_reason="budget_tokens")
NO_CALLS = Context(stop_reason="budget_model_calls")
BEST_WITHOUT_CALLS = Context(has_best_answer=True, stop_reason="budget_model_calls")
BRANCH_WITHOUT_MONEY = Context(in_branch=True, stop_reason="budget_usd")


def describe(decision: Decision) -> str:
    """Say what was decided: where the question goes or how it ends, and why."""
    [action] = decision.actions
    match action:
        case Send(stage):
            done = stage.name
        case End(ending, outcome):
            done = f"end {ending.name.lower()}" + (f" {outcome}" if outcome is not None else "")
        case PauseFor():
            done = f"pause {action.kind}, then {action.resume.name}"
        case Return():
            done = "return"
        case Scatter():
            done = f"branches, then {action.gather.name}"
        case _:
            raise AssertionError(action)
    reason = f" as {decision.reason}" if decision.reason is not None else ""
    return done + reason + (f" by {ended}" if (ended := decision.termination_reason) else "")


# fmt: off
SEARCH = [
    # an answer and its judge
    (at.QUALITY, E.APPROVED, {}, Context(), "end answer answered"),
    (at.QUALITY, E.RESEARCH, {Counter.RESEARCH: 1}, Context(), "search"),
    (at.QUALITY, E.FAILED, {}, Context(), "response"),  # a judge that fails is no approval
    (at.RESPONSE, E.GENERATION_ERROR, {}, Context(), "response"),  # the next model, once
    (at.RESPONSE, E.GENERATION_ERROR, {Counter.NEXT_MODEL: 1}, Context(), "end best as insufficient_context by next_model_limit"),
    # a loop at its limit
    (at.QUALITY, E.RESEARCH, {Counter.RESEARCH: 2}, BEST, "end best answered by research_limit"),
    (at.QUALITY, E.LOW, {Counter.REGENERATE: 2}, BEST, "end best answered by regenerate_limit"),
    (at.QUALITY, E.REGENERATE, {Counter.REGENERATE: 2}, Context(), "clarification as internal_fault by regenerate_limit"),
    (at.QUALITY, E.LOW, {Counter.REGENERATE: 2}, Context(), "clarification as internal_fault by regenerate_limit"),
    (at.QUALITY, E.RESEARCH, {Counter.RESEARCH: 2}, Context(), "clarification as insufficient_context by research_limit"),
    # a further attempt that finds nothing leaves the answer before it
    (at.SEARCH, E.NOTHING, {Counter.RESEARCH: 1}, LATER_NOTHING, "end best answered as insufficient_context by no_better_answer"),
    (at.SEARCH, E.NOTHING, {Counter.REGENERATE: 1}, LATER_NOTHING, "end best answered as insufficient_context by no_better_answer"),
    (at.RESPONSE, E.ASKS, {Counter.RESEARCH: 1}, LATER_NOTHING, "end best answered as insufficient_context by no_better_answer"),
    (at.RESPONSE, E.ASKS, {Counter.REGENERATE: 1}, LATER_NOTHING, "end best answered as insufficient_context by no_better_answer"),
    # but an answer of an earlier round does not hide a refusal
    (at.SEARCH, E.NOTHING, {Counter.ROUND: 1}, LATER_NOTHING, "clarification as insufficient_context"),
    # questions back, refusals and faults
    (at.SEARCH, E.MANY, {Counter.ROUND: 2}, UNCLEAR, "clarification as ambiguous_query"),
    (at.SEARCH, E.MANY, {Counter.ROUND: 3}, UNCLEAR, "clarification as insufficient_context by round_limit"),
    (at.CLARIFICATION, E.DONE, {}, UNCLEAR, "end reply clarification as ambiguous_query"),
    (at.GUARDRAILS, E.OUTSIDE, {Counter.ROUND: 3}, Context(), "clarification as out_of_scope"),
    (at.CLARIFICATION, E.DONE, {}, Context(reason=Reason.OUT_OF_SCOPE), "end reply refused as out_of_scope"),
    (at.CLARIFICATION, E.DONE, {}, Context(reason=Reason.INTERNAL_FAULT), "end reply failed as internal_fault"),
    (at.GUARDRAILS, E.FAILED, {}, Context(), "clarification as scope_unclear"),  # what cannot decide never lets through
    # a limit ends the question with the best there is, and throws no finished answer away
    (at.SEARCH, E.FOUND, {}, Context(process_count=60), "end best by process_count_limit"),
    (at.SEARCH, E.FOUND, {}, Context(total_seconds=110), "end best by total_time_limit"),
    (at.SEARCH, E.FOUND, {}, Context(remaining_seconds=0.5), "end best by deadline"),
    (at.QUALITY, E.APPROVED, {}, Context(process_count=99), "end answer answered"),
    # an exhausted budget takes no further loop, but goes on to an answer and asks back
    (at.QUALITY, E.RESEARCH, {}, BEST_WITHOUT_CALLS, "end best by budget_model_calls"),
    (at.QUALITY, E.RESEARCH, {}, NO_MONEY, "end best by budget_usd"),
    (at.SEARCH, E.FOUND, {}, NO_TOKENS, "augmentation"),
    (at.QUALITY, E.APPROVED, {}, NO_TOKENS, "end answer answered by budget_tokens"),
    (at.SEARCH, E.MANY, {}, NO_TOKENS, "clarification as ambiguous_query"),
]
TOOLS = [
    # a loop that fails falls back to one search
    (at.REASON, E.FAILED, {}, Context(), "search"),
    (at.RESULTS, E.FAILED, {}, Context(), "search"),
    (at.REFLECT, E.NOTHING, {}, Context(), "search"),
    # but never from an answer that is written
    (at.REASON, E.FAILED, {Counter.ITERATION: 1}, UNJUDGED, "end best by reason_failed"),
    (at.REFLECT, E.NOTHING, {Counter.ITERATION: 1}, UNJUDGED, "end best by no_better_answer"),
    # rounds are counted; the last ends with the best answer
    (at.LOOP_JUDGE, E.RESEARCH, {}, Context(), "reason"),
    (at.LOOP_JUDGE, E.RESEARCH, {Counter.ITERATION: LIMITS.iterations}, BEST, "end best answered by iteration_limit"),
    (at.LOOP_JUDGE, E.REGENERATE, {}, Context(), "write"),
    # a round without new calls writes nothing
    (at.REASON, E.ASKS, {}, Context(), "clarification"),
    (at.REASON, E.NOTHING_NEW, {}, Context(), "clarification as insufficient_context"),
    # a judge who wants more than can be found gets the best answer sent
    (at.REASON, E.NOTHING_NEW, {Counter.ITERATION: 1}, BEST, "end best answered by no_better_answer"),
    # nothing is written again from the same sources: the answer before it, or the question of its writer, goes out
    (at.REFLECT, E.NOTHING_NEW, {Counter.ITERATION: 1}, BEST, "end best answered by no_better_answer"),
    (at.REFLECT, E.ASKS, {Counter.ITERATION: 1}, Context(reason=Reason.MISSING_DETAILS), "clarification as missing_details"),
    # a plan that goes on gathers before the next plan
    (at.REASON, E.CALLS_AND_PLANS, {}, Context(), "branches, then interim_results"),
    (at.REASON, E.CALLS, {}, Context(), "branches, then results"),
    (at.REASON, E.CALLS, {}, Context(process_count=LIMITS.process_count), "end best by process_count_limit"),
]
SWARM = [
    # a swarm that fails falls back to one search
    (at.PLAN, E.FAILED, {}, Context(), "search"),
    (at.SYNTHESIZE, E.NOTHING, {}, Context(), "search"),
    (at.SYNTHESIZE, E.FAILED, {}, Context(), "search"),
    # a risky plan and missing facts pause; a denial ends with what is there
    (at.PLAN, E.NEEDS_APPROVAL, {}, Context(), "pause approval, then approved_plan"),
    (at.GATHER, E.NEEDS_INPUT, {}, Context(), "pause information, then given_facts"),
    (at.APPROVED_PLAN, E.DENIED, {}, Context(), "synthesize"),
    (at.RESUMED_WORK, E.DENIED, {}, Context(), "synthesize"),
    # at most two further plans, also where the judge asks for one
    (at.LEDGER, E.AGAIN, {Counter.RESEARCH: 1}, Context(), "plan"),
    (at.LEDGER, E.AGAIN, {Counter.RESEARCH: LIMITS.research}, Context(), "synthesize"),
    (at.JUDGE, E.REGENERATE, {}, Context(), "synthesize"),
    (at.JUDGE, E.RESEARCH, {}, Context(), "plan"),
    (at.JUDGE, E.RESEARCH, {Counter.RESEARCH: LIMITS.research}, BEST, "end best answered by research_limit"),
    # a further round that adds nothing to the results is not written
    (at.LEDGER, E.NOTHING_NEW, {Counter.RESEARCH: 1}, BEST, "end best answered by no_better_answer"),
    (at.LEDGER, E.NOTHING_NEW, {Counter.RESEARCH: 1}, BEST_WITHOUT_CALLS, "end best answered by budget_model_calls"),
    # an exhausted budget ends in an answer from what was found
    (at.LEDGER, E.BEGINS, {}, NO_CALLS, "synthesize by budget_model_calls"),
    # a branch at its limit or without budget returns what it found; a failed worker is sent again
    (at.WORK, E.CALLS, {Counter.STEP: LIMITS.steps}, BRANCH, "return as insufficient_context by step_limit"),
    (at.WORK, E.CALLS, {}, BRANCH_WITHOUT_MONEY, "return by budget_usd"),
    (at.WORK, E.FAILED, {}, BRANCH, "work"),
    (at.WORK, E.FAILED, {Counter.RETRY: LIMITS.retries}, BRANCH, "return as insufficient_context by retry_limit"),
    (at.WORK, E.FAILED, {}, BRANCH_WITHOUT_MONEY, "return by budget_usd"),
]
SPECIALISTS: list[tuple[Stage, E, Counters, Context, str]] = [
    # a review has no further sources: its answer is not written a third time
    (at.QUALITY, E.RESEARCH, {}, BEST, "synthesis"),
    (at.SYNTHESIS, E.NOTHING_NEW, {Counter.RESEARCH: 2}, BEST, "end best answered by no_better_answer"),
]
AUTO: list[tuple[Stage, E, Counters, Context, str]] = [
    (at.TRIAGE, E.SEARCHES, {}, Context(), "search"),
    (at.TRIAGE, E.USES_TOOLS, {}, Context(), "reason"),
    (at.TRIAGE, E.USES_SWARM, {}, Context(), "plan"),
    (at.TRIAGE, E.FAILED, {}, Context(), "search"),
]
# fmt: on
EXAMPLES = [
    pytest.param(flow, *row, id=f"{flow.name}-{row[0].name}-{row[1]}-{row[4]}")
    for flow, rows in (
        (SEARCH_FLOW, SEARCH),
        (TOOLS_FLOW, TOOLS),
        (SWARM_FLOW, SWARM),
        (SPECIALISTS_FLOW, SPECIALISTS),
        (AUTO_FLOW, AUTO),
    )
    for row in rows
]


@pytest.mark.parametrize(("flow", "stage", "event", "counters", "facts", "decision"), EXAMPLES)
def test_every_example_of_a_decision_holds(
    flow: Flow, stage: Stage, event: E, counters: Counters, facts: Context, decision: str
) -> None:
    assert describe(decide(flow, stage, event, {**counters}, LIMITS, facts)) == decision


@pytest.mark.parametrize(
    ("flow", "stage", "event", "counter"),
    [
        (SEARCH_FLOW, at.QUALITY, E.RESEARCH, Counter.RESEARCH),
        (TOOLS_FLOW, at.LOOP_JUDGE, E.RESEARCH, Counter.ITERATION),
    ],
)
def test_a_loop_is_counted(flow: Flow, stage: Stage, event: E, counter: Counter) -> None:
    first = decide(flow, stage, event, {}, LIMITS, Context())

    assert first.counters == {counter: 1}
    assert decide(flow, stage, event, first.counters, LIMITS, Context()).counters == {counter: 2}


@pytest.mark.parametrize(
    ("flow", "stage", "event"),
    [
        (TOOLS_FLOW, at.REASON, E.FAILED),
        (TOOLS_FLOW, at.RESULTS, E.FAILED),
        (TOOLS_FLOW, at.REFLECT, E.NOTHING),
        (SWARM_FLOW, at.PLAN, E.FAILED),
        (SWARM_FLOW, at.SYNTHESIZE, E.NOTHING),
        (SWARM_FLOW, at.SYNTHESIZE, E.FAILED),
    ],
)
def test_a_failed_way_falls_back_to_a_search_and_is_marked(
    flow: Flow, stage: Stage, event: E
) -> None:
    assert flow.row(stage, event).is_fallback
    assert not SWARM_FLOW.row(at.PLAN, E.SEARCHES).is_fallback


def test_tools_run_at_once_within_their_own_setting() -> None:
    act = TOOLS_FLOW.row(at.REASON, E.CALLS).go_to
    assert isinstance(act, Scatter)

    assert Limits().find_at_once(act) == 3
    assert Limits(parallel_tools=1, parallel_workers=9).find_at_once(act) == 1


def test_workers_run_at_once_within_the_setting_and_enough_of_them_suffice() -> None:
    work = SWARM_FLOW.row(at.LEDGER, E.BEGINS).go_to
    assert isinstance(work, Scatter)

    assert LIMITS.find_at_once(work) == 5
    assert LIMITS.find_needed(work, 10) == 10
    assert Limits(enough_share=0.75).find_needed(work, 10) == 8


def test_a_worker_at_a_limit_returns_its_results_so_far() -> None:
    used_up: Counters = {Counter.STEP: LIMITS.steps}
    for counters, facts in ((used_up, BRANCH), ({}, BRANCH_WITHOUT_MONEY)):
        [action] = decide(SWARM_FLOW, at.WORK, E.CALLS, counters, LIMITS, facts).actions
        assert isinstance(action, Return)
        assert "worker_outputs" in action.attributes


def take(sequence: tuple[str, ...], place: int, counters: Counters | None = None) -> Decision:
    """Decide in a flow in which search, response and quality follow in a planned order."""
    planned = Next((at.SEARCH, at.RESPONSE, at.QUALITY), at.CLARIFICATION)
    rows = [
        Row(stage, E.DONE, planned, Counter.SEQUENCE, at.CLARIFICATION)
        for stage in (at.GUARDRAILS, at.SEARCH, at.RESPONSE, at.QUALITY)
    ]
    facts = Context(sequence=sequence, sequence_place=place)
    known = counters if counters is not None else {}
    flow = Flow("sequence", 1, rows)
    return decide(flow, at.GUARDRAILS, E.DONE, known, Limits(sequence=3), facts)


def test_the_next_of_a_sequence_follows_and_is_counted() -> None:
    first = take(("search", "response"), 0)
    second = take(("search", "response"), 1, first.counters)
    done = take(("search", "response"), 2, second.counters)

    assert [describe(decision) for decision in (first, second, done)] == [
        "search",
        "response",
        "clarification",
    ]
    assert [first.sequence_place, second.sequence_place, done.sequence_place] == [1, 2, 2]
    assert done.counters == {Counter.SEQUENCE: 3}


def test_a_name_that_the_flow_does_not_allow_is_skipped_and_noted() -> None:
    decision = take(("lang", "delete_everything", "quality"), 0)

    assert describe(decision) == "quality"
    assert decision.skipped == ("lang", "delete_everything")
    assert decision.sequence_place == 3


def test_a_sequence_that_never_ends_is_ended_by_its_counter() -> None:
    decision = take(("search",) * 50, 3, {Counter.SEQUENCE: 3})

    assert describe(decision) == "clarification as insufficient_context by sequence_limit"


def test_a_flow_without_a_planned_sequence_goes_beyond_its_end() -> None:
    assert describe(take((), 0)) == "clarification"
