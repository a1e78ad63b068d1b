"""Totals the tokens and the cost of the model calls of a question, for its reply metadata."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from broker.values import Fields, JournalEntry

if TYPE_CHECKING:
    from pydantic import JsonValue

    from broker.journal_events import JournalEvent

ATTRIBUTE = "model_usage"
BUDGET_EXHAUSTED = "budget_exhausted"
"""The journal event of a hop in which a budget refused a call."""
_RULES = "offline"
_TOKENS = ("input_tokens", "output_tokens", "cached_input_tokens")
BY_AGENT = "by_agent"


def add_model_usage(payload: "Mapping[str, JsonValue]", calls: "Iterable[JournalEvent]") -> Fields:
    """Return the attribute `model_usage` with these calls added, or no attributes if there are no
    calls.

    `cost_usd` (a decimal string in USD) is None if the price of any call is unknown. An answer
    cached for another question counts as a cache hit without tokens or cost, and increases
    `saved_usd`. `by_agent` maps each task to its calls, tokens and cost.
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
    previous = payload.get(ATTRIBUTE)
    before: Mapping[str, JsonValue] = previous if isinstance(previous, dict) else {}
    hits = [call for call in made if call.get("from_cache")]
    usage: Fields = {
        "calls": _read_count(before, "calls") + len(made) - len(hits),
        **{name: sum(_read_count(fields, name) for fields in (before, *made)) for name in _TOKENS},
        "cost_usd": _add(before, made, "cost_usd"),
    }
    if hits or "cache_hits" in before:
        usage["cache_hits"] = _read_count(before, "cache_hits") + len(hits)
        usage["saved_usd"] = _add(before, hits, "saved_usd")
    agents = _count_by_agent(before.get(BY_AGENT), made)
    return {ATTRIBUTE: {**usage, BY_AGENT: agents} if agents else usage}


def find_exhausted_budget(calls: "Iterable[JournalEvent]") -> Fields:
    """Return the attribute `exhausted_budget` if a budget rejected a call, or no attributes."""
    for call in calls:
        if isinstance(call, JournalEntry) and call.kind == BUDGET_EXHAUSTED:
            return {"exhausted_budget": call.fields["budget"]}
    return {}


def _count_by_agent(before: "JsonValue", made: "Sequence[Mapping[str, JsonValue]]") -> Fields:
    """Return the usage by task with these calls added; calls without a task are skipped."""
    usage: Fields = dict(before) if isinstance(before, dict) else {}
    for task in dict.fromkeys(str(call["task"]) for call in made if call.get("task")):
        previous = usage.get(task)
        known: Mapping[str, JsonValue] = previous if isinstance(previous, dict) else {}
        own = [call for call in made if call.get("task") == task]
        paid = [call for call in own if not call.get("from_cache")]
        usage[task] = {
            "calls": _read_count(known, "calls") + len(paid),
            **{
                name: sum(_read_count(fields, name) for fields in (known, *own)) for name in _TOKENS
            },
            "cost_usd": _add(known, own, "cost_usd"),
        }
    return usage


def _read_count(fields: "Mapping[str, JsonValue]", name: str) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) else 0


def _add(
    before: "Mapping[str, JsonValue]", made: "Iterable[Mapping[str, JsonValue]]", name: str
) -> str | None:
    """Return the sum of prices, or None if any of them is unknown."""
    total = Decimal(0)
    for value in (before.get(name, "0"), *(call.get(name) for call in made)):
        if value is None:
            return None
        total += Decimal(str(value))
    return str(total)
