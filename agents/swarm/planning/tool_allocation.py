"""Gives each worker the tools of its type and its brief, and withholds dangerous ones."""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel

from agents.swarm.planning.plan import SwarmPlan, WorkerPlan
from knowledge.index.terms import terms
from tools.calls import EffectClass


class OfferedTool(BaseModel, frozen=True, extra="forbid"):
    """A tool that a plan may use, as far as planning needs to know it."""

    name: str
    description: str = ""
    effect: EffectClass = EffectClass.READ


class Allocation(BaseModel, frozen=True, extra="forbid"):
    """The tools of a worker, and those that it was not given, with the reason for each."""

    tools: tuple[str, ...]
    withheld: dict[str, str] = {}


def allocate_tools(
    worker: WorkerPlan, usual: Sequence[str], offered: Mapping[str, OfferedTool]
) -> Allocation:
    """Return the tools of a worker: those that its plan names, else the `usual` ones of its type.

    A worker from which everything was withheld has the usual tools. A tool that changes something
    is given only to a worker whose brief names it, and still needs the approval of a person if it
    is dangerous. Names that nobody offers are withheld.
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
                withheld[name] = f"{tool.effect.value}, and the brief does not need it"
        else:
            given.append(name)
    if not given:
        safe = (offered[name] for name in usual if name in offered)
        given = [tool.name for tool in safe if tool.effect.may_repeat]
    return Allocation(tools=tuple(given), withheld=withheld)


def allocate_plan(
    plan: SwarmPlan, usual: Mapping[str, Sequence[str]], offered: Iterable[OfferedTool]
) -> SwarmPlan:
    """Return the plan with the tools of every worker; `usual` are those of each role.

    A note says which tool was withheld from whom.
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
    """Return the dangerous tools by worker: such a plan needs the approval of a person."""
    risky = {
        worker.id: tuple(
            name
            for name in worker.tools
            if name in offered and offered[name].effect is EffectClass.DANGEROUS
        )
        for worker in workers
    }
    return {worker_id: names for worker_id, names in risky.items() if names}


def _is_named(tool: OfferedTool, worker: WorkerPlan) -> bool:
    """Return whether the brief has the words of the tool's name."""
    words = set(terms(tool.name.replace("_", " "), "en"))
    return words <= set(terms(f"{worker.objective} {worker.output}", "en"))
