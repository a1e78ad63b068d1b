"""Keeps the state of all tasks, decides which ones to start, and when there are enough results."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Self

from pydantic import BaseModel, Field, JsonValue

from agents.agent import Agent, AgentParts, ProgressStep
from agents.swarm.material import list_unread
from agents.swarm.swarm_plan import (
    SwarmPlan,
    TaskInfo,
    TaskLedger,
    TaskState,
)
from agents.swarm.workers import WorkerOutput, WorkerStatus, read_ends, read_outputs
from envelope.conversation import PauseQuestion
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.swarm import TOPIC_CHANGE, LedgerStep

MOST_STALLS = 2
COMPLETED, NEEDS_INPUT, MISSING = "completed", "needs_input", "missing"
TOO_LATE, NOT_NEEDED = "there was no result in time", "enough others have completed"
NO_TIME = "there was no time left to start it"
LEFT = "the conversation went on with another topic"
RETRIED = "the worker failed and was started again"
LEAST_SHARE = 0.5
"""If fewer tasks than this share have results, a stalled swarm makes a new plan."""


class SwarmProgress(BaseModel, frozen=True, extra="ignore"):
    """The rounds of a swarm. A round without a new passage adds a stall, and one with a new passage
    removes one.
    """

    rounds: int = Field(default=0, ge=0)
    stalls: int = Field(default=0, ge=0)
    seen: tuple[str, ...] = Field(default=(), description="chunk ids of all rounds")
    written_from: str = Field(
        default="", description="a digest of the results that the last answer was written from"
    )


class BranchReport(BaseModel, frozen=True):
    """How the branch of a task ended, why it failed, and how often it was started."""

    status: str
    reason: str = ""
    attempts: int = 1

    @property
    def is_good(self) -> bool:
        """Whether the branch completed all of its work."""
        return self.status == COMPLETED and not self.reason


class SettledRound(BaseModel, frozen=True):
    """The ledger after a round; `is_late` is true if the time for the round had run out."""

    ledger: TaskLedger
    is_late: bool = False


class Reads(BaseModel, frozen=True):
    """The plan, the ledger so far, and how the branches in the last round ended."""

    swarm_plan: dict[str, JsonValue]
    task_ledger: dict[str, JsonValue] = {}
    swarm_progress: dict[str, JsonValue] = {}
    branches: tuple[dict[str, JsonValue], ...] = ()
    worker_outputs: dict[str, JsonValue] = {}
    collected_info: dict[str, JsonValue] = {}
    needs_input: tuple[PauseQuestion, ...] = ()
    termination_reason: str = ""


class Writes(BaseModel, frozen=True):
    """The ledger after the round, the tasks that start, and the next step."""

    ledger_step: LedgerStep
    task_ledger: dict[str, JsonValue]
    swarm_plan: dict[str, JsonValue]
    swarm_progress: dict[str, JsonValue] = {}
    ready_tasks: tuple[str, ...] = ()


class LedgerAgent(Agent[Reads, Writes]):
    """Starts every task whose dependencies have ended, and retries failed ones within their limit.

    Tasks that wait for the user wait until nothing else can run. If two stalls are left at the end
    and less than half of the tasks found something, a further plan looks for what is missing. A
    further round that adds nothing to the results of an answer ends without another answer.
    """

    role = Role.LEDGER
    step = ProgressStep.SEARCH
    reads = Reads
    writes = Writes

    def __init__(self, *, most_workers: int = 32, retries: int = 3, enough: float = 1.0) -> None:
        self._most_workers = most_workers
        self._retries = retries
        self._enough = enough

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        settings = parts.settings
        return cls(
            most_workers=settings.swarm_workers,
            retries=settings.swarm_retries,
            enough=settings.swarm_enough_share,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        plan = SwarmPlan.model_validate(reads.swarm_plan)
        outputs = read_outputs(reads.worker_outputs)
        ledger = TaskLedger(most_retries=self._retries)
        if reads.task_ledger:
            ledger = TaskLedger.model_validate(reads.task_ledger)
        has_run = bool(ledger.tasks)
        is_round = any(task.state is TaskState.IN_PROGRESS for task in ledger.tasks)
        settled = settle_round(
            ledger,
            _read_branches(reads),
            outputs,
            enough_share=self._enough,
            is_left=reads.termination_reason == TOPIC_CHANGE,
        )
        ledger = settled.ledger
        ledger = ledger.follow(plan.workers)
        resumed = [] if reads.needs_input else list(list_waiting(ledger))
        ready = [] if settled.is_late else [*ledger.list_ready(), *resumed]
        ledger, ids = begin_tasks(ledger, ready, most=self._most_workers)
        progress = SwarmProgress.model_validate(reads.swarm_progress)
        if is_round:
            progress = note_round(progress, outputs)
        step = LedgerStep.WORK
        if not ids:
            may_replan = has_run and not settled.is_late
            step = _decide(reads, ledger, progress, outputs, may_replan=may_replan)
            digest = _digest_results(reads, plan, ledger)
            if step in {LedgerStep.FINISH, LedgerStep.REPLAN} and digest == progress.written_from:
                step = LedgerStep.NOTHING_NEW
            elif step is LedgerStep.FINISH:
                progress = progress.model_copy(update={"written_from": digest})
        if step is LedgerStep.REPLAN:
            progress = progress.model_copy(update={"stalls": 0})
        return Wrote(
            Writes(
                ledger_step=step,
                task_ledger=ledger.model_dump(mode="json", exclude_defaults=True),
                swarm_plan=plan.model_dump(mode="json", exclude_defaults=True),
                swarm_progress=progress.model_dump(mode="json", exclude_defaults=True),
                ready_tasks=ids,
            )
        )


def note_round(progress: SwarmProgress, outputs: Mapping[str, WorkerOutput]) -> SwarmProgress:
    """Return the progress after a round in which workers have run."""
    shown = {
        passage.citation.chunk_id for output in outputs.values() for passage in output.passages
    }
    has_advanced = bool(shown - set(progress.seen))
    return progress.model_copy(
        update={
            "rounds": progress.rounds + 1,
            "stalls": max(0, progress.stalls - 1) if has_advanced else progress.stalls + 1,
            "seen": tuple(sorted(shown | set(progress.seen)))[:1_000],
        }
    )


def settle_round(
    ledger: TaskLedger,
    branches: Mapping[str, BranchReport],
    outputs: Mapping[str, WorkerOutput],
    *,
    enough_share: float = 1.0,
    is_left: bool = False,
) -> SettledRound:
    """Return the ledger with the results of all tasks in progress.

    A missing branch is not started again, because its time has run out or enough others have
    completed. In the first case, tasks that have not started are skipped as well. If the user
    changed the topic, all open tasks are cancelled.
    """
    running = [task_info for task_info in ledger.tasks if task_info.state is TaskState.IN_PROGRESS]
    done = sum(
        task_info.task_id in branches and branches[task_info.task_id].is_good
        for task_info in running
    )
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
            reason = NOT_NEEDED if has_enough else TOO_LATE
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
    ids = tuple(task.task_id for task in tasks[:most])
    for task_id in ids:
        ledger = ledger.move(task_id, TaskState.IN_PROGRESS)
    return ledger, ids


def list_waiting(ledger: TaskLedger) -> tuple[TaskInfo, ...]:
    """Return the tasks that are waiting for the user."""
    return tuple(task for task in ledger.tasks if task.state is TaskState.AWAITING_INPUT)


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


def _decide(
    reads: Reads,
    ledger: TaskLedger,
    progress: SwarmProgress,
    outputs: Mapping[str, WorkerOutput],
    *,
    may_replan: bool,
) -> LedgerStep:
    """Return the next step if no task can start.

    The only purpose of a further plan is to find missing facts; failed workers are not a reason for
    one.
    """
    if reads.needs_input and list_waiting(ledger):
        asks_values = any(question.field is not None for question in reads.needs_input)
        return LedgerStep.ASK_INFORMATION if asks_values else LedgerStep.ASK_APPROVAL
    usable = sum(output.is_usable for output in outputs.values())
    is_stalled = progress.stalls >= MOST_STALLS and usable < LEAST_SHARE * len(ledger.tasks)
    has_looked = any(task.state is TaskState.COMPLETED for task in ledger.tasks)
    is_missing = has_looked and (is_stalled or not usable)
    return LedgerStep.REPLAN if may_replan and is_missing else LedgerStep.FINISH


def _digest_results(reads: Reads, plan: SwarmPlan, ledger: TaskLedger) -> str:
    """Return a digest of everything that an answer can be written from.

    It covers the facts of the user, the passages and texts of the workers, and the parts that could
    not be looked up. Reasons of failures are omitted, because they may contain times.
    """
    ends = read_ends(reads.worker_outputs, ledger.model_dump(mode="json"), plan)
    own = [ends[worker.id] for worker in plan.workers if worker.id in ends]
    passages = {(each.citation.chunk_id, each.text) for output in own for each in output.passages}
    texts = {output.text for output in own if output.is_usable}
    results = (
        reads.collected_info,
        sorted(passages),
        sorted(texts),
        sorted(list_unread(plan, ends)),
    )
    return hashlib.sha256(json.dumps(results, sort_keys=True).encode()).hexdigest()[:32]


def _read_branches(reads: Reads) -> dict[str, BranchReport]:
    return {
        str(branch.get("key")): BranchReport(
            status=str(branch.get("status")),
            reason=str(branch.get("reason") or ""),
            attempts=_read_attempts(branch.get("attempts")),
        )
        for branch in reads.branches
    }


def _read_attempts(value: JsonValue) -> int:
    return value if isinstance(value, int) else 1
