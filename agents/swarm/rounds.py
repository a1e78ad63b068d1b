"""Brings the ledger up to date after a round of branches, and says which tasks begin next."""

from collections.abc import Mapping, Sequence
from math import ceil

from pydantic import BaseModel

from agents.swarm.tasks import TaskInfo, TaskLedger, TaskState
from agents.swarm.workers.output import WorkerOutput, WorkerStatus

COMPLETED, NEEDS_INPUT, MISSING = "completed", "needs_input", "missing"
IN_TIME, ENOUGH = "no result came in time", "enough others have completed"
NO_TIME = "no time is left to begin"
LEFT = "the conversation went on with another topic"
RETRIED = "the worker failed and began again"


class BranchReport(BaseModel, frozen=True):
    """How the branch of a task ended, why it failed, and how often it began."""

    status: str
    reason: str = ""
    attempts: int = 1

    @property
    def is_good(self) -> bool:
        """Whether the branch did all of its work."""
        return self.status == COMPLETED and not self.reason


class SettledRound(BaseModel, frozen=True):
    """The ledger after a round; `is_late`: the time of the round was over."""

    ledger: TaskLedger
    is_late: bool = False


def settle_round(
    ledger: TaskLedger,
    branches: Mapping[str, BranchReport],
    outputs: Mapping[str, WorkerOutput],
    *,
    enough_share: float = 1.0,
    is_left: bool = False,
) -> SettledRound:
    """Return the ledger with the ends of all tasks in progress.

    A branch that is missing is not begun again: its time is over, or enough others have completed.
    In the first case, tasks that have not begun are skipped, too. Where the conversation has left
    the question, everything that is open is cancelled.
    """
    running = [one for one in ledger.tasks if one.state is TaskState.IN_PROGRESS]
    done = sum(one.task_id in branches and branches[one.task_id].is_good for one in running)
    has_enough = enough_share < 1 and done >= ceil(enough_share * len(running))
    is_late = False
    for task in running:
        report = branches.get(task.task_id, BranchReport(status="failed", reason="not begun"))
        ledger = ledger.note_retries(task.task_id, report.attempts - 1, reason=RETRIED)
        after, reason = _judge_end(report, outputs.get(task.task_id))
        if report.status == MISSING and is_left:
            after, reason = TaskState.CANCELLED, LEFT
        elif report.status == MISSING:
            is_late = is_late or not has_enough
            reason = ENOUGH if has_enough else IN_TIME
        ledger = ledger.move(task.task_id, after, reason=reason)
    if is_left:
        return SettledRound(ledger=_close_open(ledger, TaskState.CANCELLED, LEFT), is_late=True)
    if is_late:
        ledger = _close_open(ledger, TaskState.SKIPPED, NO_TIME)
    return SettledRound(ledger=ledger, is_late=is_late)


def begin_tasks(
    ledger: TaskLedger, tasks: Sequence[TaskInfo], *, most: int
) -> tuple[TaskLedger, tuple[str, ...]]:
    """Return the ledger with the first `most` of these tasks in progress, and their ids."""
    ids = tuple(one.task_id for one in tasks[:most])
    for task_id in ids:
        ledger = ledger.move(task_id, TaskState.IN_PROGRESS)
    return ledger, ids


def list_waiting(ledger: TaskLedger) -> tuple[TaskInfo, ...]:
    """Return the tasks that wait for the user."""
    return tuple(one for one in ledger.tasks if one.state is TaskState.AWAITING_INPUT)


def describe_progress(ledger: TaskLedger) -> tuple[int, int]:
    """Return how many tasks are completed, and how many there are."""
    return ledger.count()[TaskState.COMPLETED], len(ledger.tasks)


def _judge_end(report: BranchReport, output: WorkerOutput | None) -> tuple[TaskState, str]:
    if report.status == MISSING:
        return TaskState.SKIPPED, ""
    if report.status == NEEDS_INPUT:
        return TaskState.AWAITING_INPUT, ""
    if report.status != COMPLETED:
        return TaskState.FAILED, report.reason or "the worker failed"
    if output is None or output.status is WorkerStatus.FAILED:
        return TaskState.FAILED, "" if output is None else output.error
    return TaskState.COMPLETED, ""


def _close_open(ledger: TaskLedger, after: TaskState, reason: str) -> TaskLedger:
    closed = {TaskState.PENDING, TaskState.FAILED}
    if after is TaskState.CANCELLED:
        closed.add(TaskState.AWAITING_INPUT)
    for task in ledger.tasks:
        if task.state in closed and not ledger.has_ended(task):
            ledger = ledger.move(task.task_id, after, reason=reason)
    return ledger
