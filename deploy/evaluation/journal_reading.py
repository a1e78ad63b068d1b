"""Reads the model calls and the texts of the sources from a question's journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from pydantic import JsonValue, TypeAdapter, ValidationError

from broker.values import Fields, JournalEntry
from envelope.sources import SourceReference

_REFERENCES = TypeAdapter(tuple[SourceReference, ...])
OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class CallTotals:
    """The model calls of one question.

    `cost_usd` sums the known costs; `unknown_costs` counts the calls whose cost is unknown.
    """

    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    unknown_costs: int = 0
    prompt_hashes: tuple[str, ...] = ()


def count_calls(journal: Sequence[JournalEntry]) -> CallTotals:
    """Return the model calls in a journal, including failed ones."""
    calls = [
        entry.fields
        for entry in journal
        if entry.kind == "model_call" and entry.fields.get("model") != OFFLINE
    ]
    asked = [call for call in calls if not call.get("from_store") and not call.get("from_cache")]
    costs = [_parse_cost(call.get("cost_usd")) for call in asked]
    hashes = (str(call["prompt_hash"]) for call in calls if call.get("prompt_hash"))
    return CallTotals(
        calls=len(asked),
        failed=sum("error" in call for call in asked),
        input_tokens=sum(_parse_count(call.get("input_tokens")) for call in asked),
        output_tokens=sum(_parse_count(call.get("output_tokens")) for call in asked),
        cost_usd=sum((cost for cost in costs if cost is not None), Decimal(0)),
        unknown_costs=costs.count(None),
        prompt_hashes=tuple(dict.fromkeys(hashes)),
    )


def collect_evidence(journal: Sequence[JournalEntry], reply: Fields) -> dict[int, str]:
    """Return the text of each source that a reply cites, by its number in the reply.

    It is the text that the author of the answer, a model or the rules, received. A source whose
    text is not in the journal is left out.
    """
    texts = _collect_texts(journal)
    sources = reply.get("sources")
    evidence: dict[int, str] = {}
    for source in sources if isinstance(sources, list) else []:
        if not isinstance(source, dict):
            continue
        number, text = source.get("number"), texts.get(str(source.get("chunk_id")))
        if isinstance(number, int) and text is not None:
            evidence[number] = text
    return evidence


def _collect_texts(journal: Sequence[JournalEntry]) -> dict[str, str]:
    context = ""
    texts: dict[str, str] = {}
    for entry in journal:
        writes = entry.fields.get("writes")
        if not isinstance(writes, dict):
            continue
        found = writes.get("search_context")
        context = found if isinstance(found, str) and found else context
        for reference in _parse_references(writes):
            start, end = reference.span
            place = " > ".join((reference.title, *reference.crumbs, *reference.heading_path))
            texts[reference.chunk_id] = f"{place}\n{context[start:end]}"
    return texts


def _parse_references(writes: Mapping[str, JsonValue]) -> tuple[SourceReference, ...]:
    try:
        return _REFERENCES.validate_python(writes.get("source_references") or ())
    except ValidationError:
        return ()  # the sources are then reported as unknown, not as supporting anything


def _parse_count(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


def _parse_cost(value: JsonValue) -> Decimal | None:
    try:
        return None if value is None else Decimal(str(value))
    except InvalidOperation:
        return None
