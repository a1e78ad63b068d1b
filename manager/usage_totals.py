"""Adds up model usage, which is stored in the attribute `model_usage`."""

from collections.abc import Mapping
from decimal import Decimal

from pydantic import JsonValue

_PRICES = frozenset({"cost_usd", "saved_usd"})


def add_usages(
    before: Mapping[str, JsonValue], more: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return the sum of two values of the attribute `model_usage`.

    A price is None (unknown) if either of the two is unknown. The totals of each agent are added up
    as well.
    """
    total = dict(before)
    for name, value in more.items():
        if isinstance(value, dict):
            total[name] = _add_agents(total.get(name), value)
            continue
        known = total.get(name, "0" if name in _PRICES else 0)
        total[name] = _add_prices(known, value) if name in _PRICES else _add_counts(known, value)
    return total


def _add_agents(before: JsonValue, more: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    total = dict(before) if isinstance(before, dict) else {}
    for name, value in more.items():
        known = total.get(name)
        if isinstance(value, dict):
            total[name] = add_usages(known if isinstance(known, dict) else {}, value)
    return total


def _add_prices(before: JsonValue, more: JsonValue) -> str | None:
    if before is None or more is None:
        return None
    return str(Decimal(str(before)) + Decimal(str(more)))


def _add_counts(before: JsonValue, more: JsonValue) -> JsonValue:
    return before + more if isinstance(before, int) and isinstance(more, int) else more
