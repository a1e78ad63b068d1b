"""Keeps the record of all tasks: their ends, those that begin next, and when it is enough."""

from collections.abc import Mapping
from typing import Protocol, Self

from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts
from agents.swarm.planning.plan import SwarmPlan
from agents.swarm.progress import MOST_STALLS, SwarmProgress, note_round
from agents.swarm.rounds import BranchReport, begin_tasks, list_waiting, settle_round
from agents.swarm.strategies.expansion import expand_plan
from agents.swarm.tasks import TaskLedger
from agents.swarm.workers.output import WorkerOutput
from agents.swarm.workers.worker_task import read_outputs
from envelope.conversation import PauseQuestion
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.ways.swarm import TOPIC_CHANGE, LedgerStep

LEAST_SHARE = 0.5
"""With results of fewer tasks than this share, a stalled swarm plans again."""


class LedgerSettings(Protocol):
    """The settings that the agent needs."""

    @property
    def swarm_workers(self) -> int: ...

    @property
    def swarm_retries(self) -> int: ...

    @property
    def swarm_enough_share(self) -> float: ...


class Reads(BaseModel, frozen=True):
    """The plan, the ledger so far, and how the branches of the last round ended."""

    swarm_plan: dict[str, JsonValue]
    task_ledger: dict[str, JsonValue] = {}
    swarm_progress: dict[str, JsonValue] = {}
    branches: tuple[dict[str, JsonValue], ...] = ()
    worker_outputs: dict[str, JsonValue] = {}
    needs_input: tuple[PauseQuestion, ...] = ()
    termination_reason: str = ""


class Writes(BaseModel, frozen=True):
    """The ledger after the round, the tasks that begin, and what follows."""

    ledger_step: LedgerStep
    task_ledger: dict[str, JsonValue]
    swarm_plan: dict[str, JsonValue]
    swarm_progress: dict[str, JsonValue] = {}
    ready_tasks: tuple[str, ...] = ()


class LedgerAgent(Agent[Reads, Writes]):
    """Begins every task whose dependencies have ended, and failed ones again while they may.

    A worker that lists items adds a task for each of them. Tasks that wait for the user wait until
    nothing else can be done. A round that brings nothing stalls; two of them ask for a new plan.
    """

    role = Role.LEDGER
    reads = Reads
    writes = Writes

    def __init__(self, *, most_workers: int = 32, retries: int = 3, enough: float = 1.0) -> None:
        self._most_workers = most_workers
        self._retries = retries
        self._enough = enough

    @classmethod
    def make(cls, parts: AgentParts[LedgerSettings]) -> Self:
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
        settled = settle_round(
            ledger,
            _read_branches(reads),
            outputs,
            enough_share=self._enough,
            is_left=reads.termination_reason == TOPIC_CHANGE,
        )
        ledger = settled.ledger
        if not settled.is_late:
            plan = expand_plan(plan, outputs, most_workers=self._most_workers)
        ledger = ledger.add(plan.workers)
        resumed = [] if reads.needs_input else list(list_waiting(ledger))
        ready = [] if settled.is_late else [*ledger.list_ready(), *resumed]
        ledger, ids = begin_tasks(ledger, ready, most=self._most_workers)
        progress = SwarmProgress.model_validate(reads.swarm_progress)
        if has_run:
            progress = note_round(progress, outputs, is_open=bool(ids)).progress
        step = LedgerStep.WORK
        if not ids:
            may_replan = has_run and not settled.is_late
            step = _decide(reads, ledger, progress, outputs, may_replan=may_replan)
        return Wrote(
            Writes(
                ledger_step=step,
                task_ledger=ledger.model_dump(mode="json", exclude_defaults=True),
                swarm_plan=plan.model_dump(mode="json", exclude_defaults=True),
                swarm_progress=progress.model_dump(mode="json", exclude_defaults=True),
                ready_tasks=ids,
            )
        )


def _decide(
    reads: Reads,
    ledger: TaskLedger,
    progress: SwarmProgress,
    outputs: Mapping[str, WorkerOutput],
    *,
    may_replan: bool,
) -> LedgerStep:
    """Return what follows when no task can begin."""
    if reads.needs_input and list_waiting(ledger):
        asks_values = any(one.field is not None for one in reads.needs_input)
        return LedgerStep.ASK_INFORMATION if asks_values else LedgerStep.ASK_APPROVAL
    usable = sum(one.is_usable for one in outputs.values())
    is_stalled = progress.stalls >= MOST_STALLS and usable < LEAST_SHARE * len(ledger.tasks)
    return LedgerStep.REPLAN if may_replan and (is_stalled or not usable) else LedgerStep.FINISH


def _read_branches(reads: Reads) -> dict[str, BranchReport]:
    return {
        str(one.get("key")): BranchReport(
            status=str(one.get("status")),
            reason=str(one.get("reason") or ""),
            attempts=_read_attempts(one.get("attempts")),
        )
        for one in reads.branches
    }


def _read_attempts(value: JsonValue) -> int:
    return value if isinstance(value, int) else 1
