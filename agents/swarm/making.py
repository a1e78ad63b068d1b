"""Makes a plan: from the decision of a model, or without one from what a question lists."""

from collections.abc import Mapping, Sequence

from agents.swarm.errors import PlanRejected
from agents.swarm.planning.plan import MOST_WORKERS, SwarmPlan, WorkerPlan, name_worker
from agents.swarm.planning.plan_checks import accept_plan
from agents.swarm.planning.tool_allocation import OfferedTool, allocate_plan
from agents.swarm.strategies.strategy import SwarmStrategy
from agents.swarm.workers.output import WorkerOutput
from agents.swarm.workers.worker_type import WorkerRegistry
from llm.tasks.plan_swarm import Output, PlannedWorker
from tools.listed_parts import find_items, split_questions

LISTED = "listed"
"""The strategy of a plan without a model."""
_LONGEST_ID = 120
_MOST_ITEMS, _LONGEST_ITEM = 64, 300
_MOST_CRITERIA, _LONGEST_CRITERION = 16, 200
_ITEM_PASSAGES = 20


def read_plan(
    question: str,
    decision: Output,
    strategy: SwarmStrategy,
    registry: WorkerRegistry,
    offered: Sequence[OfferedTool],
    *,
    most_workers: int = MOST_WORKERS,
    first: int = 0,
) -> SwarmPlan:
    """Return the checked plan of a decision; raises `PlanRejected`.

    `first` is the number of the first worker: ids are unique over all plans of a question.
    """
    workers = tuple(_read_workers(decision.workers, first))
    problems = list(strategy.find_problems(workers)) if not first else []
    if problems:
        raise PlanRejected(problems)
    plan = SwarmPlan(
        question=question,
        strategy=strategy.name,
        complexity=decision.complexity,
        workers=workers,
        items=_shorten(decision.items, _MOST_ITEMS, _LONGEST_ITEM),
        criteria=_shorten(decision.criteria, _MOST_CRITERIA, _LONGEST_CRITERION),
        reasoning=decision.reasoning[:500],
    )
    accepted = accept_plan(plan, roles=registry.names, most_workers=most_workers)
    return allocate_plan(accepted, registry.usual_tools, offered)


def plan_listed(
    question: str, *, most_passages: int = 10, most_workers: int = MOST_WORKERS
) -> SwarmPlan:
    """Return the plan without a model: one worker for each item, or question, that is listed.

    Where the question lists nothing, one worker searches for it; if it finds a list, each item of
    that gets a worker.
    """
    listed = find_items(question)
    parts = split_questions(question)[:most_workers]
    if listed is not None:
        workers = [
            _make_worker(number, f"{item} {listed.asked}".strip(), _ITEM_PASSAGES, subject=item)
            for number, item in enumerate(listed.items[:most_workers])
        ]
    elif parts:
        share = max(1, most_passages // len(parts))
        workers = [_make_worker(number, one, share) for number, one in enumerate(parts)]
    else:
        whole = _make_worker(0, question, most_passages)
        workers = [whole.model_copy(update={"lists_items": True})]
    items = tuple(one.subject for one in workers if one.subject)
    return SwarmPlan(question=question, strategy=LISTED, workers=tuple(workers), items=items)


def extend_plan(plan: SwarmPlan, further: SwarmPlan) -> SwarmPlan:
    """Return a plan with the workers of a later one, which answer for the missing parts."""
    return plan.model_copy(
        update={
            "workers": (*plan.workers, *further.workers),
            "items": tuple(dict.fromkeys((*plan.items, *further.items))),
            "criteria": tuple(dict.fromkeys((*plan.criteria, *further.criteria))),
            "notes": (*plan.notes, *further.notes),
        }
    )


def describe_done(plan: SwarmPlan, outputs: Mapping[str, WorkerOutput]) -> Sequence[str]:
    """Return the briefs so far, each with its result, for a planning model."""
    return [
        f"{one.objective[:300]}: {_describe_result(outputs.get(one.id))}" for one in plan.workers
    ]


def _describe_result(output: WorkerOutput | None) -> str:
    if output is None:
        return "no result"
    if not output.is_usable:
        return output.error[:200] or "nothing was found"
    return output.text[:500] or f"{len(output.passages)} passages"


def _make_worker(number: int, objective: str, passages: int, subject: str = "") -> WorkerPlan:
    return WorkerPlan(
        id=name_worker(number, "research"),
        role="research",
        specialization=subject[:300],
        objective=objective[:4_000],
        tools=("search",),
        subject=subject[:300],
        passages=min(30, passages),
    )


def _shorten(texts: Sequence[str], most: int, longest: int) -> tuple[str, ...]:
    plain = (" ".join(one.split())[:longest] for one in texts)
    return tuple(dict.fromkeys(one for one in plain if one))[:most]


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
            subject=one.item[:300],
        )
        for own, one in zip(ids, planned, strict=True)
    ]
