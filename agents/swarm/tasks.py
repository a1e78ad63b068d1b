"""The ledger of tasks: seven states, the legal moves between them, and every move as history.

A ledger is a value: each move returns a new ledger, so that an envelope can carry it and a move
that was made twice after a crash has one effect.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum

from pydantic import BaseModel, Field

from agents.swarm.errors import IllegalMove, UnknownName
from agents.swarm.swarm_plan import WorkerPlan

MOST_RETRIES = 3
MOST_REASON = 300


class TaskState(StrEnum):
    """The states of a task.

    A failed task is begun again as long as it has retries. `SKIPPED`: the answer is written without
    it, because enough others have completed or a dependency failed.
    """

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    AWAITING_INPUT = "awaiting_input"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


_OPEN_ENDS = frozenset({TaskState.CANCELLED, TaskState.SKIPPED})
MOVES: Mapping[TaskState, frozenset[TaskState]] = {
    TaskState.PENDING: frozenset({TaskState.IN_PROGRESS}) | _OPEN_ENDS,
    TaskState.IN_PROGRESS: frozenset(
        {TaskState.AWAITING_INPUT, TaskState.COMPLETED, TaskState.FAILED}
    )
    | _OPEN_ENDS,
    TaskState.AWAITING_INPUT: frozenset({TaskState.IN_PROGRESS}) | _OPEN_ENDS,
    TaskState.FAILED: frozenset({TaskState.IN_PROGRESS}) | _OPEN_ENDS,
    TaskState.COMPLETED: frozenset(),
    TaskState.CANCELLED: frozenset(),
    TaskState.SKIPPED: frozenset(),
}
"""The states that a state may be followed by."""


class TaskMove(BaseModel, frozen=True, extra="forbid"):
    """One move; `at` is the time that the broker stated, ISO 8601."""

    task_id: str
    before: TaskState
    after: TaskState
    reason: str = ""
    at: str = ""


class TaskInfo(BaseModel, frozen=True, extra="forbid"):
    """One task; `attempts` counts how often it was begun."""

    task_id: str
    title: str
    depends_on: tuple[str, ...] = ()
    state: TaskState = TaskState.PENDING
    attempts: int = Field(default=0, ge=0)
    error: str = ""


class TaskLedger(BaseModel, frozen=True, extra="forbid"):
    """The tasks of a plan in its order, with the moves that were made."""

    tasks: tuple[TaskInfo, ...] = ()
    history: tuple[TaskMove, ...] = ()
    most_retries: int = Field(default=MOST_RETRIES, ge=0)

    def find(self, task_id: str) -> TaskInfo:
        """Return a task; raises `UnknownName`."""
        found = next((one for one in self.tasks if one.task_id == task_id), None)
        if found is None:
            raise UnknownName(f"expected the id of a task, found {task_id[:80]!r}")
        return found

    def add(self, workers: Iterable[WorkerPlan]) -> "TaskLedger":
        """Return the ledger with a pending task for each worker that has none yet."""
        known = {one.task_id for one in self.tasks}
        new = [
            TaskInfo(
                task_id=one.id,
                title=(one.specialization or one.objective)[:200],
                depends_on=one.depends_on,
            )
            for one in workers
            if one.id not in known
        ]
        return self.model_copy(update={"tasks": (*self.tasks, *new)})

    def move(
        self, task_id: str, after: TaskState, *, reason: str = "", at: str = ""
    ) -> "TaskLedger":
        """Return the ledger after a move; raises `IllegalMove`.

        A move to the state that the task is in already changes nothing.
        """
        task = self.find(task_id)
        if task.state is after:
            return self
        if after not in MOVES[task.state]:
            allowed = ", ".join(sorted(MOVES[task.state])) or "no state"
            raise IllegalMove(
                f"expected {allowed} after {task.state.value} of {task_id[:80]!r}, "
                f"found {after.value}"
            )
        begun = after is TaskState.IN_PROGRESS and task.state is not TaskState.AWAITING_INPUT
        if begun and self._has_no_retries(task):
            raise IllegalMove(
                f"expected at most {self.most_retries} retries of {task_id[:80]!r}, "
                f"found {task.attempts} attempts"
            )
        changed = task.model_copy(
            update={
                "state": after,
                "attempts": task.attempts + begun,
                "error": reason[:MOST_REASON] if after is TaskState.FAILED else task.error,
            }
        )
        step = TaskMove(
            task_id=task_id, before=task.state, after=after, reason=reason[:MOST_REASON], at=at
        )
        tasks = tuple(changed if one.task_id == task_id else one for one in self.tasks)
        return self.model_copy(update={"tasks": tasks, "history": (*self.history, step)})

    def note_retries(self, task_id: str, count: int, *, reason: str) -> "TaskLedger":
        """Return the ledger with the retries that the branch of a task in progress has made.

        Those beyond `most_retries` are not counted.
        """
        ledger, free = self, self.most_retries + 1 - self.find(task_id).attempts
        for _ in range(min(count, free)):
            ledger = ledger.move(task_id, TaskState.FAILED, reason=reason)
            ledger = ledger.move(task_id, TaskState.IN_PROGRESS)
        return ledger

    def list_ready(self) -> tuple[TaskInfo, ...]:
        """Return tasks that may begin: all they depend on has ended, whether well or not."""
        ended = {one.task_id for one in self.tasks if self.has_ended(one)}
        waiting = (TaskState.PENDING, TaskState.FAILED)
        return tuple(
            one
            for one in self.tasks
            if one.state in waiting
            and one.task_id not in ended
            and all(other in ended for other in one.depends_on)
        )

    def has_ended(self, task: TaskInfo) -> bool:
        """Return whether a task has ended for good."""
        return not MOVES[task.state] or self._has_no_retries(task)

    def count(self) -> dict[TaskState, int]:
        """Return the number of tasks in each state."""
        counted = Counter(one.state for one in self.tasks)
        return {state: counted[state] for state in TaskState}

    def is_met(self, at_least: int | None = None) -> bool:
        """Return whether a join may fire: `at_least` tasks completed, or all have ended."""
        counted = self.count()
        if at_least is not None and counted[TaskState.COMPLETED] >= at_least:
            return True
        return all(self.has_ended(one) for one in self.tasks)

    def _has_no_retries(self, task: TaskInfo) -> bool:
        return task.state is TaskState.FAILED and task.attempts > self.most_retries
