"""The report of a swarm: one answer from what its workers found, composed of quotations.

A model that writes the answer gets the same claims, contradictions and gaps; the text here is what
the offline rules write.
"""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel

from swarm.planning.plan import SwarmPlan
from swarm.synthesis.comparison_table import (
    ComparisonTable,
    make_document_table,
    make_item_table,
    make_topic_table,
)
from swarm.synthesis.contradictions import Contradiction, find_contradictions
from swarm.synthesis.document_set import DocumentSet, select_documents
from swarm.synthesis.merged_claims import MergedClaim, merge_claims
from swarm.synthesis.report_wording import BY_WORDS, UNCHECKED, ReportNote, ReportWording, Say
from swarm.workers.output import WorkerOutput, WorkerStatus

MOST_CLAIMS = 40


class SwarmReport(BaseModel, frozen=True, extra="forbid"):
    """An answer with all that it rests on.

    `sources` are the ids of chunks in the order of their numbers in `text`, from 1. `missing` are
    English sentences about what nobody found, for a model that plans or writes; `notes` are what
    the reader has to know and no source says. `is_partial`: a worker did not return.
    """

    text: str
    persona: str = ""
    claims: tuple[MergedClaim, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    table: ComparisonTable | None = None
    documents: DocumentSet | None = None
    sources: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[ReportNote, ...] = ()
    is_partial: bool = False


def write_report(
    plan: SwarmPlan, outputs: Mapping[str, WorkerOutput], wording: ReportWording
) -> SwarmReport:
    """Return the report of a plan; an output that is missing or failed is named in it."""
    say, persona = wording.say, wording.persona
    claims = merge_claims(plan, outputs)[:MOST_CLAIMS]
    documents = select_documents(plan, outputs) if plan.criteria else None
    if documents is not None:
        chosen = {one.document_id for one in documents.selected}
        claims = tuple(claim for claim in claims if claim.source.document_id in chosen)
    contradictions = find_contradictions(claims) if documents is None else ()
    table = (
        make_document_table(plan, documents, say)
        if documents is not None
        else make_topic_table(plan, outputs, claims, say) or make_item_table(plan, claims, say)
    )
    missing = tuple(list_missing(plan, outputs, documents))
    sources = tuple(dict.fromkeys(claim.source.chunk_id for claim in claims))
    numbers = {chunk_id: number for number, chunk_id in enumerate(sources, start=1)}
    parts = [
        persona and f"{persona}:",
        _write_set(documents, say) if documents is not None else "",
        table.render(numbers) if table is not None else "",
        _write_claims(claims, numbers) if table is None or documents is not None else "",
        _write_contradictions(contradictions, numbers, say),
    ]
    return SwarmReport(
        text="\n\n".join(part for part in parts if part),
        persona=persona,
        claims=claims,
        contradictions=contradictions,
        table=table,
        documents=documents,
        sources=sources,
        missing=missing,
        notes=tuple(_note_documents(documents)) if documents is not None else (),
        is_partial=any(not _has_returned(outputs.get(one.id)) for one in plan.workers),
    )


def list_missing(
    plan: SwarmPlan, outputs: Mapping[str, WorkerOutput], documents: DocumentSet | None = None
) -> Iterable[str]:
    """Yield a sentence for each part of the plan that has no result."""
    for worker in plan.workers:
        output = outputs.get(worker.id)
        part = worker.specialization or worker.objective
        if output is None:
            yield f"No result came in time for: {part[:200]}."
        elif output.status is WorkerStatus.FAILED:
            yield f"The search failed for: {part[:200]}."
        elif output.status is WorkerStatus.NEEDS_INPUT:
            yield f"Waiting for the user: {part[:200]}."
        elif not output.is_usable:
            yield f"Nothing was found for: {part[:200]}."
    if documents is not None and documents.unchecked:
        yield f"{len(documents.unchecked)} documents were not checked."
    for criterion in documents.by_words if documents is not None else ():
        yield f"No rule is known for {criterion[:200]!r}: words alone were compared."


def write_note(plan: SwarmPlan, outputs: Mapping[str, WorkerOutput]) -> str:
    """Return how many parts were answered, such as `3 of 5 parts answered`."""
    usable = sum(1 for one in plan.workers if _is_usable(outputs.get(one.id)))
    return f"{usable} of {len(plan.workers)} parts answered"


def _has_returned(output: WorkerOutput | None) -> bool:
    return output is not None and output.status is WorkerStatus.DONE


def _is_usable(output: WorkerOutput | None) -> bool:
    return output is not None and output.is_usable


def _write_set(found: DocumentSet, say: Say) -> str:
    if not found.selected:
        return say("report_no_documents", checked=str(found.checked))
    count = str(len(found.selected))
    return say("report_documents", count=count, checked=str(found.checked))


def _note_documents(found: DocumentSet) -> Iterable[ReportNote]:
    if found.unchecked:
        yield ReportNote(key=UNCHECKED, value=str(len(found.unchecked)))
    if found.by_words:
        yield ReportNote(key=BY_WORDS, value="; ".join(found.by_words)[:300])


def _write_claims(claims: Sequence[MergedClaim], numbers: Mapping[str, int]) -> str:
    lines = []
    for claim in claims:
        label = f"{claim.subject}: " if claim.subject else ""
        lines.append(f"- {label}{claim.text} [{numbers[claim.source.chunk_id]}]")
    return "\n".join(lines)


def _write_contradictions(
    found: Sequence[Contradiction], numbers: Mapping[str, int], say: Say
) -> str:
    if not found:
        return ""
    lines = [
        f"- [{numbers[one.one.source.chunk_id]}], [{numbers[one.other.source.chunk_id]}]: "
        f"{word_reason(one, say)}"
        for one in found
    ]
    return "\n".join([say("report_contradictions"), *lines])


def word_reason(found: Contradiction, say: Say) -> str:
    """Return why two claims cannot both be true, in the language of the answer."""
    if not found.numbers:
        return say("report_denied")
    one, other = found.numbers
    return say("report_numbers", one=one, other=other)
