"""The plan of a swarm: its workers, the facts that it needs from the user, and its limits.

Tasks have seven states, legal transitions between them, and a history of all transitions. A ledger
of tasks is a value: each transition returns a new ledger, so that it can be stored in an envelope,
and a transition that is repeated after a crash has an effect only once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum

from pydantic import BaseModel, Field, JsonValue

from tools.dialogue import MOST_CALLS

MOST_WORKERS = 32
"""Maximum number of workers in a plan; further items share workers."""
MOST_STEPS = 6
"""Maximum number of messages from a worker's model; the last one contains its result."""
MOST_RETRIES = 3
MOST_REASON = 300


class TaskState(StrEnum):
    """The states of a task.

    A failed task is started again while it has retries left. `SKIPPED` means that the answer is
    written without the task, because enough others have completed or a dependency failed.
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
"""The states that may follow each state."""


class SwarmError(Exception):
    """Root of the errors of this package."""


class PlanRejected(SwarmError):  # noqa: N818 - names a state
    """The plan cannot be executed; `problems` contains a sentence for each fault."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


class IllegalMove(SwarmError):  # noqa: N818 - as above
    """The ledger does not allow this transition; nothing has changed."""


class UnknownName(SwarmError):  # noqa: N818 - as above
    """The name is not in a registry."""


class WorkerPlan(BaseModel, frozen=True, extra="ignore"):
    """A worker with its brief.

    `role` is a type in the worker registry, and `specialization` is an aspect of this worker, such
    as a part or a perspective. `subject` is the table item that it looks up. `passages` limits its
    passages.
    """

    id: str = Field(min_length=1, max_length=120)
    role: str = Field(min_length=1, max_length=60)
    specialization: str = Field(default="", max_length=300)
    objective: str = Field(min_length=1, max_length=4_000)
    output: str = Field(default="", max_length=1_000)
    tools: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    priority: int = Field(default=5, ge=0, le=10, description="10 is the most urgent")
    subject: str = Field(default="", max_length=300)
    passages: int = Field(default=10, ge=1, le=30)


class SwarmPlan(BaseModel, frozen=True, extra="ignore"):
    """A question divided among workers.

    If there are `items` and `criteria`, the answer is a table with each criterion for each item.
    `notes` describes changes to the plan, with the reasons.
    """

    question: str
    strategy: str
    workers: tuple[WorkerPlan, ...]
    items: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    reasoning: str = ""
    notes: tuple[str, ...] = ()

    def find_worker(self, worker_id: str) -> WorkerPlan | None:
        """Return the worker with this id, or None."""
        return next((worker for worker in self.workers if worker.id == worker_id), None)


class FieldType(StrEnum):
    """The type of a field's value."""

    TEXT = "text"
    NUMBER = "number"
    DATE = "date"
    CHOICE = "choice"
    YES_NO = "yes_no"


class RequiredInfoField(BaseModel, frozen=True, extra="ignore"):
    """A fact that a worker needs.

    `default` is used if the field is not required and the user does not give a value.
    """

    name: str = Field(min_length=1, max_length=60, pattern=r"^[a-z][a-z0-9_]*$")
    question: str = Field(min_length=1, max_length=300)
    type: FieldType = FieldType.TEXT
    choices: tuple[str, ...] = ()
    required: bool = True
    default: JsonValue = None


class TypedQuestion(BaseModel, frozen=True, extra="ignore"):
    """A question to the user, with the type of its answer and the workers that wait for it."""

    id: str
    text: str
    field: RequiredInfoField
    suggestions: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()


class PlanCost(BaseModel, frozen=True, extra="ignore"):
    """Upper bounds for a plan: the number of model and tool calls, and the cost of priced tools in
    micro-USD.
    """

    workers: int
    model_calls: int
    tool_calls: int
    tool_micros: int | None = None
    model_usd: Decimal | None = None


class TaskMove(BaseModel, frozen=True, extra="ignore"):
    """A transition; `at` is the time stated by the broker, in ISO 8601 format."""

    task_id: str
    before: TaskState
    after: TaskState
    reason: str = ""
    at: str = ""


class TaskInfo(BaseModel, frozen=True, extra="ignore"):
    """A task; `attempts` counts how often it was started."""

    task_id: str
    title: str
    depends_on: tuple[str, ...] = ()
    state: TaskState = TaskState.PENDING
    attempts: int = Field(default=0, ge=0)
    error: str = ""


