"""Accepts or rejects a plan: bounds, ids, roles, tools, dependencies, and briefs that overlap.

What can be repaired without losing work is repaired and noted: briefs with the same words become
one worker, a tool that a worker may not have is withheld. What cannot is a reason to plan again.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from agents.swarm.errors import PlanRejected
from agents.swarm.planning.plan import MOST_WORKERS, SwarmPlan, WorkerPlan
from knowledge.index.terms import terms

SAME_BRIEF = 0.9
"""The share of words that two briefs have in common when they ask for the same work."""
_MOST_COMPARED = 1_000
"""The most briefs that are compared with each other; a longer plan is refused for its length."""
_LONGEST_SHOWN = 80


def accept_plan(
    plan: SwarmPlan, *, roles: Collection[str], most_workers: int = MOST_WORKERS
) -> SwarmPlan:
    """Return the plan with overlapping briefs merged; raises `PlanRejected`."""
    merged = merge_overlapping(plan)
    problems = list(_find_problems(merged, roles, most_workers))
    if problems:
        raise PlanRejected(problems)
    return merged


def merge_overlapping(plan: SwarmPlan) -> SwarmPlan:
    """Return the plan without workers whose brief another worker has already.

    The one that is kept has the tools and dependencies of both, and the higher priority.
    """
    if len(plan.workers) > _MOST_COMPARED:
        return plan
    kept: list[WorkerPlan] = []
    words: list[set[str]] = []
    into: dict[str, str] = {}
    for worker in plan.workers:
        own = _read_words(worker.objective)
        place = _find_same(worker, own, kept, words)
        if place is None or kept[place].id == worker.id:
            kept.append(worker)
            words.append(own)
        else:
            into[worker.id] = kept[place].id
            kept[place] = _join(kept[place], worker)
    if not into:
        return plan
    notes = (
        f"{lost} has the brief of {other} and was merged into it" for lost, other in into.items()
    )
    workers = tuple(_redirect(one, into) for one in kept)
    return plan.model_copy(update={"workers": workers, "notes": (*plan.notes, *notes)})


def arrange_workers(workers: Sequence[WorkerPlan]) -> list[tuple[WorkerPlan, ...]]:
    """Return workers by wave, the most urgent first; raises `PlanRejected` for a cycle."""
    by_id = {worker.id: worker for worker in workers}
    sorter = TopologicalSorter(
        {one.id: [other for other in one.depends_on if other in by_id] for one in workers}
    )
    try:
        sorter.prepare()
    except CycleError as error:
        raise PlanRejected([_describe_cycle(error)]) from error
    waves = []
    while sorter.is_active():
        ready = set(sorter.get_ready())
        wave = [worker for worker in workers if worker.id in ready]
        waves.append(tuple(sorted(wave, key=lambda one: -one.priority)))
        sorter.done(*ready)
    return waves


def _find_problems(plan: SwarmPlan, roles: Collection[str], most: int) -> Iterator[str]:
    workers = plan.workers
    if not workers:
        yield "expected at least one worker, found none"
    if len(workers) > most:
        yield f"expected at most {most} workers, found {len(workers)}"
        return
    ids = Counter(worker.id for worker in workers)
    for doubled, times in sorted(ids.items()):
        if times > 1:
            yield f"expected each id once, found {doubled[:_LONGEST_SHOWN]!r} {times} times"
    for worker in workers:
        yield from _find_worker_problems(worker, roles, ids)
    try:
        arrange_workers(workers)
    except PlanRejected as error:
        yield from error.problems


def _find_worker_problems(
    worker: WorkerPlan, roles: Collection[str], ids: Collection[str]
) -> Iterator[str]:
    if worker.role not in roles:
        known = ", ".join(sorted(roles))
        yield f"expected one of {known} as the role of {worker.id!r}, found {worker.role!r}"
    for other in worker.depends_on:
        if other not in ids:
            found = other[:_LONGEST_SHOWN]
            yield f"expected ids of workers in depends_on of {worker.id!r}, found {found!r}"


def _describe_cycle(error: CycleError) -> str:
    shown = " -> ".join(str(name)[:_LONGEST_SHOWN] for name in error.args[1])
    return f"expected workers that wait for no cycle, found {shown}"


def _find_same(
    worker: WorkerPlan, own: set[str], kept: Sequence[WorkerPlan], words: Sequence[set[str]]
) -> int | None:
    """Return the place of the worker that has this brief already."""
    for place, (one, its) in enumerate(zip(kept, words, strict=True)):
        if not _are_alike(one, worker):
            continue
        if _share_words(one.objective, its, worker.objective, own) >= SAME_BRIEF:
            return place
    return None


def _are_alike(one: WorkerPlan, other: WorkerPlan) -> bool:
    """Return whether two workers differ at most in the words of their briefs."""
    return (one.role, one.subject, one.specialization, one.lists_items) == (
        other.role,
        other.subject,
        other.specialization,
        other.lists_items,
    )


def _share_words(one: str, left: set[str], other: str, right: set[str]) -> float:
    """Return the share of words, 0 to 1, that two briefs have in common."""
    if not left or not right:
        return float(one.strip().casefold() == other.strip().casefold())
    return len(left & right) / len(left | right)


def _read_words(text: str) -> set[str]:
    return set(terms(text, "en"))


def _join(kept: WorkerPlan, other: WorkerPlan) -> WorkerPlan:
    return kept.model_copy(
        update={
            "tools": tuple(dict.fromkeys((*kept.tools, *other.tools))),
            "depends_on": tuple(
                dict.fromkeys(
                    one for one in (*kept.depends_on, *other.depends_on) if one != kept.id
                )
            ),
            "priority": max(kept.priority, other.priority),
            "passages": max(kept.passages, other.passages),
        }
    )


def _redirect(worker: WorkerPlan, into: Mapping[str, str]) -> WorkerPlan:
    needs = dict.fromkeys(into.get(one, one) for one in worker.depends_on)
    return worker.model_copy(update={"depends_on": tuple(one for one in needs if one != worker.id)})
