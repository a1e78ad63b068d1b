"""Adds up tokens and cost of a question's model calls, for the metadata of its reply."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from broker.values import Fields, JournalEntry

if TYPE_CHECKING:
    from pydantic import JsonValue

    from broker.journal_events import JournalEvent

ATTRIBUTE = "model_usage"
BUDGET_EXHAUSTED = "budget_exhausted"
"""The journal event of a hop in which a budget allowed no further call."""
_RULES = "offline"
_TOKENS = ("input_tokens", "output_tokens", "cached_input_tokens")


def add_model_usage(payload: "Mapping[str, JsonValue]", calls: "Iterable[JournalEvent]") -> Fields:
    """Return the attribute `model_usage` with these calls added; nothing without a model call.

    `cost_usd` (USD, as text) is None as soon as the price of one call is unknown. An answer from
    the cache, which another question had paid, counts as a cache hit: it has no tokens and no cost,
    and increases `saved_usd`.
    """
    made = [
        call.fields
        for call in calls
        if isinstance(call, JournalEntry)
        and call.kind == "model_call"
        and call.fields.get("model") != _RULES
    ]
    if not made:
        return {}
    found = payload.get(ATTRIBUTE)
    before: Mapping[str, JsonValue] = found if isinstance(found, dict) else {}
    hits = [call for call in made if call.get("from_cache")]
    usage: Fields = {
        "calls": _read_count(before, "calls") + len(made) - len(hits),
        **{name: sum(_read_count(one, name) for one in (before, *made)) for name in _TOKENS},
        "cost_usd": _add(before, made, "cost_usd"),
    }
    if hits or "cache_hits" in before:
        usage["cache_hits"] = _read_count(before, "cache_hits") + len(hits)
        usage["saved_usd"] = _add(before, hits, "saved_usd")
    return {ATTRIBUTE: usage}


def find_exhausted_budget(calls: "Iterable[JournalEvent]") -> Fields:
    """Return the attribute `exhausted_budget` after a refused reservation, else nothing."""
    for call in calls:
        if isinstance(call, JournalEntry) and call.kind == BUDGET_EXHAUSTED:
            return {"exhausted_budget": call.fields["budget"]}
    return {}


def _read_count(fields: "Mapping[str, JsonValue]", name: str) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) else 0


def _add(
    before: "Mapping[str, JsonValue]", made: "Iterable[Mapping[str, JsonValue]]", name: str
) -> str | None:
    """Return the sum of prices; None when one of them is unknown."""
    total = Decimal(0)
    for value in (before.get(name, "0"), *(call.get(name) for call in made)):
        if value is None:
            return None
        total += Decimal(str(value))
    return str(total)
