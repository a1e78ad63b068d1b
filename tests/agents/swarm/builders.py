"""Values for tests of the swarm."""

from agents.swarm.swarm_plan import SwarmPlan, WorkerPlan
from agents.swarm.workers import WorkerOutput, WorkerStatus
from tools.calls import CitedPassage
from tools.passages import FoundPassage


def make_worker(name: str, **changes: object) -> WorkerPlan:
    worker = WorkerPlan(id=name, role="research", objective=f"look up {name}")
    return worker.model_copy(update=changes)


def make_swarm_plan(
    *workers: WorkerPlan, question: str = "What is it?", **changes: object
) -> SwarmPlan:
    plan = SwarmPlan(
        question=question,
        strategy="intelligent",
        workers=workers,
    )
    return plan.model_copy(update=changes)


def make_passage(name: str, text: str, *, title: str = "", score: float = 1.0) -> FoundPassage:
    citation = CitedPassage(
        chunk_id=f"{name}#0", document_id=name, title=title or name, score=score
    )
    return FoundPassage(citation=citation, text=text)


def make_output(name: str, *passages: FoundPassage, **changes: object) -> WorkerOutput:
    output = WorkerOutput(worker_id=name, status=WorkerStatus.DONE, passages=passages)
    return output.model_copy(update=changes)
