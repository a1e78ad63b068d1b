"""Estimates the model calls, tokens, money and time of a review before it starts."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from math import ceil

from llm.port import Usage

_CHUNK_TOKENS = 200
"""Tokens of a chunk of a document, with its headings."""
_PART_CHUNKS, _PART_REQUIREMENTS = 8, 10
_CLAUSES_CHUNKS, _SHOWN_CHUNKS = 15, 30
_CLASSIFIED_CHUNKS, _MOST_CLASSIFYING = 30, 16
_PROMPT_TOKENS = 2_500
_WRITTEN_TOKENS = 1_000
"""Tokens of the output of a call."""
_OTHERS = 6
"""Calls for risks, gaps, the audit, the report, the answer and its check."""
_OTHER_STEPS = 5
"""Steps of these calls that wait for each other: the audit is made beside the risks."""
_AT_ONCE = 8
"""Parts of a law or a document that are read at the same time."""


@dataclass(frozen=True, slots=True)
class ReviewCost:
    """About how many calls a review makes, how many tokens they read and write, and their price.

    `usd` is None where the price is unknown, `seconds` where the model's speed was not measured.
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
    """Return the estimate for a law and a document; most laws have one requirement per chunk.

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
