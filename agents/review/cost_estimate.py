"""Estimates what a review takes before it begins: calls of models, and tokens."""

from dataclasses import dataclass
from math import ceil

_CHUNK_TOKENS = 200
"""Of a chunk of a document, with its headings."""
_PART_CHUNKS, _PART_REQUIREMENTS = 8, 10
_CLAUSES_CHUNKS, _SHOWN_CHUNKS = 15, 30
_PROMPT_TOKENS = 2_500
_OTHERS = 7
"""Classes, risks, gaps, the audit, the report, the answer and its check."""


@dataclass(frozen=True, slots=True)
class ReviewCost:
    """About how many calls a review makes, and how many tokens they have."""

    calls: int
    tokens: int


def estimate_cost(law_chunks: int, document_chunks: int) -> ReviewCost:
    """Return the estimate for a law and a document; most laws have a requirement for each chunk."""
    reading = ceil(law_chunks / _PART_CHUNKS)
    clauses = ceil(document_chunks / _CLAUSES_CHUNKS)
    deciding = ceil(law_chunks / _PART_REQUIREMENTS)
    shown = min(document_chunks, _SHOWN_CHUNKS)
    calls = reading + clauses + deciding + _OTHERS
    chunks = 2 * law_chunks + document_chunks + clauses * law_chunks + deciding * shown
    return ReviewCost(calls, calls * _PROMPT_TOKENS + chunks * _CHUNK_TOKENS)
