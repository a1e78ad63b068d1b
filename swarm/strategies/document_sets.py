"""Divides the documents of a collection among workers that check them."""

from collections.abc import Iterator, Sequence

from llm.offline.criteria.read_criteria import SetQuestion
from llm.offline.words import normalise
from swarm.planning.plan import DocumentReference, WorkerPlan, name_worker

MOST_DOCUMENTS = 200
"""Documents that one question checks; further ones are named as not checked."""


def select_collection(
    asked: SetQuestion, documents: Sequence[DocumentReference]
) -> tuple[DocumentReference, ...]:
    """Return the documents of the collection that a question names; all if it names none."""
    head = f" {normalise(asked.head)} "
    named = {
        crumb
        for document in documents
        for crumb in document.crumbs
        if f" {normalise(crumb)} " in head
    }
    if not named:
        return tuple(documents)
    return tuple(one for one in documents if named & set(one.crumbs))


def make_document_workers(
    asked: SetQuestion, documents: Sequence[DocumentReference], most_workers: int
) -> Iterator[WorkerPlan]:
    """Yield workers that check documents: one each, or several where there are too many."""
    taken = documents[:MOST_DOCUMENTS]
    size = -(-len(taken) // most_workers)
    criteria = tuple(one.text for one in asked.criteria)
    for number, start in enumerate(range(0, len(taken), max(1, size))):
        own = taken[start : start + size]
        titles = "; ".join(one.title for one in own)
        yield WorkerPlan(
            id=name_worker(number, "data"),
            role="data",
            specialization=titles[:300],
            objective=f"Check {titles}: {' / '.join(criteria)}"[:4_000],
            output="for each document and condition whether it is stated, with the sentence",
            tools=("check_criteria",),
            documents=tuple(one.document_id for one in own),
            criteria=criteria,
            passages=min(30, max(1, len(own) * len(criteria))),
        )
