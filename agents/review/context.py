"""Shortens the outputs that specialists pass to each other, and makes the context of each
specialist.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import BaseModel, JsonValue

from agents.review.requirements import Requirement
from agents.review.verdicts import Risk, Verdict, VerdictEvidence
from envelope.conversation import Turn
from envelope.specialists import Extracted
from llm.port import I
from llm.tasks.review import KnownRequirement, KnownVerdict, SpecialistInputs

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
    """Return an output without unused fields; long texts are shortened in the middle."""
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


OUTPUTS = (
    "extracted", "classification", "checklist", "verdicts", "risks", "citation_audit", "gaps",
)  # fmt: skip
"""Attributes with what specialists have left, in their order."""
LAST_TURNS = 3
_LONGEST_TURN, _LONGEST_TEXT, _LONGEST_OUTPUTS = 300, 300, 4_000
_MOST_DOCUMENTS, _MOST_PLACES = 20, 10
_NOT_SHOWN = frozenset({"reference", "chunks_data", "chunk_ids", "citations", "decided_by"})
"""Names of stored values, and passages, which the specialist receives in another way."""


def add_context(inputs: I, reads: BaseModel | None) -> I:
    """Return the inputs of a specialist with its context, as far as it reads the attributes."""
    if reads is None or not isinstance(inputs, SpecialistInputs):
        return inputs
    values: dict[str, object] = {name: getattr(reads, name) for name in type(reads).model_fields}
    extracted = values.get("extracted")
    return inputs.model_copy(
        update={
            "original_query": _read_text(values.get("text")),
            "recent_turns": tuple(_list_turns(values.get("history"))),
            "previous_outputs": write_outputs(values),
            "retrieved": tuple(
                _list_retrieved(extracted) if isinstance(extracted, Extracted) else ()
            ),
        }
    )


def write_outputs(values: Mapping[str, object]) -> str:
    """Return the outputs of the others as compact JSON without unused fields, or ""."""
    shown: dict[str, JsonValue] = {}
    for name in OUTPUTS:
        value = values.get(name)
        if not value:
            continue
        dumped = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
        plain: JsonValue = json.loads(json.dumps(dumped))
        kept = compress_output(plain, _LONGEST_TEXT)
        if isinstance(kept, dict):
            kept = {key: one for key, one in kept.items() if one and key not in _NOT_SHOWN}
        shown[name] = kept
    if not shown:
        return ""
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    return shorten_middle(text, _LONGEST_OUTPUTS)


def _list_turns(history: object) -> Iterator[str]:
    turns: Sequence[object] = history if isinstance(history, tuple) else ()
    for one in turns[-LAST_TURNS:]:
        if isinstance(one, Turn):
            meant = one.meant or one.text
            yield f"{one.speaker}: {shorten_middle(' '.join(meant.split()), _LONGEST_TURN)}"


def _list_retrieved(found: Extracted) -> Iterator[str]:
    """Yield a line for each document of the review, and for the places of passages."""
    for role, documents in (("document", found.documents), ("rules", found.against)):
        for one in documents[:_MOST_DOCUMENTS]:
            yield f"{role}: {one.title} ({one.units} units, {one.language})"
    for place in found.citations[:_MOST_PLACES]:
        yield f"passage: {place}"


def _read_text(value: object) -> str:
    return shorten_middle(value) if isinstance(value, str) else ""
