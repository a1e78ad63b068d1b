"""The documents of a collection that meet all criteria, from the verdicts of workers."""

from collections import defaultdict
from collections.abc import Mapping

from pydantic import BaseModel

from swarm.planning.plan import SwarmPlan
from swarm.workers.output import DocumentVerdict, WorkerOutput


class SelectedDocument(BaseModel, frozen=True, extra="forbid"):
    """A document that meets all criteria, with its verdicts."""

    document_id: str
    title: str
    verdicts: tuple[DocumentVerdict, ...]


class DocumentSet(BaseModel, frozen=True, extra="forbid"):
    """The answer to a question for documents.

    `unchecked` are documents without a verdict: their worker failed or is missing. `by_words` are
    criteria for which no rule is known, so that the verdicts are uncertain.
    """

    selected: tuple[SelectedDocument, ...]
    checked: int
    unchecked: tuple[str, ...] = ()
    by_words: tuple[str, ...] = ()


def select_documents(plan: SwarmPlan, outputs: Mapping[str, WorkerOutput]) -> DocumentSet:
    """Return the documents that meet the criteria of a plan, in the order of the plan."""
    verdicts: dict[str, dict[str, DocumentVerdict]] = defaultdict(dict)
    for output in outputs.values():
        for verdict in output.verdicts:
            verdicts[verdict.document_id][verdict.criterion] = verdict
    wanted = [document_id for worker in plan.workers for document_id in worker.documents]
    asked = {one.text: one.is_wanted for one in plan.criteria}
    selected = []
    unchecked = []
    for document_id in dict.fromkeys(wanted):
        own = verdicts.get(document_id, {})
        if not asked.keys() <= own.keys():
            unchecked.append(document_id)
        elif all(own[text].is_met == is_wanted for text, is_wanted in asked.items()):
            shown = tuple(own[text] for text in asked)
            title = shown[0].title
            selected.append(SelectedDocument(document_id=document_id, title=title, verdicts=shown))
    by_words = {
        verdict.criterion
        for own in verdicts.values()
        for verdict in own.values()
        if not verdict.kind
    }
    return DocumentSet(
        selected=tuple(selected),
        checked=len(dict.fromkeys(wanted)) - len(unchecked),
        unchecked=tuple(unchecked),
        by_words=tuple(one.text for one in plan.criteria if one.text in by_words),
    )