class TaskLedger(BaseModel, frozen=True, extra="ignore"):
    """The tasks of a plan, in order, with the transitions that were made."""

    tasks: tuple[TaskInfo, ...] = ()
    history: tuple[TaskMove, ...] = ()
    most_retries: int = Field(default=MOST_RETRIES, ge=0)

    def find(self, task_id: str) -> TaskInfo:
        """Return a task; raises `UnknownName`."""
        info = next((task for task in self.tasks if task.task_id == task_id), None)
        if info is None:
            raise UnknownName(f"expected the id of a task, found {task_id[:80]!r}")
        return info

    def follow(self, workers: Iterable[WorkerPlan]) -> "TaskLedger":
        """Return the ledger with one task for each worker in a plan; new tasks are pending."""
        known = {task.task_id: task for task in self.tasks}
        tasks = tuple(
            known.get(worker.id)
            or TaskInfo(
                task_id=worker.id,
                title=(worker.specialization or worker.objective)[:200],
                depends_on=worker.depends_on,
            )
            for worker in workers
        )
        return self.model_copy(update={"tasks": tasks})

    def move(
        self, task_id: str, after: TaskState, *, reason: str = "", at: str = ""
    ) -> "TaskLedger":
        """Return the ledger after a transition; raises `IllegalMove`.

        A transition to the state that the task is already in changes nothing.
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
        has_no_result = after in (TaskState.FAILED, TaskState.SKIPPED)
        changed = task.model_copy(
            update={
                "state": after,
                "attempts": task.attempts + begun,
                "error": reason[:MOST_REASON] if has_no_result and reason else task.error,
            }
        )
        step = TaskMove(
            task_id=task_id, before=task.state, after=after, reason=reason[:MOST_REASON], at=at
        )
        tasks = tuple(
            changed if task_info.task_id == task_id else task_info for task_info in self.tasks
        )
        return self.model_copy(update={"tasks": tasks, "history": (*self.history, step)})

    def note_retries(self, task_id: str, count: int, *, reason: str) -> "TaskLedger":
        """Return the ledger with the retries that the branch of a running task has made.

        Retries beyond `most_retries` are not counted.
        """
        ledger, free = self, self.most_retries + 1 - self.find(task_id).attempts
        for _ in range(min(count, free)):
            ledger = ledger.move(task_id, TaskState.FAILED, reason=reason)
            ledger = ledger.move(task_id, TaskState.IN_PROGRESS)
        return ledger

    def list_ready(self) -> tuple[TaskInfo, ...]:
        """Return tasks that can start, because all of their dependencies have ended, successfully
        or not.
        """
        ended = {task.task_id for task in self.tasks if self.has_ended(task)}
        waiting = (TaskState.PENDING, TaskState.FAILED)
        return tuple(
            task
            for task in self.tasks
            if task.state in waiting
            and task.task_id not in ended
            and all(other in ended for other in task.depends_on)
        )

    def has_ended(self, task: TaskInfo) -> bool:
        """Return whether a task has finally ended."""
        return not MOVES[task.state] or self._has_no_retries(task)

    def count(self) -> dict[TaskState, int]:
        """Return the number of tasks in each state."""
        counted = Counter(task.state for task in self.tasks)
        return {state: counted[state] for state in TaskState}

    def _has_no_retries(self, task: TaskInfo) -> bool:
        return task.state is TaskState.FAILED and task.attempts > self.most_retries


def name_worker(number: int, role: str) -> str:
    """Return the id of a worker, such as `worker_0_research`."""
    return f"worker_{number}_{role}"


def measure_cost(
    plan: SwarmPlan,
    prices: Mapping[str, int | None] | None = None,
    *,
    call_usd: Decimal | None = None,
) -> PlanCost:
    """Return upper bounds; `prices` contains the maximum price of a call to each tool, or None if
    it is unknown.

    `call_usd` is the estimated price of one call to a worker's model.
    """
    known = prices or {}
    workers = len(plan.workers)
    calls = workers * (MOST_STEPS - 1) * MOST_CALLS
    named = {tool for worker in plan.workers for tool in worker.tools}
    highest = max((known.get(tool) or 0 for tool in named), default=0)
    model_calls = workers * MOST_STEPS + 1
    return PlanCost(
        workers=workers,
        model_calls=model_calls,
        model_usd=None if call_usd is None else model_calls * call_usd,
        tool_calls=calls,
        tool_micros=calls * highest or None,
    )
