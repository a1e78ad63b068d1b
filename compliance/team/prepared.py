"""Prepares named passages for comparing; the parts of one review share the result."""

from functools import lru_cache

from compliance.requirements.requirement import TextPlace
from compliance.verdicts.passages import DocumentPassage, PreparedDocument
from llm.tasks.specialists.material import TextUnit

_KEPT = 4
"""Documents that are kept prepared."""


@lru_cache(_KEPT)
def prepare_document(passages: tuple[TextUnit, ...], language: str) -> PreparedDocument:
    """Return passages with what comparing needs; the place of each has its id."""
    return PreparedDocument(
        (
            DocumentPassage(
                TextPlace(document_id="", unit_id=one.id, start=0, end=len(one.text)), one.text
            )
            for one in passages
        ),
        language,
    )
