"""The totals of each agent of a message: time, cost, errors."""

from typing import Any

from broker.values import JournalEntry
from gateway.trajectory import sum_agents


def run(role: str, milliseconds: float, branch: str = "", **more: Any) -> JournalEntry:
    fields: dict[str, Any] = {
        "role": role,
        "status": "completed",
        "milliseconds": milliseconds,
        "branch": branch,
    }
    return JournalEntry("agent_run", {**fields, **more})


def call_model(branch: str, cost: str | None) -> JournalEntry:
    return JournalEntry(
        "model_call",
        {"branch": branch, "input_tokens": 8, "output_tokens": 2, "cost_usd": cost},
    )


def test_each_agent_has_its_time_its_cost_and_its_errors_over_all_branches() -> None:
    totals = sum_agents(
        [
            call_model("m1", "0.01"),
            call_model("m2", "0.02"),
            run("extractor", 3.0, "m1"),
            run("compliance", 40.0, "m2", writes={"errors": [{"error_id": "RD-1"}]}),
            run("compliance", 2.5, "m2", status="failed"),
        ]
    )

    found = {one.agent: one for one in totals}
    assert [one.agent for one in totals] == ["compliance", "extractor"], "the slowest first"
    assert (found["compliance"].runs, found["compliance"].total_time_ms) == (2, 42.5)
    assert (found["compliance"].cost_usd, found["compliance"].error_count) == ("0.02", 2)
    assert (found["extractor"].model_calls, found["extractor"].input_tokens) == (1, 8)
    assert found["extractor"].error_count == 0


def test_the_cost_of_an_agent_is_unknown_if_that_of_one_call_is() -> None:
    known = call_model("", "0.01")

    [one] = sum_agents([known, call_model("", None), known, run("triage", 1.0)])

    assert (one.model_calls, one.cost_usd) == (3, None)
