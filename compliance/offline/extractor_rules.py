"""Chooses documents by their titles and kinds; every passage that the search found is kept."""

from compliance.team.review_scope import TitledDocument, find_scope
from llm.tasks.specialists.extractor import Inputs, Output


def answer(inputs: Inputs) -> Output:
    """Return the documents that the question names, by their roles, and all passages."""
    known = [
        TitledDocument(one.id, one.title, one.source, one.language, one.kind)
        for one in inputs.candidates
    ]
    scope = find_scope(inputs.question, known, inputs.language)
    return Output(
        analysis="documents were chosen by the words of their titles",
        documents=tuple(one.id for one in scope.documents),
        against=tuple(one.id for one in scope.against),
        chunk_ids=tuple(one.id for one in inputs.passages),
        notes=scope.notes,
    )
