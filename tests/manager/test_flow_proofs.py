import pytest

from envelope.role import Role
from manager.classify import classify_done
from manager.flow import (
    Counter,
    Ending,
    Final,
    Flow,
    Next,
    PauseFor,
    Return,
    Row,
    Scatter,
    Stage,
    StageEvent,
    make_gather_stage,
    make_resume_stage,
)
from manager.flow_proofs import find_flow_problems, find_reached
from manager.flows import FLOWS
from tests.support.branching_flow import BRANCHING_FLOW

E = StageEvent
ENDS = Final(Ending.ANSWER)


def make_stage(name: str, *events: StageEvent) -> Stage:
    return Stage(name, Role.SEARCH, frozenset(events or (E.DONE, E.FAILED)), classify_done)


A, B = make_stage("a"), make_stage("b")


EVERY = {**FLOWS, "branching": BRANCHING_FLOW}


@pytest.mark.parametrize("flow", EVERY.values(), ids=list(EVERY))
def test_every_flow_is_total_reachable_counted_and_ends(flow: Flow) -> None:
    assert find_flow_problems(flow) == []


@pytest.mark.parametrize("flow", FLOWS.values(), ids=list(FLOWS))
def test_an_answer_is_written_only_within_the_scope_or_in_place_of_the_last_one(flow: Flow) -> None:
    before = find_reached(
        flow,
        flow.start,
        lambda row: () if row.did in {E.WITHIN, E.REPHRASE} else row.targets,
    )

    assert not {stage.role for stage in before} & {Role.RESPONSE, Role.SYNTHESIS, Role.SYNTHESIZE}


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([Row(A, E.DONE, ENDS)], "a.failed has no row"),
        ([Row(A, E.DONE, ENDS), Row(A, E.FAILED, ENDS), Row(A, E.ASKS, ENDS)],
         "a.needs_clarification cannot happen"),
        ([Row(make_stage("s", E.DONE), E.DONE, ENDS)], "s has no row for failure"),
        ([Row(A, E.DONE, ENDS), Row(A, E.FAILED, ENDS), Row(B, E.DONE, ENDS),
          Row(B, E.FAILED, ENDS)], "b is never reached"),
        ([Row(A, E.DONE, B), Row(A, E.FAILED, ENDS), Row(B, E.DONE, A), Row(B, E.FAILED, ENDS)],
         "a is on a cycle that no counter ends"),
        ([Row(A, E.DONE, A, Counter.RESEARCH, A), Row(A, E.FAILED, ENDS)],
         "a is on a cycle that no counter ends"),
        ([Row(A, E.DONE, A, Counter.RESEARCH, B), Row(A, E.FAILED, ENDS),
          Row(B, E.DONE, B, Counter.RESEARCH, B), Row(B, E.FAILED, B)], "b never leads to an end"),
    ],
)  # fmt: skip
def test_a_broken_flow_is_named_with_its_stage(rows: list[Row], problem: str) -> None:
    assert problem in find_flow_problems(Flow("broken", 1, rows))


G, C = make_gather_stage("g"), make_stage("c")
SCATTER = Scatter(C, G, lambda _payload: ())
GATHERS = [
    Row(G, E.GATHERED, ENDS), Row(G, E.MORE, SCATTER, Counter.WAVE, ENDS), Row(G, E.FAILED, ENDS),
]  # fmt: skip
RETURNS = [Row(C, E.DONE, Return()), Row(C, E.FAILED, Return())]
BEGINS = [Row(A, E.DONE, SCATTER), Row(A, E.FAILED, ENDS)]


