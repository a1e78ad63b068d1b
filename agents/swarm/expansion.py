"""Adds a worker for each item that another worker has listed.

A question about every member of a group has two waves: the first finds the group, the second asks
about each member. The second wave is planned when the first has returned; a plan grows once.
"""

from collections.abc import Iterator, Mapping, Sequence

from agents.swarm.swarm_plan import MOST_WORKERS, SwarmPlan, WorkerPlan, name_worker
from agents.swarm.worker_output import WorkerOutput
from tools.listed_parts import find_asked_words

_CANDIDATES = 20
"""Passages of an item's worker from which the best about the item are chosen."""


def expand_plan(
    plan: SwarmPlan, outputs: Mapping[str, WorkerOutput], *, most_workers: int = MOST_WORKERS
) -> SwarmPlan:
    """Return the plan with a worker for each listed item; the same plan if nothing was listed.

    Items beyond `most_workers` are left out, and a note says how many.
    """
    added: list[WorkerPlan] = []
    notes = []
    workers = list(plan.workers)
    for lister in plan.workers:
        output = outputs.get(lister.id)
        if not lister.lists_items or output is None or not output.items:
            continue
        free = most_workers - len(plan.workers) - len(added)
        items = output.items[: max(0, free)]
        if len(items) < len(output.items):
            notes.append(f"{len(output.items) - len(items)} items of {lister.id} were left out")
        start = len(plan.workers) + len(added)
        added += _make_item_workers(plan.question, lister, output, items, start)
        workers[workers.index(lister)] = lister.model_copy(update={"lists_items": False})
    if not added:
        return plan
    return plan.model_copy(
        update={
            "workers": (*workers, *added),
            "items": tuple(dict.fromkeys((*plan.items, *(one.subject for one in added)))),
            "notes": (*plan.notes, *notes),
        }
    )


def write_item_objective(question: str, item: str, known: str) -> str:
    """Return the question about one item: the item, and what the question asks about it.

    `known` is the text that lists the items: its words have been answered already.
    """
    asked = find_asked_words(question, known)
    return f"{item} {asked}".strip()


def _make_item_workers(
    question: str,
    lister: WorkerPlan,
    output: WorkerOutput,
    items: Sequence[str],
    start: int,
) -> Iterator[WorkerPlan]:
    source = _find_source(output)
    for number, item in enumerate(items, start=start):
        yield WorkerPlan(
            id=name_worker(number, "research"),
            role="research",
            specialization=item[:300],
            objective=write_item_objective(question, item, source)[:4_000],
            output="the passage that answers this for the item",
            tools=("search",),
            depends_on=(lister.id,),
            priority=max(0, lister.priority - 1),
            subject=item[:300],
            passages=_CANDIDATES,
        )


def _find_source(output: WorkerOutput) -> str:
    """Return the passage, with its title, that has the first item."""
    for passage in output.passages:
        if output.items[0] in passage.text:
            return f"{passage.citation.title} {passage.text}"
    return ""
