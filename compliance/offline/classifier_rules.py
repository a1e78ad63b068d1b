"""Classifies documents by counting the cues of each class."""

from compliance.assessment.document_kind import classify_text
from llm.tasks.specialists.classifier import ClassifiedDocument, Inputs, Output


def answer(inputs: Inputs) -> Output:
    """Return the five dimensions of each document."""
    return Output(
        documents=tuple(
            ClassifiedDocument(
                document_id=one.id,
                document_type=found.document_type.value,
                domain=found.domain.value,
                complexity=found.complexity,
                language=found.language,
                sensitivity=found.sensitivity.value,
            )
            for one in inputs.documents
            for found in [classify_text(one.text, one.language, one.heading)]
        )
    )
