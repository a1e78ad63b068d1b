"""Runs one worker, or all workers of a plan, in one process: for evaluations and for tests.

The flow makes each step a separate hop; it uses `open_worker` and `write_output` directly.
"""

from collections.abc import Sequence

from llm.conversations.port import ConversationModel
from llm.conversations.turns import ToolDescription
from llm.errors import ModelError
from swarm.planning.plan import WorkerPlan
from swarm.planning.plan_cost import MOST_STEPS
from swarm.workers.output import WorkerOutput, fail_worker, write_output
from swarm.workers.worker_type import WorkerRegistry, open_worker
from tools.budget import ToolBudget
from tools.calls import ToolCaller
from tools.dialogue import Dialogue, DialogueLimits, run_dialogue
from tools.executor import ToolExecutor


class WorkerRunner:
    """Runs workers with a model, tools, and the rights of one person."""

    def __init__(
        self,
        model: ConversationModel,
        executor: ToolExecutor,
        tools: Sequence[ToolDescription],
        registry: WorkerRegistry,
    ) -> None:
        self._model = model
        self._executor = executor
        self._tools = tuple(tools)
        self._registry = registry

    async def run(
        self,
        worker: WorkerPlan,
        *,
        groups: tuple[str, ...] = (),
        language: str = "en",
        budget: ToolBudget | None = None,
    ) -> WorkerOutput:
        """Return what a worker found; a model that fails is the failure of its worker."""
        caller = ToolCaller(
            agent=worker.id, allowed=frozenset(worker.tools), groups=groups, language=language
        )
        opening = open_worker(worker, self._registry.find(worker.role), self._tools)
        dialogue = Dialogue(opening, limits=DialogueLimits(MOST_STEPS))
        try:
            ended, step = await run_dialogue(self._model, self._executor, dialogue, caller, budget)
        except ModelError as error:
            return fail_worker(worker, str(error))
        return write_output(worker, ended.ordered_results, step.message.text)
