"""Adds up what models cost: the values of the attribute `model_usage`."""

from collections.abc import Mapping
from decimal import Decimal

from pydantic import JsonValue

_PRICES = frozenset({"cost_usd", "saved_usd"})


def add_usages(
    before: Mapping[str, JsonValue], more: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return the sum of two values of the attribute `model_usage`.

    A price is unknown (None) if one of the two is. The totals of each agent are added up, too.
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


def _add_prices(one: JsonValue, other: JsonValue) -> str | None:
    return None if one is None or other is None else str(Decimal(str(one)) + Decimal(str(other)))


def _add_counts(one: JsonValue, other: JsonValue) -> JsonValue:
    return one + other if isinstance(one, int) and isinstance(other, int) else other
