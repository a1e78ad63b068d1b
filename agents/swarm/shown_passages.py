"""Chooses the passages that are shown without a model: of each item the closest one."""

from collections.abc import Mapping, Sequence

from agents.swarm.planning.plan import SwarmPlan
from agents.swarm.workers.output import WorkerOutput, names_subject
from knowledge.sections import document_of
from tools.passages import FoundPassage


def find_closest(
    plan: SwarmPlan, outputs: Mapping[str, WorkerOutput]
) -> dict[str, FoundPassage | None]:
    """Return the closest passage of each item that names it; None: nothing was found."""
    closest: dict[str, FoundPassage | None] = {}
    for worker in plan.workers:
        output = outputs.get(worker.id)
        if worker.subject and closest.get(worker.subject) is None:
            found = output.passages if output is not None else ()
            named = (one for one in found if names_subject(worker.subject, one))
            closest[worker.subject] = next(named, None)
    return closest


def choose_shown(
    plan: SwarmPlan, outputs: Mapping[str, WorkerOutput], most: int
) -> tuple[FoundPassage, ...]:
    """Return at most `most` passages of different documents.

    A worker on which others depend is shown by the passage that led to them; then each worker has
    its turn, best passages first, in the order of the plan.
    """
    leading = {other for worker in plan.workers for other in worker.depends_on}
    turns = [_find_leading(outputs, one.id) for one in plan.workers if one.id in leading]
    own = [_list_passages(outputs, one.id) for one in plan.workers if one.id not in leading]
    rest = [_list_passages(outputs, one.id) for one in plan.workers if one.id in leading]
    shown: dict[str, FoundPassage] = {}
    for group in (*turns, *_take_turns(own, 2), *rest, *_take_turns(own, most)):
        for passage in group:
            if len(shown) < most:
                shown.setdefault(document_of(passage.citation.chunk_id), passage)
    return tuple(shown.values())


def _find_leading(outputs: Mapping[str, WorkerOutput], worker_id: str) -> Sequence[FoundPassage]:
    """Return the passage from which the items were read."""
    output = outputs.get(worker_id)
    if output is None or not output.items:
        return ()
    return [one for one in output.passages if output.items[0] in one.text][:1]


def _list_passages(outputs: Mapping[str, WorkerOutput], worker_id: str) -> Sequence[FoundPassage]:
    output = outputs.get(worker_id)
    return output.passages if output is not None else ()


def _take_turns(own: Sequence[Sequence[FoundPassage]], turns: int) -> list[list[FoundPassage]]:
    return [[one[turn] for one in own if len(one) > turn] for turn in range(turns)]
