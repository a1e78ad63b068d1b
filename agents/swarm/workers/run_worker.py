"""Runs one worker without a model in one process, for evaluations; the flow makes it hops."""

from dataclasses import replace

from agents.swarm.planning.plan import WorkerPlan
from agents.swarm.workers.output import WorkerOutput, write_output
from agents.swarm.workers.plain_work import plan_worker_searches
from agents.swarm.workers.worker_type import WorkerRegistry, open_worker
from llm.conversation import ModelMessage
from tools.calls import ToolCall, ToolCaller
from tools.dialogue import Dialogue, execute_calls
from tools.executor import ToolExecutor


async def run_worker(
    worker: WorkerPlan, executor: ToolExecutor, registry: WorkerRegistry
) -> WorkerOutput:
    """Return what a worker finds by plain searches."""
    caller = ToolCaller(agent=worker.id, allowed=frozenset(worker.tools))
    dialogue = Dialogue(open_worker(worker, registry.find(worker.role), ()))
    while calls := plan_worker_searches(worker, dialogue):
        made = [
            ToolCall(call_id=one.call_id, tool=one.name, arguments=one.arguments) for one in calls
        ]
        found = await execute_calls(executor, made, caller)
        dialogue = replace(
            dialogue,
            messages=(*dialogue.messages, ModelMessage(calls=calls)),
            results={**dialogue.results, **{one.call_id: one for one in found}},
        )
    return write_output(worker, dialogue.ordered_results)
