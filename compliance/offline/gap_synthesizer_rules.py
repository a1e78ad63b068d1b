"""Collects gaps by rules: see `compliance.assessment.gaps`."""

from datetime import date

from compliance.assessment.gaps import synthesize_gaps
from compliance.offline.risk_verifier_rules import restore_requirements, restore_verdicts
from compliance.team.prepared import prepare_document
from llm.tasks.specialists.gap_synthesizer import FoundGap, Inputs, Output


def answer(inputs: Inputs) -> Output:
    """Return the gaps in the order of their kinds."""
    requirements = tuple(
        one.model_copy(
            update={
                "place": one.place.model_copy(
                    update={"heading_path": tuple(filter(None, (inputs.headings.get(one.id, ""),)))}
                )
            }
        )
        for one in restore_requirements(inputs.requirements)
    )
    document = None
    if inputs.passages:
        document = prepare_document(inputs.passages, inputs.document_language)
    found = synthesize_gaps(
        requirements,
        restore_verdicts(inputs.verdicts),
        document=document,
        today=date.fromisoformat(inputs.today) if inputs.today else None,
    )
    gaps = [
        FoundGap(
            kind=one.kind,
            summary=one.summary,
            requirement_ids=one.requirement_ids,
            passages=tuple(place.unit_id for place in one.places if place.unit_id),
        )
        for one in found
    ]
    gaps += [FoundGap(kind="citation", summary=one) for one in inputs.wrong_citations]
    return Output(gaps=tuple(gaps))
