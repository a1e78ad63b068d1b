"""Makes a plan from a model's decision or, without a model, from the items that a question
lists.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from pydantic import BaseModel

from agents.swarm.strategies import SwarmStrategy
from agents.swarm.swarm_plan import MOST_WORKERS, PlanRejected, SwarmPlan, WorkerPlan, name_worker
from agents.swarm.workers import WorkerOutput, WorkerRegistry, WorkerStatus
from knowledge.index.terms import terms
from llm.tasks.swarm import PlannedWorker, PlanSwarmOutput
from tools.calls import EffectClass
from tools.listed_parts import find_items, split_questions

SAME_BRIEF = 0.9
"""The share of words that two briefs must have in common to be considered the same work."""
_MOST_COMPARED = 1_000
"""Maximum number of briefs that are compared with each other; a longer plan is rejected because of
its length.
"""
_LONGEST_SHOWN = 80
LISTED = "listed"
"""The strategy of a plan without a model."""
_LONGEST_ID = 120
_MOST_ITEMS, _LONGEST_ITEM = 64, 300
_MOST_CRITERIA, _LONGEST_CRITERION = 16, 200
_ITEM_PASSAGES = 20


class OfferedTool(BaseModel, frozen=True, extra="ignore"):
    """A tool that a plan may use, with the properties needed for planning."""

    name: str
    description: str = ""
    effect: EffectClass = EffectClass.READ


class Allocation(BaseModel, frozen=True, extra="ignore"):
    """The tools of a worker, and the tools that were withheld, with the reason for each."""

    tools: tuple[str, ...]
    withheld: dict[str, str] = {}


def allocate_tools(
    worker: WorkerPlan, usual: Sequence[str], offered: Mapping[str, OfferedTool]
) -> Allocation:
    """Return the tools of a worker: those named in its plan or, if there are none, the `usual` ones
    of its type.

    If all named tools were withheld, the worker gets the usual tools. A tool with side effects is
    given only to a worker whose brief names it, and still requires a person's approval if it is
    dangerous. Unknown names are withheld.
    """
    wanted = dict.fromkeys(worker.tools or tuple(usual))
    withheld: dict[str, str] = {}
    given = []
    for name in wanted:
        tool = offered.get(name)
        if tool is None:
            if name in worker.tools:
                withheld[name] = "no such tool is offered"
        elif tool.effect in {EffectClass.EFFECT, EffectClass.DANGEROUS}:
            if name in worker.tools and _is_named(tool, worker):
                given.append(name)
            else:
                withheld[name] = f"{tool.effect.value}, and the brief does not require it"
        else:
            given.append(name)
    if not given:
        safe = (offered[name] for name in usual if name in offered)
        given = [tool.name for tool in safe if tool.effect.may_repeat]
    return Allocation(tools=tuple(given), withheld=withheld)


def allocate_plan(
    plan: SwarmPlan, usual: Mapping[str, Sequence[str]], offered: Iterable[OfferedTool]
) -> SwarmPlan:
    """Return the plan with the tools of every worker; `usual` contains the tools of each role.

    A note states which tool was withheld from which worker.
    """
    by_name = {tool.name: tool for tool in offered}
    workers, notes = [], []
    for worker in plan.workers:
        allocation = allocate_tools(worker, usual.get(worker.role, ()), by_name)
        workers.append(worker.model_copy(update={"tools": allocation.tools}))
        notes += [
            f"{name[:80]} is withheld from {worker.id}: {why}"
            for name, why in allocation.withheld.items()
        ]
    return plan.model_copy(update={"workers": tuple(workers), "notes": (*plan.notes, *notes)})


def list_risky(
    workers: Sequence[WorkerPlan], offered: Mapping[str, OfferedTool]
) -> dict[str, tuple[str, ...]]:
    """Return the dangerous tools by worker. A plan that uses any of them requires a person's
    approval.
    """
    risky = {
        worker.id: tuple(
            name
            for name in worker.tools
            if name in offered and offered[name].effect is EffectClass.DANGEROUS
        )
        for worker in workers
    }
    return {worker_id: names for worker_id, names in risky.items() if names}


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
    """Return the plan without workers whose brief duplicates that of another worker.

    The remaining worker has the tools and dependencies of both, and the higher priority.
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
    workers = tuple(_redirect(worker_plan, into) for worker_plan in kept)
    return plan.model_copy(update={"workers": workers, "notes": (*plan.notes, *notes)})


