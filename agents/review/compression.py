"""Compresses the output of one specialist before another one reads it."""

from collections.abc import Iterable, Iterator, Sequence

from pydantic import JsonValue

from agents.review.requirements.requirement import Requirement
from agents.review.verdicts.verdict import Risk, Verdict, VerdictEvidence
from llm.tasks.specialists.material import KnownRequirement, KnownVerdict

REMOVED = frozenset(
    {"iterations", "retrieval_method", "total_tool_cost_usd", "tool_calls_made", "chunks",
     "expanded_results", "_internal"}
)  # fmt: skip
"""Fields of outputs that no other specialist reads."""
LONGEST = 1_500
"""Characters of a text that is handed over."""
BATCH = 40
"""Findings that a model reads in one call."""
_FIRST_SHARE, _LAST_SHARE = 0.6, 0.35


def compress_output(value: JsonValue, longest: int = LONGEST) -> JsonValue:
    """Return an output without the fields that nobody reads; long texts lose their middle."""
    if isinstance(value, str):
        return shorten_middle(value, longest)
    if isinstance(value, list):
        return [compress_output(one, longest) for one in value]
    if isinstance(value, dict):
        kept = ((name, one) for name, one in value.items() if name not in REMOVED)
        return {name: compress_output(one, longest) for name, one in kept}
    return value


def shorten_middle(text: str, longest: int = LONGEST) -> str:
    """Return a text of about `longest` characters: its first 60 %, a mark, and its last 35 %."""
    if len(text) <= longest:
        return text
    head, tail = int(longest * _FIRST_SHARE), int(longest * _LAST_SHARE)
    return f"{text[:head]} [... {len(text) - head - tail} characters ...] {text[-tail:]}"


def compress_requirements(
    requirements: Iterable[Requirement], wanted: Iterable[str] | None = None
) -> tuple[KnownRequirement, ...]:
    """Return requirements as others read them; all, or those with these ids."""
    names = None if wanted is None else frozenset(wanted)
    return tuple(
        KnownRequirement(
            id=one.id,
            statement=shorten_middle(one.statement),
            kind=one.kind.value,
            severity=one.severity,
            addressee=one.addressee,
            condition=shorten_middle(one.condition),
            heading=" > ".join(one.place.heading_path),
            quotation=shorten_middle(one.quotation),
        )
        for one in requirements
        if names is None or one.id in names
    )


def divide_findings(findings: Sequence[KnownVerdict]) -> Iterator[tuple[KnownVerdict, ...]]:
    """Yield findings in batches that a model answers in one call."""
    for first in range(0, len(findings), BATCH):
        yield tuple(findings[first : first + BATCH])


def _describe(evidence: VerdictEvidence) -> str:
    """Return a quotation after the heading above it."""
    place = " > ".join(evidence.place.heading_path)
    words = shorten_middle(evidence.text, LONGEST // 3)
    return f"{place}: {words}" if place else words


def compress_verdicts(verdicts: Iterable[Verdict]) -> tuple[KnownVerdict, ...]:
    """Return verdicts with their evidence, shortened."""
    return tuple(
        KnownVerdict(
            requirement_id=one.requirement_id,
            status=one.status.value,
            confidence=one.confidence,
            note=one.note,
            evidence=tuple(map(_describe, one.evidence[:2])),
        )
        for one in verdicts
    )


def describe_risk(risk: Risk) -> str:
    """Return a risk in one line, with the id of the requirement that is not met."""
    return f"{risk.requirement_id} ({risk.category.value}, {risk.score} of 25): {risk.reason}"
