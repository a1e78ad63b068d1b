"""Estimates the model calls, tokens, cost, and time of a review before it starts."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from math import ceil

from llm.port import Usage

_CHUNK_TOKENS = 200
"""The number of tokens in a chunk of a document, including its headings."""
_PART_CHUNKS, _PART_REQUIREMENTS = 8, 10
_CLAUSES_CHUNKS, _SHOWN_CHUNKS = 15, 30
_CLASSIFIED_CHUNKS, _MOST_CLASSIFYING = 30, 16
_PROMPT_TOKENS = 2_500
_WRITTEN_TOKENS = 1_000
"""The number of output tokens of a call."""
_OTHERS = 6
"""The number of calls for risks, gaps, the audit, the report, the answer, and its check."""
_OTHER_STEPS = 5
"""The number of these calls that run one after the other; the audit runs in parallel with the
risks.
"""
_AT_ONCE = 8
"""The number of parts of a law or a document that are read in parallel."""


@dataclass(frozen=True, slots=True)
class ReviewCost:
    """Estimates of the number of calls in a review, of their input and output tokens, and of their
    price.

    `usd` is None if the price is unknown, and `seconds` if the speed of the model was not measured.
    """

    calls: int
    tokens: int
    usd: Decimal | None = None
    seconds: int | None = None


def estimate_cost(
    law_chunks: int,
    document_chunks: int,
    *,
    price: Callable[[Usage], Decimal | None] | None = None,
    tokens_per_second: float | None = None,
) -> ReviewCost:
    """Return the estimate for a law and a document, assuming one requirement per chunk of the law.

    `tokens_per_second` is the output speed of the model during its calls.
    """
    reading = ceil(law_chunks / _PART_CHUNKS)
    clauses = ceil(document_chunks / _CLAUSES_CHUNKS)
    deciding = ceil(law_chunks / _PART_REQUIREMENTS)
    classifying = min(ceil((law_chunks + document_chunks) / _CLASSIFIED_CHUNKS), _MOST_CLASSIFYING)
    shown = min(document_chunks, _SHOWN_CHUNKS)
    calls = reading + clauses + deciding + classifying + _OTHERS
    chunks = 2 * law_chunks + document_chunks + clauses * law_chunks + deciding * shown
    chunks += min(law_chunks + document_chunks, classifying * _CLASSIFIED_CHUNKS)
    usage = Usage(calls * _PROMPT_TOKENS + chunks * _CHUNK_TOKENS, calls * _WRITTEN_TOKENS)
    steps = sum(ceil(calls / _AT_ONCE) for calls in (reading, clauses, deciding)) + _OTHER_STEPS
    return ReviewCost(
        calls=calls,
        tokens=usage.input_tokens + usage.output_tokens,
        usd=None if price is None else price(usage),
        seconds=None
        if not tokens_per_second
        else ceil(steps * _WRITTEN_TOKENS / tokens_per_second),
    )
