"""A swarm whose plan and workers are scripted; ledger, facts and synthesis are the real ones."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, JsonValue

from agents.agent import Agent
from agents.swarm.gather import GatherAgent
from agents.swarm.ledger import LedgerAgent
from agents.swarm.swarm_plan import SwarmPlan, WorkerPlan
from agents.swarm.synthesize import SynthesizeAgent
from agents.swarm.workers import WorkerOutput, WorkerTask, dump_outputs
from envelope.outcome import Wrote
from envelope.role import Role
from envelope.run import Run
from envelope.swarm import PlanStep
from llm.missing_model import MissingModel
from manager.flow import Flow, Scatter
from manager.flows.stages import WORKED
from manager.flows.swarm import SWARM_FLOW
from tests.support.scripted_model import ScriptedModel
from tests.support.worker_harness import FixedTexts
from tools.calls import CitedPassage
from tools.passages import FoundPassage

Act = Callable[[str, int, Run], Awaitable[Any]]
"""Receives the worker and how often it began; returns an outcome, or None for the usual one."""


class PlannerReads(BaseModel):
    """The words of the question, of which `workers=8` says how many work on it."""

    text: str = ""
    canonical_question: str = ""


class PlannerWrites(BaseModel):
    """A plan that begins at once."""

    plan_step: PlanStep
    routing: dict[str, JsonValue] = {}
    swarm_plan: dict[str, JsonValue]


class CountingPlanner(Agent[PlannerReads, PlannerWrites]):
    """Plans as many workers as the test or the text says."""

    role = Role.PLAN
    reads = PlannerReads
    writes = PlannerWrites

    def __init__(self, workers: int = 4) -> None:
        self._workers = workers

    async def work(self, reads: PlannerReads) -> Any:
        words = reads.text.split()
        named = (int(word.partition("=")[2]) for word in words if word.startswith("workers="))
        count = next(named, self._workers)
        plan = SwarmPlan(
            question="How is it?",
            strategy="intelligent",
            workers=tuple(
                WorkerPlan(id=f"w{number}", role="research", objective=f"Value of part{number}?")
                for number in range(count)
            ),
        )
        return Wrote(
            PlannerWrites(plan_step=PlanStep.WORK, swarm_plan=plan.model_dump(mode="json"))
        )


class WorkerReads(BaseModel):
    """The task of a branch."""

    worker_task: dict[str, JsonValue]


class WorkerWrites(BaseModel):
    """What the worker found."""

    worker_outputs: dict[str, JsonValue]


class ActingWorker(Agent[WorkerReads, WorkerWrites]):
    """Does what the test says, then finds one passage; `began` counts how often each began."""

    role = Role.WORK
    reads = WorkerReads
    writes = WorkerWrites

    def __init__(self, act: Act | None = None) -> None:
        self._act = act
        self.began: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()

    async def work(self, reads: WorkerReads) -> Any:
        name = WorkerTask.model_validate(reads.worker_task).worker.id
        self.began[name] += 1
        acted = None if self._act is None else await self._act(name, self.began[name], self.run)
        if acted is not None:
            return acted
        self.ended[name] += 1
        return Wrote(WorkerWrites(worker_outputs=dump_outputs([make_found(name)])))


def make_found(name: str) -> WorkerOutput:
    """Return what a worker found: one passage that answers its brief."""
    citation = CitedPassage(chunk_id=f"{name}#0", document_id=name, title=name, score=1.0)
    text = f"The value of part{name[1:]} is {name[1:]} units."
    return WorkerOutput(worker_id=name, passages=(FoundPassage(citation=citation, text=text),))


def make_swarm(
    worker: ActingWorker, *, workers: int = 4, retries: int = 3, enough: float = 1.0
) -> Sequence[Agent[Any, Any]]:
    """Return the agents of a swarm."""
    texts = FixedTexts()
    return [
        CountingPlanner(workers),
        GatherAgent(MissingModel()),
        LedgerAgent(most_workers=256, retries=retries, enough=enough),
        worker,
        SynthesizeAgent(model=ScriptedModel([]), texts=texts, uses_model=False),
    ]


def make_hurried_flow(join_seconds: float) -> Flow:
    """Return the flow of the swarm, whose rounds end after `join_seconds` at most."""
    rows = []
    for row in SWARM_FLOW.rows:
        work = row.go_to
        if isinstance(work, Scatter) and work.gather is WORKED:
            hurried = replace(work, join=replace(work.join, seconds=join_seconds, at_once=256))
            row = replace(row, go_to=hurried)
        rows.append(row)
    return Flow(SWARM_FLOW.name, SWARM_FLOW.version, rows)