def arrange_workers(workers: Sequence[WorkerPlan]) -> list[tuple[WorkerPlan, ...]]:
    """Return workers by wave, with the most urgent first; raises `PlanRejected` for a cycle."""
    by_id = {worker.id: worker for worker in workers}
    sorter = TopologicalSorter(
        {plan.id: [other for other in plan.depends_on if other in by_id] for plan in workers}
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


def read_plan(
    question: str,
    decision: PlanSwarmOutput,
    strategy: SwarmStrategy,
    registry: WorkerRegistry,
    offered: Sequence[OfferedTool],
    *,
    most_workers: int = MOST_WORKERS,
    first: int = 0,
) -> SwarmPlan:
    """Return the checked plan from a decision; raises `PlanRejected`.

    `first` is the number of the first worker, because ids are unique across all plans of a
    question.
    """
    workers = tuple(_read_workers(decision.workers, first))
    problems = list(strategy.find_problems(workers)) if not first else []
    if problems:
        raise PlanRejected(problems)
    plan = SwarmPlan(
        question=question,
        strategy=strategy.name,
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
    """Return the plan without a model, with one worker for each listed item or question.

    If the question does not list anything, a single worker searches for it.
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
        workers = [_make_worker(number, part, share) for number, part in enumerate(parts)]
    else:
        workers = [_make_worker(0, question, most_passages)]
    items = tuple(worker.subject for worker in workers if worker.subject)
    return SwarmPlan(question=question, strategy=LISTED, workers=tuple(workers), items=items)


def extend_plan(plan: SwarmPlan, further: SwarmPlan) -> SwarmPlan:
    """Return a plan extended by the workers of a later one, which look up the missing parts."""
    return plan.model_copy(
        update={
            "workers": (*plan.workers, *further.workers),
            "items": tuple(dict.fromkeys((*plan.items, *further.items))),
            "criteria": tuple(dict.fromkeys((*plan.criteria, *further.criteria))),
            "notes": (*plan.notes, *further.notes),
        }
    )


def repeat_failed(
    plan: SwarmPlan, outputs: Mapping[str, WorkerOutput]
) -> tuple[SwarmPlan, tuple[WorkerPlan, ...]]:
    """Return a plan in which new workers replace failed ones, and these new workers.

    Workers that have a result are not repeated, and neither are those whose part another worker has
    completed.
    """
    done = {
        worker.subject or worker.objective
        for worker in plan.workers
        if worker.id in outputs and outputs[worker.id].status is WorkerStatus.DONE
    }
    names = {
        worker.id: f"{worker.id}_again"
        for worker in plan.workers
        if worker.id in outputs
        and outputs[worker.id].status is WorkerStatus.FAILED
        and (worker.subject or worker.objective) not in done
    }
    workers = tuple(
        worker.model_copy(
            update={
                "id": names.get(worker.id, worker.id),
                "depends_on": tuple(names.get(other, other) for other in worker.depends_on),
            }
        )
        for worker in plan.workers
    )
    repeated = tuple(worker for worker in workers if worker.id in names.values())
    return plan.model_copy(update={"workers": workers}), repeated


def describe_done(plan: SwarmPlan, outputs: Mapping[str, WorkerOutput]) -> Sequence[str]:
    """Return the briefs so far, each with its result, for a planning model."""
    return [
        f"{worker.objective[:300]}: {_describe_result(outputs.get(worker.id))}"
        for worker in plan.workers
    ]


def _is_named(tool: OfferedTool, worker: WorkerPlan) -> bool:
    """Return whether the brief contains the words in the tool's name."""
    words = set(terms(tool.name.replace("_", " "), "en"))
    return words <= set(terms(f"{worker.objective} {worker.output}", "en"))


def _find_problems(plan: SwarmPlan, roles: Collection[str], most: int) -> Iterator[str]:
    workers = plan.workers
    if not workers:
        yield "the plan contains no worker"
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
    return f"the dependencies of the workers form a cycle: {shown}"


def _find_same(
    worker: WorkerPlan, own: set[str], kept: Sequence[WorkerPlan], words: Sequence[set[str]]
) -> int | None:
    """Return the index of the worker that already has this brief."""
    for place, (plan, its) in enumerate(zip(kept, words, strict=True)):
        if not _are_alike(plan, worker):
            continue
        if _share_words(plan.objective, its, worker.objective, own) >= SAME_BRIEF:
            return place
    return None


def _are_alike(plan: WorkerPlan, other: WorkerPlan) -> bool:
    """Return whether two workers differ only in the wording of their briefs."""
    return (plan.role, plan.subject, plan.specialization) == (
        other.role,
        other.subject,
        other.specialization,
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
                    dependency
                    for dependency in (*kept.depends_on, *other.depends_on)
                    if dependency != kept.id
                )
            ),
            "priority": max(kept.priority, other.priority),
            "passages": max(kept.passages, other.passages),
        }
    )


def _redirect(worker: WorkerPlan, into: Mapping[str, str]) -> WorkerPlan:
    needs = dict.fromkeys(into.get(dependency, dependency) for dependency in worker.depends_on)
    return worker.model_copy(
        update={"depends_on": tuple(dependency for dependency in needs if dependency != worker.id)}
    )


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
    plain = (" ".join(text.split())[:longest] for text in texts)
    return tuple(dict.fromkeys(name for name in plain if name))[:most]


def _read_workers(planned: Sequence[PlannedWorker], first: int) -> list[WorkerPlan]:
    """Return workers with ids; raises `PlanRejected` for positions that do not exist."""
    ids = [
        name_worker(number, planned_worker.role)[:_LONGEST_ID]
        for number, planned_worker in enumerate(planned, first)
    ]
    strange = [
        position
        for worker in planned
        for position in worker.depends_on
        if not 0 <= position < len(ids)
    ]
    if strange:
        raise PlanRejected(
            [f"expected positions from 0 to {len(ids) - 1} in depends_on, found {strange[:5]}"]
        )
    if any(not planned_worker.objective.strip() for planned_worker in planned):
        raise PlanRejected(["every worker requires an objective"])
    return [
        WorkerPlan(
            id=own,
            role=planned_worker.role[:60] or "research",
            specialization=planned_worker.specialization[:300],
            objective=planned_worker.objective[:4_000],
            output=planned_worker.output[:1_000],
            tools=planned_worker.tools,
            depends_on=tuple(ids[position] for position in planned_worker.depends_on),
            priority=planned_worker.priority,
            subject=planned_worker.item[:300],
        )
        for own, planned_worker in zip(ids, planned, strict=True)
    ]
