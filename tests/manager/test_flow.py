from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.roster import AGENTS
from envelope.conversation import ClarificationReason
from envelope.envelope import Envelope
from envelope.role import Role
from envelope.tool_loop import WayName
from manager.flow import Counter, Flow, FlowError, Row, Stage, StageEvent, find_flow
from manager.flows import FLOWS, NEWEST, stages
from manager.flows.search_flow import SEARCH_FLOW
from manager.machine import Context, Counters, Decision, End, Limits, Send, decide

FLOW = SEARCH_FLOW
LIMITS = Limits()


def test_a_table_that_answers_an_outcome_twice_is_refused() -> None:
    row = Row(stages.LANG, StageEvent.DONE, stages.TRANSLATION)

    with pytest.raises(FlowError, match="found two"):
        Flow("twice", 1, [row, row])


def test_two_stages_of_one_name_are_refused() -> None:
    other = Stage("lang", Role.LANG, stages.LANG.events, stages.LANG.classify)

    with pytest.raises(FlowError, match="one stage 'lang', found two"):
        Flow("twice", 1, [Row(stages.START, StageEvent.QUESTION, stages.LANG),
                          Row(other, StageEvent.DONE, stages.TRANSLATION)])  # fmt: skip


def test_an_answered_question_passes_the_first_rows_of_the_stages() -> None:
    path = FLOW.main_path

    assert (path[0], path[-1]) == (stages.START, stages.QUALITY)
    for stage, following in pairwise(path):
        assert any(row.after is stage and row.go_to is following for row in FLOW.rows)
    assert not {stages.COMMAND, stages.CLARIFICATION} & set(path)


def test_first_rows_that_form_a_cycle_are_not_a_main_path() -> None:
    there = Row(stages.START, StageEvent.QUESTION, stages.LANG)
    back = Row(stages.LANG, StageEvent.DONE, stages.LANG)

    with pytest.raises(FlowError, match="found 'lang' twice"):
        assert Flow("back", 1, [there, back]).main_path


def test_every_agent_has_a_stage_in_a_flow() -> None:
    served = {stage.role for flow in FLOWS.values() for stage in flow.stages.values()}

    assert served - {Role.MANAGER} == {spec.role for spec in AGENTS}


def test_every_way_has_a_flow() -> None:
    assert {way.value for way in WayName} <= set(NEWEST)


def test_an_envelope_finds_its_flow_by_name_and_version() -> None:
    accepted_earlier = Envelope.__dataclass_fields__["flow"].default

    assert find_flow(FLOWS, NEWEST["search"]) is SEARCH_FLOW
    assert find_flow(FLOWS, str(accepted_earlier)) is SEARCH_FLOW
    assert {flow.identifier for flow in FLOWS.values()} <= set(FLOWS)


def test_a_flow_of_a_newer_release_is_named_in_the_error() -> None:
    with pytest.raises(FlowError, match="found 'search@99': update this worker first"):
        find_flow(FLOWS, "search@99")


def test_a_stage_of_another_version_is_named_in_the_error() -> None:
    with pytest.raises(FlowError, match=f"a stage of the flow {FLOW.identifier}, found 'triage'"):
        FLOW.stage("triage")


def run(outcomes: list[int], facts: Context) -> tuple[int, Decision, Counters]:
    """Walk the flow, choosing each hop's outcome by the given numbers, until it ends."""
    stage, hops = FLOW.start, 0
    counters: Counters = {}
    choices = iter(outcomes)
    while True:
        possible = sorted(stage.events)
        did = possible[next(choices, 0) % len(possible)]
        decision = decide(FLOW, stage, did, counters, LIMITS, facts)
        counters, hops = decision.counters, hops + 1
        action = decision.actions[0]
        if isinstance(action, End):
            return hops, decision, counters
        assert isinstance(action, Send)
        stage = action.stage


STAGES = st.sampled_from(list(FLOW.stages.values()))
REASONS = st.one_of(st.none(), st.sampled_from(ClarificationReason))


@given(st.lists(st.integers(0, 50), max_size=200), st.booleans(), REASONS)
def test_every_run_ends_whatever_the_hops_bring(
    outcomes: list[int], best: bool, reason: ClarificationReason | None
) -> None:
    hops, decision, counters = run(outcomes, Context(has_best_answer=best, reason=reason))

    assert hops <= LIMITS.process_count
    assert isinstance(decision.actions[-1], End)
    assert all(counters.get(counter, 0) <= LIMITS.of(counter) for counter in Counter)


@given(STAGES, st.data())
def test_a_decision_sends_to_one_role_or_ends(stage: Stage, data: st.DataObject) -> None:
    did = data.draw(st.sampled_from(sorted(stage.events)))
    counters = data.draw(st.dictionaries(st.sampled_from(Counter), st.integers(0, 5)))
    facts = Context(
        process_count=data.draw(st.integers(0, 100)),
        total_seconds=data.draw(st.floats(0, 200)),
        remaining_seconds=data.draw(st.floats(0, 200)),
        has_best_answer=data.draw(st.booleans()),
        reason=data.draw(REASONS),
    )

    decision = decide(FLOW, stage, did, {**counters}, LIMITS, facts)

    assert len(decision.actions) == 1
    assert isinstance(decision.actions[0], Send | End)
    over = facts.process_count >= LIMITS.process_count or facts.remaining_seconds <= 1
    assert not (over and isinstance(decision.actions[0], Send))
