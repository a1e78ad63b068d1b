"""A question that is open during an update ends by the rows with which it began."""

from dataclasses import replace

import pytest

from envelope.role import Role
from manager.classify import classify_done
from manager.flow import Ending, Final, Flow, Row, Stage
from manager.flow import StageEvent as E
from manager.flow_proofs import find_flow_problems
from manager.flows import EVERY, FLOWS
from manager.flows.released import Table, describe_flow, number_flow, read_released, restore_flows


def make_stage(name: str, *further: E) -> Stage:
    return Stage(name, Role.SEARCH, frozenset({E.DONE, E.FAILED, *further}), classify_done)


A, B, C, END = make_stage("a"), make_stage("b"), make_stage("c"), Final(Ending.ANSWER)
RELEASED = [
    Row(A, E.DONE, B), Row(A, E.FAILED, END), Row(B, E.DONE, C), Row(B, E.FAILED, END),
    Row(C, E.DONE, END), Row(C, E.FAILED, END),
]  # fmt: skip
TABLES: dict[str, Table] = {"flow": describe_flow(Flow("flow", 3, RELEASED))}


def change(rows: list[Row]) -> tuple[Flow, Flow]:
    """Return a changed flow, and the released one that is served beside it."""
    changed = number_flow(Flow("flow", 1, rows), TABLES)
    return changed, restore_flows([changed], TABLES)["flow@3"]


def test_a_flow_has_the_released_version_until_its_rows_change() -> None:
    same = number_flow(Flow("flow", 1, RELEASED), TABLES)

    assert same.version == 3
    assert restore_flows([same], TABLES) == {}
    assert number_flow(Flow("new", 1, RELEASED), TABLES).version == 1


def test_a_new_stage_is_in_the_next_version_alone() -> None:
    added = make_stage("added")
    ways = [Row(added, E.DONE, B), Row(added, E.FAILED, B)]

    changed, released = change([replace(RELEASED[0], go_to=added), *RELEASED[1:], *ways])

    assert (changed.version, changed.row(A, E.DONE).go_to) == (4, added)
    assert (released.version, released.row(A, E.DONE).go_to) == (3, B)
    assert added.name not in released.stages


def test_an_event_unknown_to_the_release_uses_the_rows_of_the_current_flow() -> None:
    wider, further = make_stage("c", E.AGAIN), make_stage("further")
    rows = [replace(row, after=wider) if row.after is C else row for row in RELEASED]
    rows[2] = replace(rows[2], go_to=wider)
    ways = [Row(further, E.DONE, END), Row(further, E.FAILED, END)]

    _, released = change([*rows, Row(wider, E.AGAIN, further), *ways])

    assert released.row(wider, E.AGAIN).go_to is further
    assert find_flow_problems(released) == []


def test_a_stage_that_is_gone_still_works_for_questions_that_began_with_it() -> None:
    _, released = change(
        [replace(RELEASED[0], go_to=C), *(r for r in RELEASED[1:] if r.after is not B)]
    )

    assert released.row(A, E.DONE).go_to is released.stage("b")
    assert (released.stage("b").role, released.stage("b").events) == (B.role, B.events)
    assert find_flow_problems(released) == []


@pytest.mark.parametrize("flow", EVERY, ids=lambda flow: flow.name)
def test_every_kind_of_target_is_restored_as_it_was(flow: Flow) -> None:
    table = describe_flow(flow)

    [restored] = restore_flows([Flow(flow.name, 0, flow.rows)], {flow.name: table}).values()

    assert describe_flow(restored) == table
    assert restored.row(restored.start, E.QUESTION).go_to is flow.row(flow.start, E.QUESTION).go_to


def test_every_released_flow_is_served() -> None:
    assert {f"{name}@{table['version']}" for name, table in read_released().items()} <= set(FLOWS)
