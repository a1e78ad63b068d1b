import pytest

from envelope.role import Role
from manager.classify import classify_done
from manager.flow import Counter, Ending, Final, Flow, Row, Stage, StageEvent
from manager.flow_proofs import find_flow_problems
from manager.flows import FLOWS

E = StageEvent
ENDS = Final(Ending.ANSWER)


def make_stage(name: str, *events: StageEvent) -> Stage:
    return Stage(name, Role.SEARCH, frozenset(events or (E.DONE, E.FAILED)), classify_done)


A, B = make_stage("a"), make_stage("b")


@pytest.mark.parametrize("flow", FLOWS.values(), ids=list(FLOWS))
def test_every_flow_is_total_reachable_counted_and_ends(flow: Flow) -> None:
    assert find_flow_problems(flow) == []


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([Row(A, E.DONE, ENDS)], "a.failed has no row"),
        ([Row(A, E.DONE, ENDS), Row(A, E.FAILED, ENDS), Row(A, E.ASKS, ENDS)],
         "a.needs_clarification cannot happen"),
        ([Row(make_stage("s", E.DONE), E.DONE, ENDS)], "s does not know failure"),
        ([Row(A, E.DONE, ENDS), Row(A, E.FAILED, ENDS), Row(B, E.DONE, ENDS),
          Row(B, E.FAILED, ENDS)], "b is never reached"),
        ([Row(A, E.DONE, B), Row(A, E.FAILED, ENDS), Row(B, E.DONE, A), Row(B, E.FAILED, ENDS)],
         "a is on a cycle that no counter ends"),
        ([Row(A, E.DONE, A, Counter.RESEARCH, A), Row(A, E.FAILED, ENDS)],
         "a is on a cycle that no counter ends"),
        ([Row(A, E.DONE, A, Counter.RESEARCH, B), Row(A, E.FAILED, ENDS),
          Row(B, E.DONE, B, Counter.RESEARCH, B), Row(B, E.FAILED, B)], "b leads to no end"),
    ],
)  # fmt: skip
def test_a_broken_flow_is_named_with_its_stage(rows: list[Row], problem: str) -> None:
    assert problem in find_flow_problems(Flow("broken", 1, rows))
