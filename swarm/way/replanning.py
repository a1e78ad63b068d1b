"""Plans again for the missing parts: the rules look elsewhere, never for the same once more."""

from collections.abc import Mapping, Sequence

from swarm.planning.plan import SwarmPlan, WorkerPlan, name_worker
from swarm.workers.output import WorkerOutput

_WAYS: tuple[tuple[str, ...], ...] = (("hybrid_search",), ("bm25_search", "lookup"))
"""The tools of each further plan: other levels of the search than before."""
_MOST = 8
_PASSAGES = 10


def plan_missing(
    plan: SwarmPlan, outputs: Mapping[str, WorkerOutput], *, replans: int, lacks: str = ""
) -> SwarmPlan | None:
    """Return a plan for the parts without a result; None if the rules know nothing further.

    `replans` counts the plans before this one but the first; `lacks` is what a check of the answer
    said is missing: where every part has a result, it becomes the only brief.
    """
    if replans >= len(_WAYS):
        return None
    tools = _WAYS[replans]
    missing = [one for one in plan.workers if not _is_usable(outputs.get(one.id))]
    first = len(plan.workers)
    if missing:
        workers = [
            _search_again(one, tools, number)
            for number, one in enumerate(missing[:_MOST], start=first)
        ]
    else:
        brief = " ".join(f"{plan.question} {lacks}".split())[:4_000]
        workers = [_make_worker(first, brief, tools)]
    known = {(one.objective, one.tools) for one in plan.workers}
    fresh = [one for one in workers if (one.objective, one.tools) not in known]
    return plan.model_copy(update={"workers": tuple(fresh), "notes": ()}) if fresh else None


def describe_done(plan: SwarmPlan, outputs: Mapping[str, WorkerOutput]) -> Sequence[str]:
    """Return the briefs so far, each with its result, for a planning model."""
    return [
        f"{one.objective[:300]}: {_describe_result(outputs.get(one.id))}" for one in plan.workers
    ]


def _search_again(worker: WorkerPlan, tools: tuple[str, ...], number: int) -> WorkerPlan:
    again = _make_worker(number, worker.objective, tools)
    return again.model_copy(
        update={"specialization": worker.specialization, "subject": worker.subject}
    )


def _make_worker(number: int, objective: str, tools: tuple[str, ...]) -> WorkerPlan:
    return WorkerPlan(
        id=name_worker(number, "research"),
        role="research",
        objective=objective,
        output="the passages that answer the question",
        tools=tools,
        passages=_PASSAGES,
    )


def _is_usable(output: WorkerOutput | None) -> bool:
    return output is not None and output.is_usable


def _describe_result(output: WorkerOutput | None) -> str:
    if output is None:
        return "no result"
    if not output.is_usable:
        return output.error[:200] or "nothing was found"
    return f"{len(output.passages) or len(output.verdicts)} passages"
