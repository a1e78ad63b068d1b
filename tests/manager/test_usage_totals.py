from pydantic import JsonValue

from manager.usage_totals import add_usages


def test_counts_and_prices_are_added() -> None:
    usage: dict[str, JsonValue] = {"calls": 1, "input_tokens": 10, "cost_usd": "0.10"}

    assert add_usages(usage, {"calls": 2, "cost_usd": "0.05", "cache_hits": 1}) == {
        "calls": 3,
        "input_tokens": 10,
        "cost_usd": "0.15",
        "cache_hits": 1,
    }


def test_a_price_is_unknown_as_soon_as_one_is() -> None:
    assert add_usages({"cost_usd": None}, {"cost_usd": "0.05"})["cost_usd"] is None
    assert add_usages({}, {"cost_usd": None})["cost_usd"] is None
