"""The context that a specialist gets besides its own material: turns, outputs, documents."""

import json
from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel, JsonValue

from agents.review.compression import compress_output, shorten_middle
from envelope.conversation import Turn
from envelope.ways.specialists import Extracted
from llm.port import I
from llm.tasks.specialists.material import SpecialistInputs

OUTPUTS = (
    "extracted", "classification", "checklist", "verdicts", "risks", "citation_audit", "gaps",
)  # fmt: skip
"""Attributes with what specialists have left, in their order."""
LAST_TURNS = 3
_LONGEST_TURN, _LONGEST_TEXT, _LONGEST_OUTPUTS = 300, 300, 4_000
_MOST_DOCUMENTS, _MOST_PLACES = 20, 10
_NOT_SHOWN = frozenset({"reference", "chunks_data", "chunk_ids", "citations", "decided_by"})
"""Names of stored values, and passages: the specialist has what it needs of them."""


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
    """Return the outputs of the others as compact JSON, without what nobody reads; or empty."""
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
