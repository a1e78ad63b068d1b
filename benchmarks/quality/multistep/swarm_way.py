"""The swarm without a model, in one process: what is listed, workers in waves, expansion."""

from agents.swarm.making import plan_listed
from agents.swarm.planning.plan import SwarmPlan
from agents.swarm.planning.plan_checks import arrange_workers
from agents.swarm.shown_passages import choose_shown
from agents.swarm.strategies.expansion import expand_plan
from agents.swarm.workers.output import WorkerOutput
from agents.swarm.workers.run_worker import run_worker
from agents.swarm.workers.worker_type import make_registry
from benchmarks.quality.multistep.ways import EvaluationParts, FoundPages
from knowledge.sections import document_of
from tools.catalog import make_builtin
from tools.executor import ToolExecutor


class SwarmWay:
    """Plans what a question lists, runs all workers, and gathers their passages."""

    def __init__(self, parts: EvaluationParts) -> None:
        self._registry = make_registry()
        self._executor = ToolExecutor(make_builtin(parts))

    async def find(self, text: str, k: int) -> FoundPages:
        plan = plan_listed(text, most_passages=k)
        outputs: dict[str, WorkerOutput] = {}
        rounds = await self._run_waves(plan, outputs)
        expanded = expand_plan(plan, outputs)
        if expanded is not plan:
            rounds += await self._run_waves(expanded, outputs)
        usable = {name: one for name, one in outputs.items() if one.is_usable}
        shown = choose_shown(expanded, usable, k)
        return FoundPages(
            document_ids=tuple(document_of(one.citation.chunk_id) for one in shown),
            calls=sum(one.calls for one in outputs.values()),
            rounds=rounds,
        )

    async def _run_waves(self, plan: SwarmPlan, outputs: dict[str, WorkerOutput]) -> int:
        """Run the workers that have no output yet; return the number of waves."""
        waves = arrange_workers([one for one in plan.workers if one.id not in outputs])
        for wave in waves:
            for worker in wave:
                outputs[worker.id] = await run_worker(worker, self._executor, self._registry)
        return len(waves)
