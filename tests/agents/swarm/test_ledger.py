"""After a round the ledger knows every end: well, failed, late, or waiting for the user."""

from typing import Any

import pytest
from pydantic import JsonValue

from agents.swarm.ledger import (
    COMPLETED,
    BranchReport,
    LedgerAgent,
    Reads,
    SwarmProgress,
    Writes,
    begin_tasks,
    list_waiting,
    note_round,
    settle_round,
)
from agents.swarm.swarm_plan import SwarmPlan, TaskLedger, TaskState, WorkerPlan
from agents.swarm.workers import WorkerOutput, WorkerStatus, dump_outputs
from envelope.outcome import Wrote
from envelope.swarm import LedgerStep
from tests.agents.swarm.builders import make_output, make_passage, make_swarm_plan, make_worker

DONE, FAILED = BranchReport(status="completed"), BranchReport(status="failed", reason="killed")
MISSING, ASKS = BranchReport(status="missing"), BranchReport(status="needs_input")


def begin(*names: str, later: tuple[WorkerPlan, ...] = ()) -> TaskLedger:
    workers = [make_worker(name) for name in names]
    ledger = TaskLedger().follow(workers)
    return begin_tasks(ledger, ledger.list_ready(), most=32)[0].follow((*workers, *later))


def test_every_end_of_a_branch_has_its_state() -> None:
    outputs = {name: make_output(name, make_passage(name, "text")) for name in "ab"}
    outputs["b"] = make_output("b", status=WorkerStatus.FAILED, error="no tool worked")
    reports = {"a": DONE, "b": DONE, "c": FAILED, "d": ASKS}

    settled = settle_round(begin("a", "b", "c", "d"), reports, outputs)

    states = {task.task_id: (task.state, task.error) for task in settled.ledger.tasks}
    assert states == {
        "a": (TaskState.COMPLETED, ""),
        "b": (TaskState.FAILED, "no tool worked"),
        "c": (TaskState.FAILED, "killed"),
        "d": (TaskState.AWAITING_INPUT, ""),
    }
    assert [task_info.task_id for task_info in list_waiting(settled.ledger)] == ["d"]
    assert not settled.is_late


def test_after_the_time_limit_no_task_is_started_again() -> None:
    ledger = begin("a", "b", later=(make_worker("c", depends_on=("a",)),))

    settled = settle_round(ledger, {"a": FAILED, "b": MISSING}, {})

    assert settled.is_late
    assert {task.state for task in settled.ledger.tasks} == {TaskState.SKIPPED}
    assert not settled.ledger.list_ready()


def test_a_worker_that_used_up_its_retries_has_failed_also_when_others_are_late() -> None:
    failed = BranchReport(status="failed", reason="killed", attempts=9)

    settled = settle_round(begin("a", "b"), {"a": failed, "b": MISSING}, {})

    task = settled.ledger.find("a")
    assert (task.state, task.attempts, task.error) == (TaskState.FAILED, 4, "killed")
    assert settled.ledger.find("b").state is TaskState.SKIPPED


def test_a_worker_that_was_started_again_and_came_too_late_says_that_it_was_too_late() -> None:
    late = BranchReport(status="missing", attempts=2)

    task = settle_round(begin("a"), {"a": late}, {}).ledger.find("a")

    assert (task.state, task.attempts) == (TaskState.SKIPPED, 2)
    assert task.error == "there was no result in time"


def test_retries_of_a_branch_are_moves_of_its_task() -> None:
    outputs = {"a": make_output("a", make_passage("a", "text"))}

    settled = settle_round(begin("a"), {"a": BranchReport(status="completed", attempts=2)}, outputs)

    assert settled.ledger.find("a").attempts == 2
    assert [move.after.value for move in settled.ledger.history] == [
        "in_progress", "failed", "in_progress", "completed",
    ]  # fmt: skip


def test_with_enough_others_a_missing_one_is_left_and_the_work_goes_on() -> None:
    outputs = {name: make_output(name, make_passage(name, "text")) for name in "ab"}
    ledger = begin("a", "b", "c", later=(make_worker("d", depends_on=("a",)),))

    settled = settle_round(ledger, {"a": DONE, "b": DONE, "c": MISSING}, outputs, enough_share=0.6)

    assert not settled.is_late
    assert [task_info.task_id for task_info in settled.ledger.list_ready()] == ["d"]


def test_a_task_without_a_branch_failed() -> None:
    settled = settle_round(begin("a"), {}, {})

    assert settled.ledger.find("a").state is TaskState.FAILED


def test_no_more_tasks_begin_than_allowed() -> None:
    ledger = TaskLedger().follow([make_worker(str(number)) for number in range(5)])

    begun, ids = begin_tasks(ledger, ledger.list_ready(), most=2)

    assert ids == ("0", "1")
    assert begun.count()[TaskState.IN_PROGRESS] == 2


