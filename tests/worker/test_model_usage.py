from typing import Any

import pytest

from broker.values import JournalEntry
from worker.model_usage import add_model_usage


def call(model: str = "m@openai", cost: str | None = "0.10", **fields: Any) -> JournalEntry:
    return JournalEntry(
        "model_call",
        {"model": model, "input_tokens": 100, "output_tokens": 20, "cost_usd": cost, **fields},
    )


def test_the_calls_of_every_hop_are_added_up() -> None:
    first = add_model_usage({}, [call(), call(error="ModelUnavailable: down")])
    second = add_model_usage(first, [call(cost="0.05", cached_input_tokens=40)])

    assert second["model_usage"] == {
        "calls": 3,
        "input_tokens": 300,
        "output_tokens": 60,
        "cached_input_tokens": 40,
        "cost_usd": "0.25",
    }


def test_a_cache_hit_counts_its_cost_as_saved() -> None:
    hit = call(cost="0", input_tokens=0, output_tokens=0, from_cache=True, saved_usd="0.10")

    first = add_model_usage({}, [call(), hit])
    second = add_model_usage(first, [call()])

    for usage in (first["model_usage"], second["model_usage"]):
        assert isinstance(usage, dict)
        assert (usage["cache_hits"], usage["saved_usd"]) == (1, "0.10")


def test_one_unknown_price_makes_the_sum_unknown() -> None:
    first = add_model_usage({}, [call(cost=None)])
    usage = add_model_usage(first, [call()])["model_usage"]

    assert isinstance(usage, dict)
    assert (usage["calls"], usage["cost_usd"]) == (2, None)


@pytest.mark.parametrize("calls", [[], [call(model="offline")], [JournalEntry("wrote", {})]])
def test_no_usage_is_reported_without_a_vendor_call(calls: list[JournalEntry]) -> None:
    assert add_model_usage({}, calls) == {}


def test_the_usage_of_each_agent_is_added_up_separately() -> None:
    first = add_model_usage({}, [call(task="compliance"), call(task="synthesis", cost=None)])
    usage = add_model_usage(first, [call(task="compliance", cost="0.05")])["model_usage"]

    assert isinstance(usage, dict)
    agents = usage["by_agent"]
    assert isinstance(agents, dict)
    assert agents["compliance"] == {
        "calls": 2,
        "input_tokens": 200,
        "output_tokens": 40,
        "cached_input_tokens": 0,
        "cost_usd": "0.15",
    }
    assert agents["synthesis"]["cost_usd"] is None  # type: ignore[index, call-overload] # an object
