"""The tasks of a divided question at its end."""

import pytest
from pydantic import JsonValue

from agents.swarm.swarm_plan import TaskState
from envelope.swarm import cancel_open, list_open, list_tasks, read_cancelled

Fields = dict[str, JsonValue]


def make_task(state: TaskState) -> Fields:
    # A ledger leaves out the state of a task that has not begun.
    named: Fields = {} if state is TaskState.PENDING else {"state": state.value}
    return {"task_id": state.value, "title": state.value, **named}


EVERY = [make_task(state) for state in TaskState]


@pytest.mark.parametrize("state", TaskState)
def test_at_the_end_of_a_question_its_open_tasks_are_cancelled(state: TaskState) -> None:
    open_states = {TaskState.PENDING, TaskState.IN_PROGRESS, TaskState.AWAITING_INPUT}

    [after] = cancel_open([make_task(state)])

    assert after["state"] == ("cancelled" if state in open_states else state.value)


def test_seven_states_are_known_and_three_of_them_are_open() -> None:
    ledger: Fields = {"task_ledger": {"tasks": [*EVERY]}}

    assert len(list_tasks(ledger)) == 7
    assert list_open(list_tasks(ledger)) == ["pending", "in_progress", "awaiting_input"]
    assert list_tasks({}) == []


def test_a_worker_that_returned_after_the_ledger_was_written_is_completed() -> None:
    tasks: list[JsonValue] = [
        {"task_id": name, "title": name, "state": "in_progress"} for name in ("a", "b", "c")
    ]
    completed: Fields = {"worker_outputs": {"a": {"worker_id": "a"}}}
    calls: Fields = {"worker_outputs": {"b": {"worker_id": "b"}}, "tool_calls": [{}]}
    failed: Fields = {"worker_outputs": {"c": {"worker_id": "c", "status": "failed"}}}
    runs: list[Fields] = [{"writes": {"task_ledger": {"tasks": tasks}}}, {"writes": "cut"}]
    runs += [{"writes": writes} for writes in (completed, calls, failed)]

    after = read_cancelled(runs)

    assert [task["state"] for task in after] == ["completed", "cancelled", "cancelled"]
    assert read_cancelled([{"writes": {"response": "It is."}}]) == []