def test_a_scatter_whose_branches_return_is_sound() -> None:
    assert find_flow_problems(Flow("sound", 1, [*BEGINS, *GATHERS, *RETURNS])) == []


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([*BEGINS, *GATHERS, Row(C, E.DONE, ENDS), RETURNS[1]],
         "c.completed ends the message in a branch"),
        ([BEGINS[0], Row(A, E.FAILED, Return()), *GATHERS, *RETURNS],
         "a.failed returns outside of a branch"),
        ([*BEGINS, *GATHERS, Row(C, E.DONE, A), RETURNS[1]], "a is in the trunk and in a branch"),
        ([*BEGINS, *GATHERS[:2], Row(G, E.FAILED, SCATTER, Counter.WAVE, ENDS), *RETURNS],
         "g.failed scatters again although no branch can begin"),
        ([Row(A, E.DONE, Scatter(C, B, lambda _payload: ())), BEGINS[1], *RETURNS,
          Row(B, E.DONE, ENDS), Row(B, E.FAILED, ENDS)],
         "a.completed scatters, and b does not gather"),
        ([*BEGINS, *GATHERS[:1], Row(G, E.MORE, SCATTER), GATHERS[2], *RETURNS],
         "g is on a cycle that no counter ends"),
        ([*BEGINS, *GATHERS, Row(C, E.DONE, C, Counter.RESEARCH, C), Row(C, E.FAILED, C)],
         "c never leads to an end"),
        ([*BEGINS, *GATHERS, Row(C, E.DONE, Scatter(C, make_gather_stage("h"), lambda _p: ())),
          RETURNS[1]], "branches are nested more than 3 deep"),
    ],
)  # fmt: skip
def test_a_broken_scatter_is_named_with_its_row(rows: list[Row], problem: str) -> None:
    assert problem in find_flow_problems(Flow("broken", 1, rows))


R = make_resume_stage("r")
PAUSES = PauseFor("approval", R)
RESUMES = [Row(R, E.REPLIED, ENDS), Row(R, E.DENIED, ENDS), Row(R, E.FAILED, ENDS)]


def test_a_pause_that_resumes_is_sound() -> None:
    rows = [Row(A, E.DONE, PAUSES), Row(A, E.FAILED, ENDS), *RESUMES]

    assert find_flow_problems(Flow("sound", 1, rows)) == []


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([Row(A, E.DONE, PauseFor("approval", B)), Row(A, E.FAILED, ENDS), Row(B, E.DONE, ENDS),
          Row(B, E.FAILED, ENDS)], "a.completed pauses, and b does not resume"),
        ([Row(A, E.DONE, PAUSES), Row(A, E.FAILED, R), *RESUMES],
         "a.failed leads to r without a pause"),
        ([Row(A, E.DONE, PAUSES), Row(A, E.FAILED, ENDS), Row(R, E.REPLIED, A), *RESUMES[1:]],
         "a is on a cycle that no counter ends"),
        ([*BEGINS, *GATHERS, Row(C, E.DONE, PAUSES), RETURNS[1], *RESUMES],
         "c.completed pauses in a branch"),
        ([*BEGINS, *GATHERS[:2], Row(G, E.FAILED, PAUSES), *RETURNS, *RESUMES],
         "g.failed pauses although no branch can begin"),
    ],
)  # fmt: skip
def test_a_pause_that_breaks_a_rule_is_named(rows: list[Row], problem: str) -> None:
    assert problem in find_flow_problems(Flow("broken", 1, rows))


def test_a_sequence_has_an_edge_to_every_stage_that_it_may_name() -> None:
    planned = Next((A, B), C)
    ends = [Row(stage, E.FAILED, ENDS) for stage in (A, B, C)]
    uncounted = [Row(A, E.DONE, planned), Row(B, E.DONE, planned), Row(C, E.DONE, ENDS), *ends]
    counted = [
        Row(A, E.DONE, planned, Counter.SEQUENCE, C),
        Row(B, E.DONE, planned, Counter.SEQUENCE, C),
        *uncounted[2:],
    ]

    problems = find_flow_problems(Flow("uncounted", 1, uncounted))

    assert "b is on a cycle that no counter ends" in problems
    assert find_flow_problems(Flow("counted", 1, counted)) == []
