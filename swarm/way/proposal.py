"""Makes a plan from the decision of a planner, whether rules or a model wrote it."""

from collections.abc import Mapping, Sequence

from llm.offline.criteria.read_criteria import read_set_question
from llm.tasks.plan_swarm import Output, PlannedWorker
from swarm.errors import PlanRejected
from swarm.planning.complexity import asks_for_each, measure_complexity
from swarm.planning.plan import DocumentReference, SwarmPlan, WorkerPlan, name_worker
from swarm.planning.plan_checks import accept_plan
from swarm.planning.routing import decide_route
from swarm.planning.tool_allocation import OfferedTool, allocate_plan
from swarm.strategies.document_comparison import read_comparison
from swarm.strategies.document_sets import select_collection
from swarm.strategies.strategy import StrategyContext, SwarmStrategy
from swarm.strategies.strategy_registry import make_plan
from swarm.way.identifying import find_bare_subject
from swarm.workers.worker_type import WorkerRegistry

_LONGEST_ID = 120
_COMPARES = "documents are compared by topics"


def propose_decision(question: str, *, documents: Sequence[DocumentReference] = ()) -> Output:
    """Return the decision of the rules; they leave the workers to the strategy.

    `documents` are those that the question may be about, if it is about several.
    """
    route = decide_route(question, documents=len(documents))
    compares = read_comparison(question, documents) is not None
    subject = "" if compares else find_bare_subject(question)
    is_simple = route.action == "simple_response" and not (compares or subject)
    named = f"only a subject is named: {subject}"[:500] if subject else route.reasoning
    return Output(
        reasoning=_COMPARES if compares else named,
        action="simple_response" if is_simple else "orchestrate",
        confidence=route.confidence,
        complexity=route.complexity_estimate,
    )


def read_plan(
    question: str,
    decision: Output,
    strategy: SwarmStrategy,
    context: StrategyContext,
    registry: WorkerRegistry,
    *,
    first: int = 0,
) -> SwarmPlan:
    """Return the checked plan of a decision; raises `PlanRejected`.

    Without workers in the decision, the strategy plans them. `first` is the number of the first
    worker: ids are unique over all plans of a question.
    """
    if not decision.workers:
        made = fit_single_worker(make_plan(question, strategy, context, registry), registry)
        return renumber(made, first) if first else made
    asked = read_set_question(question)
    documents = select_collection(asked, context.documents) if asked is not None else ()
    plan = SwarmPlan(
        question=question,
        strategy=strategy.name,
        complexity=measure_complexity(question, documents=len(documents)),
        workers=tuple(_read_workers(decision.workers, first)),
        reasoning=decision.reasoning[:500],
    )
    accepted = accept_plan(plan, roles=registry.names, most_workers=context.most_workers)
    return allocate_plan(accepted, registry.usual_tools, context.tools)


def fit_single_worker(plan: SwarmPlan, registry: WorkerRegistry) -> SwarmPlan:
    """Return the plan of a single worker with the type that the words of its brief speak for."""
    if len(plan.workers) != 1 or plan.criteria:
        return plan
    [worker] = plan.workers
    if not asks_for_each(plan.question):
        # Lists in passages become workers only where the question is about their items.
        worker = worker.model_copy(update={"lists_items": False})
    kind = registry.infer(worker.objective, default=worker.role)
    if kind.name == worker.role or kind.name == "data":
        return plan.model_copy(update={"workers": (worker,)})
    changed = worker.model_copy(
        update={
            "role": kind.name,
            "id": name_worker(0, kind.name),
            "tools": tuple(dict.fromkeys((*worker.tools, *kind.tools))),
        }
    )
    return plan.model_copy(update={"workers": (changed,)})


def renumber(plan: SwarmPlan, first: int) -> SwarmPlan:
    """Return a plan whose workers have numbers from `first`."""
    ids = {
        worker.id: name_worker(number, worker.role)
        for number, worker in enumerate(plan.workers, start=first)
    }
    workers = tuple(
        worker.model_copy(
            update={
                "id": ids[worker.id],
                "depends_on": tuple(ids[one] for one in worker.depends_on),
            }
        )
        for worker in plan.workers
    )
    return plan.model_copy(update={"workers": workers})


def extend_plan(plan: SwarmPlan, further: SwarmPlan) -> SwarmPlan:
    """Return a plan with the workers of a later one, which answer for the missing parts."""
    return plan.model_copy(
        update={
            "workers": (*plan.workers, *further.workers),
            "compared": tuple(dict.fromkeys((*plan.compared, *further.compared))),
            "notes": (*plan.notes, *further.notes),
        }
    )


def offer_tools(tools: Mapping[str, OfferedTool]) -> dict[str, str]:
    """Return the descriptions of tools by name, as a planner reads them."""
    return {name: tool.description for name, tool in tools.items()}


def _read_workers(planned: Sequence[PlannedWorker], first: int) -> list[WorkerPlan]:
    """Return workers with ids; raises `PlanRejected` for positions that do not exist."""
    ids = [name_worker(number, one.role)[:_LONGEST_ID] for number, one in enumerate(planned, first)]
    strange = [one for worker in planned for one in worker.depends_on if not 0 <= one < len(ids)]
    if strange:
        raise PlanRejected(
            [f"expected positions from 0 to {len(ids) - 1} in depends_on, found {strange[:5]}"]
        )
    if any(not one.objective.strip() for one in planned):
        raise PlanRejected(["expected an objective of every worker, found an empty one"])
    return [
        WorkerPlan(
            id=own,
            role=one.role[:60] or "research",
            specialization=one.specialization[:300],
            objective=one.objective[:4_000],
            output=one.output[:1_000],
            tools=one.tools,
            depends_on=tuple(ids[position] for position in one.depends_on),
            priority=one.priority,
        )
        for own, one in zip(ids, planned, strict=True)
    ]
