"""Adds up tokens and cost of a question's model calls, for the metadata of its reply."""

from collections.abc import Iterable, Mapping, Sequence
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
BY_AGENT = "by_agent"


def add_model_usage(payload: "Mapping[str, JsonValue]", calls: "Iterable[JournalEvent]") -> Fields:
    """Return the attribute `model_usage` with these calls added; nothing without a model call.

    `cost_usd` (USD, as text) is None as soon as the price of one call is unknown. An answer from
    the cache, which another question had paid, counts as a cache hit: it has no tokens and no cost,
    and increases `saved_usd`. `by_agent` has calls, tokens and cost of each agent by its task.
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
    agents = _count_by_agent(before.get(BY_AGENT), made)
    return {ATTRIBUTE: {**usage, BY_AGENT: agents} if agents else usage}


def find_exhausted_budget(calls: "Iterable[JournalEvent]") -> Fields:
    """Return the attribute `exhausted_budget` after a refused reservation, else nothing."""
    for call in calls:
        if isinstance(call, JournalEntry) and call.kind == BUDGET_EXHAUSTED:
            return {"exhausted_budget": call.fields["budget"]}
    return {}


def _count_by_agent(before: "JsonValue", made: "Sequence[Mapping[str, JsonValue]]") -> Fields:
    """Return the usage of each agent with these calls added; calls for no task are left out."""
    usage: Fields = dict(before) if isinstance(before, dict) else {}
    for task in dict.fromkeys(str(call["task"]) for call in made if call.get("task")):
        found = usage.get(task)
        known: Mapping[str, JsonValue] = found if isinstance(found, dict) else {}
        own = [call for call in made if call.get("task") == task]
        paid = [call for call in own if not call.get("from_cache")]
        usage[task] = {
            "calls": _read_count(known, "calls") + len(paid),
            **{name: sum(_read_count(one, name) for one in (known, *own)) for name in _TOKENS},
            "cost_usd": _add(known, own, "cost_usd"),
        }
    return usage


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
