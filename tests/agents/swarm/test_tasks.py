"""The ledger of tasks: legal moves, retries, and history."""

import pytest

from agents.swarm.swarm_plan import MOVES, IllegalMove, TaskLedger, TaskState, UnknownName
from tests.agents.swarm.builders import make_worker

WORKERS = (make_worker("a"), make_worker("b", depends_on=("a",)))


def open_ledger() -> TaskLedger:
    return TaskLedger().follow(WORKERS)


def test_there_are_seven_states_and_the_moves_of_each_are_known() -> None:
    assert len(TaskState) == 7
    assert set(MOVES) == set(TaskState)


@pytest.mark.parametrize(
    ("before", "after"),
    [(before, after) for before in TaskState for after in TaskState if before is not after],
)
def test_a_move_is_legal_or_refused_and_a_refused_one_changes_nothing(
    before: TaskState, after: TaskState
) -> None:
    ledger = open_ledger()
    task = ledger.find("a").model_copy(update={"state": before, "attempts": 1})
    ledger = ledger.model_copy(update={"tasks": (task,)})

    if after in MOVES[before]:
        assert ledger.move("a", after).find("a").state is after
    else:
        with pytest.raises(IllegalMove, match=f"found {after.value}"):
            ledger.move("a", after)


def test_a_failed_task_is_begun_again_three_times_and_then_done_without() -> None:
    ledger = open_ledger()

    for _ in range(4):
        assert [task_info.task_id for task_info in ledger.list_ready()] == ["a"]
        ledger = ledger.move("a", TaskState.IN_PROGRESS)
        ledger = ledger.move("a", TaskState.FAILED, reason="timeout")

    assert ledger.find("a").attempts == 4
    with pytest.raises(IllegalMove, match="at most 3 retries"):
        ledger.move("a", TaskState.IN_PROGRESS)
    assert [task_info.task_id for task_info in ledger.list_ready()] == ["b"]


def test_an_answer_of_the_user_is_no_second_attempt() -> None:
    ledger = open_ledger()

    for state in (TaskState.IN_PROGRESS, TaskState.AWAITING_INPUT, TaskState.IN_PROGRESS):
        ledger = ledger.move("a", state)

    assert ledger.find("a").attempts == 1


def test_the_history_has_every_move_once_even_if_it_is_made_twice() -> None:
    ledger = open_ledger().move("a", TaskState.IN_PROGRESS, at="2025-01-01T00:00:00Z")

    again = ledger.move("a", TaskState.IN_PROGRESS)

    assert again is ledger
    assert [(move.before, move.after) for move in again.history] == [
        (TaskState.PENDING, TaskState.IN_PROGRESS)
    ]


def test_a_ledger_has_one_task_for_each_worker_of_the_plan_and_refuses_unknown_ones() -> None:
    replaced = (WORKERS[0], make_worker("b_again"))
    assert [task.task_id for task in open_ledger().follow(WORKERS).tasks] == ["a", "b"]
    assert [task.task_id for task in open_ledger().follow(replaced).tasks] == ["a", "b_again"]
    with pytest.raises(UnknownName, match="found 'z'"):
        open_ledger().find("z")
