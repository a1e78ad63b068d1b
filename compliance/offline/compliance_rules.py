"""Decides verdicts by the fitted model of verdicts, and by plain contradictions of words."""

from compliance.team.prepared import prepare_document
from compliance.verdicts.matching import make_query
from compliance.verdicts.review import review_requirement
from llm.tasks.specialists.compliance import Inputs, Output, RequirementVerdict


def answer(inputs: Inputs) -> Output:
    """Return a verdict for each requirement; raises `EmptyDocumentError` without a passage."""
    document = prepare_document(inputs.passages, inputs.document_language)
    verdicts = []
    for one in inputs.requirements:
        query = make_query(one.statement, inputs.rule_language)
        found, _ = review_requirement(one.id, query, document, language=inputs.rule_language)
        read = [evidence.place.unit_id for evidence in found.evidence]
        verdicts.append(
            RequirementVerdict(
                requirement_id=one.id,
                note=found.note,
                evidence=tuple(dict.fromkeys(read)),
                status=found.status.value,
                confidence=found.confidence,
            )
        )
    return Output(verdicts=tuple(verdicts))
