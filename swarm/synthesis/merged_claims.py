"""The claims of a report: quotations, each with the workers that found it and its source."""

from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from llm.attacks.orders import is_order_to_assistant
from llm.offline.support import numbers_of, support
from llm.offline.words import normalise
from swarm.planning.plan import SwarmPlan, WorkerPlan
from swarm.synthesis.quotations import ChosenQuotation, choose_quotation
from swarm.workers.output import WorkerOutput, may_name_subject
from tools.calls import CitedPassage
from tools.passage_search.passages import FoundPassage

SAME_CLAIM = 0.9
MOST_OF_WORKER = 3
"""The quotations of a worker without a subject; a worker with one is quoted once."""
_LEAST_SHARE = 0.2
_DENIALS = (" not ", " no ", " never ", " cannot ", " without ", " nicht ", " kein ", " keine ")


class MergedClaim(BaseModel, frozen=True, extra="forbid"):
    """A quotation with its source; `worker_ids` are all workers that found it."""

    text: str
    worker_ids: tuple[str, ...]
    source: CitedPassage
    subject: str = ""
    perspective: str = ""


def merge_claims(plan: SwarmPlan, outputs: Mapping[str, WorkerOutput]) -> tuple[MergedClaim, ...]:
    """Return the claims of all workers in the order of the plan, those that say the same once."""
    merged: list[MergedClaim] = []
    for worker in plan.workers:
        output = outputs.get(worker.id)
        for claim in _list_claims(worker, output) if output is not None else ():
            same = next((one for one in merged if _say_the_same(one, claim)), None)
            if same is None:
                merged.append(claim)
            elif worker.id not in same.worker_ids:
                merged[merged.index(same)] = same.model_copy(
                    update={
                        "worker_ids": (*same.worker_ids, worker.id),
                        "subject": same.subject or claim.subject,
                    }
                )
    return tuple(merged)


def is_denied(text: str) -> bool:
    """Return whether a sentence denies something."""
    plain = f" {normalise(text)} "
    return any(denial in plain for denial in _DENIALS)


def _list_claims(worker: WorkerPlan, output: WorkerOutput) -> Iterator[MergedClaim]:
    for verdict in output.verdicts:
        if verdict.passage is not None and not is_order_to_assistant(verdict.passage.text):
            yield MergedClaim(
                text=verdict.passage.text,
                worker_ids=(worker.id,),
                source=verdict.passage.citation,
                subject=verdict.title,
            )
    if output.verdicts or output.is_off_subject:
        return
    for passage, quotation in _choose_quotations(worker, output):
        yield MergedClaim(
            text=quotation.text,
            worker_ids=(worker.id,),
            source=passage.citation,
            subject=worker.subject,
            perspective=worker.specialization if not worker.subject else "",
        )


def _choose_quotations(
    worker: WorkerPlan, output: WorkerOutput
) -> list[tuple[FoundPassage, ChosenQuotation]]:
    """Return what a worker quotes, best passages first.

    A worker with a subject quotes the best of its first passages, of those that name the subject if
    there are any: what another page says is about another thing. One that takes a side prefers
    statements with the words of that side.
    """
    shown = output.passages if worker.sides else output.passages[:MOST_OF_WORKER]
    found = [
        (passage, quotation)
        for passage in shown
        if (
            quotation := choose_quotation(
                worker.objective, passage, worker.sides, subject=worker.subject
            )
        )
        and quotation.share >= _LEAST_SHARE
    ]
    if worker.subject:
        named = [pair for pair in found if may_name_subject(worker, pair[0])]
        return sorted(named or found, key=lambda pair: -pair[1].score)[:1]
    return sorted(found, key=lambda pair: not pair[1].is_on_side)[:MOST_OF_WORKER]


def _say_the_same(one: MergedClaim, other: MergedClaim) -> bool:
    if one.source.chunk_id == other.source.chunk_id:
        return one.text == other.text
    is_alike = (one.subject, numbers_of(one.text), is_denied(one.text)) == (
        other.subject,
        numbers_of(other.text),
        is_denied(other.text),
    )
    if not is_alike:
        return False
    return min(support(one.text, other.text), support(other.text, one.text)) >= SAME_CLAIM
