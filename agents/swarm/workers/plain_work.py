"""The searches of a worker without a model."""

from agents.swarm.planning.plan import WorkerPlan
from llm.conversation import ToolUse
from tools.dialogue import Dialogue
from tools.plain_search import MOST_ROUNDS, plan_searches


def plan_worker_searches(
    worker: WorkerPlan, dialogue: Dialogue, objective: str = ""
) -> tuple[ToolUse, ...]:
    """Return the next searches; a worker of an item looks once, others go on along links."""
    return plan_searches(
        objective or worker.objective,
        dialogue,
        most_passages=worker.passages,
        most_rounds=1 if worker.subject else MOST_ROUNDS,
    )
