"""Estimates the model calls and tokens of a review before it begins."""

from dataclasses import dataclass
from decimal import Decimal
from math import ceil

from llm.port import Usage
from llm.prices import estimate_call_usd

_CHUNK_TOKENS = 200
"""Tokens of a chunk of a document, with its headings."""
_PART_CHUNKS, _PART_REQUIREMENTS = 8, 10
_CLAUSES_CHUNKS, _SHOWN_CHUNKS = 15, 30
_PROMPT_TOKENS = 2_500
_WRITTEN_TOKENS = 1_000
"""Tokens of the output of a call."""
_OTHERS = 7
"""Calls for classes, risks, gaps, the audit, the report, the answer and its check."""


@dataclass(frozen=True, slots=True)
class ReviewCost:
    """About how many calls a review makes, how many tokens they have, and their list price."""

    calls: int
    tokens: int
    usd: Decimal | None = None


def estimate_cost(law_chunks: int, document_chunks: int, model: str = "") -> ReviewCost:
    """Return the estimate for a law and a document; most laws have a requirement for each chunk.

    `model` is as in `llm.port.Model`; an unknown price is None.
    """
    reading = ceil(law_chunks / _PART_CHUNKS)
    clauses = ceil(document_chunks / _CLAUSES_CHUNKS)
    deciding = ceil(law_chunks / _PART_REQUIREMENTS)
    shown = min(document_chunks, _SHOWN_CHUNKS)
    calls = reading + clauses + deciding + _OTHERS
    chunks = 2 * law_chunks + document_chunks + clauses * law_chunks + deciding * shown
    read = calls * _PROMPT_TOKENS + chunks * _CHUNK_TOKENS
    usage = Usage(read, calls * _WRITTEN_TOKENS)
    return ReviewCost(calls, read, estimate_call_usd(model, usage) if model else None)