FOUND = {"w": make_output("w", make_passage("a", "A fact."))}


def test_progress_lowers_the_stall_counter() -> None:
    stalled = note_round(SwarmProgress(), {})

    assert stalled.stalls == 1
    assert note_round(stalled, FOUND).stalls == 0


CHAIN = make_swarm_plan(
    make_worker("a"), make_worker("b", depends_on=("a",)), make_worker("c", depends_on=("b",))
)
"""Workers of which each waits for the one before it."""


async def run_chain(*finders: str) -> Writes:
    """Run the workers one after the other; only some find a passage. Return the last decision."""
    plan = CHAIN.model_dump(mode="json")
    outputs = dict[str, WorkerOutput]()
    reads = Reads(swarm_plan=plan)
    while True:
        outcome = await LedgerAgent().work(reads)
        assert isinstance(outcome, Wrote)
        writes = outcome.writes
        if writes.ledger_step is not LedgerStep.WORK:
            return writes
        [name] = writes.ready_tasks
        found = (make_passage(name, "text"),) if name in finders else ()
        outputs[name] = make_output(name, *found)
        reads = Reads(
            swarm_plan=plan,
            task_ledger=writes.task_ledger,
            swarm_progress=writes.swarm_progress,
            branches=({"key": name, "status": "completed"},),
            worker_outputs=dump_outputs(outputs.values()),
        )


@pytest.mark.parametrize(
    ("finders", "step"),
    [
        ("", LedgerStep.REPLAN),
        ("a", LedgerStep.REPLAN),
        ("ab", LedgerStep.FINISH),
        ("ac", LedgerStep.FINISH),
        ("abc", LedgerStep.FINISH),
    ],
)
async def test_a_swarm_that_stalls_before_half_of_its_tasks_found_something_plans_again(
    finders: str, step: LedgerStep
) -> None:
    writes = await run_chain(*finders)

    assert writes.ledger_step is step
    assert step is LedgerStep.FINISH or "stalls" not in writes.swarm_progress


FACT = make_output("w", make_passage("a", "A fact."), text="It is so [a#0].")
NO_REPLY = make_output("v", status=WorkerStatus.FAILED, error="too_slow: no answer within 30 s")
AGAIN = "v_again"
PLAN = make_swarm_plan(make_worker("w"), make_worker("v"))
FURTHER = make_swarm_plan(make_worker("w"), make_worker("v", id=AGAIN))


async def run_twice(after: WorkerOutput, facts: dict[str, JsonValue]) -> list[LedgerStep]:
    """Return the steps of a round in which one worker fails, and of a second one in which it ends
    like `after`, with these facts of the user.
    """
    steps: list[LedgerStep] = []
    known: dict[str, Any] = {}
    before = (FACT, NO_REPLY)
    rounds: tuple[tuple[SwarmPlan, tuple[WorkerOutput, ...], dict[str, JsonValue]], ...] = (
        (PLAN, (), {}),
        (PLAN, before, {}),
        (FURTHER, before, {}),
        (FURTHER, (*before, after), facts),
    )
    for plan, outputs, given in rounds:
        reads = Reads(
            swarm_plan=plan.model_dump(mode="json"),
            worker_outputs=dump_outputs(outputs),
            collected_info=given,
            **known,
        )
        outcome = await LedgerAgent(retries=0).work(reads)
        assert isinstance(outcome, Wrote)
        writes = outcome.writes
        steps.append(writes.ledger_step)
        known = {
            "task_ledger": writes.task_ledger,
            "swarm_progress": writes.swarm_progress,
            "branches": [{"key": name, "status": COMPLETED} for name in writes.ready_tasks],
        }
    return steps


@pytest.mark.parametrize(
    ("after", "facts", "step"),
    [
        (make_output(AGAIN, status=WorkerStatus.FAILED, error="too_slow: 31 s"), {}, "nothing_new"),
        (make_output(AGAIN, make_passage("b", "Another fact.")), {}, "finish"),
        (make_output(AGAIN, make_passage("a", "A fact."), text="It is [a#0]."), {}, "finish"),
        (make_output(AGAIN), {}, "finish"),
        (make_output(AGAIN, status=WorkerStatus.FAILED), {"seats": 12}, "finish"),
    ],
    ids=["fails again", "new passage", "new text", "found nothing", "new fact of the user"],
)
async def test_an_answer_is_written_again_only_from_results_that_a_further_round_changed(
    after: WorkerOutput, facts: dict[str, JsonValue], step: str
) -> None:
    assert await run_twice(after, facts) == ["work", "finish", "work", step]
