from collections import Counter as Count
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelope.conversation import ClarificationReason
from envelope.role import Role
from manager.classify import POSSIBLE
from manager.flow import ASSISTANT, Counter, Final, Flow, FlowError, Row, Stage, StageEvent
from manager.machine import Context, Counters, Decision, End, Limits, Send, decide

FLOW = Flow(ASSISTANT)
LIMITS = Limits()


def targets(row: Row) -> set[Role]:
    return {target for target in (row.go_to, row.at_limit) if isinstance(target, Role)}


def test_every_stage_answers_every_outcome_it_can_have() -> None:
    possible = {(stage, did) for stage in Stage for did in POSSIBLE[stage]}

    assert {(row.after, row.did) for row in ASSISTANT} == possible


def test_every_stage_answers_failure() -> None:
    assert all(StageEvent.FAILED in POSSIBLE[stage] for stage in Stage)


def test_no_stage_answers_an_outcome_twice() -> None:
    pairs = Count((row.after, row.did) for row in ASSISTANT)

    assert [pair for pair, times in pairs.items() if times > 1] == []


def test_a_table_that_answers_an_outcome_twice_is_refused() -> None:
    row = Row(Stage.LANG, StageEvent.DONE, Role.TRANSLATION)

    with pytest.raises(FlowError, match="found two"):
        Flow([row, row])


def test_an_answered_question_passes_the_first_rows_of_the_stages() -> None:
    path = FLOW.main_path

    assert (path[0], path[-1]) == (Stage.START, Stage.QUALITY)
    for stage, following in pairwise(path):
        assert any(row.after is stage and row.go_to == Role(following.value) for row in ASSISTANT)
    assert not {Stage.COMMAND, Stage.CLARIFICATION} & set(path)


def test_first_rows_that_lead_back_are_no_path() -> None:
    there = Row(Stage.START, StageEvent.QUESTION, Role.LANG)
    back = Row(Stage.LANG, StageEvent.DONE, Role.LANG)

    with pytest.raises(FlowError, match="found 'lang' twice"):
        assert Flow([there, back]).main_path


def test_every_role_on_the_roster_is_reached_from_start() -> None:
    reached = {Stage.START}
    frontier = [Stage.START]
    while frontier:
        stage = frontier.pop()
        for row in ASSISTANT:
            fresh = {Stage(role.value) for role in targets(row)} - reached
            if row.after is stage and fresh:
                reached |= fresh
                frontier.extend(fresh)

    assert reached == set(Stage)
    assert {stage.value for stage in Stage if stage is not Stage.START} == {
        role.value for role in Role if role not in {Role.MANAGER, Role.INGESTION}
    }


def test_every_cycle_is_counted() -> None:
    uncounted: dict[Stage, set[Stage]] = {stage: set() for stage in Stage}
    for row in ASSISTANT:
        if row.counts is None and isinstance(row.go_to, Role):
            uncounted[row.after].add(Stage(row.go_to.value))
        # A row at its limit is taken without being counted, so it must not close a cycle either.
        if isinstance(row.at_limit, Role):
            uncounted[row.after].add(Stage(row.at_limit.value))

    def reaches(start: Stage, seen: frozenset[Stage] = frozenset()) -> set[Stage]:
        found: set[Stage] = set()
        for follower in uncounted[start] - seen:
            found |= {follower} | reaches(follower, seen | {follower})
        return found

    assert [stage for stage in Stage if stage in reaches(stage)] == []


def test_every_stage_can_come_to_an_end() -> None:
    ending = {row.after for row in ASSISTANT if isinstance(row.go_to, Final)}
    while True:
        more = {row.after for row in ASSISTANT if {Stage(r.value) for r in targets(row)} & ending}
        if more <= ending:
            break
        ending |= more

    assert ending == set(Stage)


def run(outcomes: list[int], facts: Context) -> tuple[int, Decision, Counters]:
    """Walk the flow, choosing each hop's outcome by the given numbers, until it ends."""
    stage, hops = Stage.START, 0
    counters: Counters = {}
    choices = iter(outcomes)
    while True:
        possible = sorted(POSSIBLE[stage])
        did = possible[next(choices, 0) % len(possible)]
        decision = decide(FLOW, stage, did, counters, LIMITS, facts)
        counters, hops = decision.counters, hops + 1
        action = decision.actions[0]
        if isinstance(action, End):
            return hops, decision, counters
        stage = Stage(action.role.value)


REASONS = st.one_of(st.none(), st.sampled_from(ClarificationReason))


@given(st.lists(st.integers(0, 50), max_size=200), st.booleans(), REASONS)
def test_every_run_ends_whatever_the_hops_bring(
    outcomes: list[int], best: bool, reason: ClarificationReason | None
) -> None:
    hops, decision, counters = run(outcomes, Context(has_best_answer=best, reason=reason))

    assert hops <= LIMITS.process_count
    assert isinstance(decision.actions[-1], End)
    assert all(counters.get(counter, 0) <= LIMITS.of(counter) for counter in Counter)


@given(st.sampled_from(Stage), st.data())
def test_a_decision_sends_to_one_role_or_ends(stage: Stage, data: st.DataObject) -> None:
    did = data.draw(st.sampled_from(sorted(POSSIBLE[stage])))
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
