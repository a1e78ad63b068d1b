"""The trajectory of a message, as a view of its journal."""

from typing import Any

from broker.values import JournalEntry
from gateway.trajectory import StepKind, Trajectory, read_trajectory, sum_agents


def run(role: str, at: float, branch: str = "", **writes: Any) -> JournalEntry:
    fields: dict[str, Any] = {
        "role": role,
        "status": "completed",
        "writes": writes,
        "milliseconds": 5.0,
    }
    return JournalEntry("agent_run", fields | ({"branch": branch} if branch else {}), at=at)


def call_model(at: float, cost: str | None = "0.002") -> JournalEntry:
    return JournalEntry(
        "model_call",
        {"task": "compliance", "input_tokens": 90, "output_tokens": 10, "cost_usd": cost},
        at=at,
    )


def execution(tool: str, error_type: str) -> dict[str, Any]:
    return {
        "tool_name": tool,
        "agent_name": "compliance",
        "success": error_type == "success",
        "error_type": error_type,
        "result_summary": f"{tool}: {error_type}",
    }


ASKED = {"tool": "graph_search", "arguments": {"query": "subcontractor"}}


JOURNAL = [
    JournalEntry("accepted", {"text": "?"}, at=10.0),
    run("triage", 10.1, triage={"reasoning": "a contract and a law"}),
    call_model(10.2),
    run(
        "compliance", 10.2, "m1/c1",
        tool_calls=[ASKED, ASKED, {"tool": "lawyer", "arguments": {}}],
        plan_messages=[{"kind": "model", "text": "who are the subcontractors?"}],
    ),
    run("tool", 10.3, "m1/c1/t1", tool_executions=[execution("graph_search", "success")]),
    run("tool", 10.3, "m1/c1/t3", tool_executions=[execution("lawyer", "hallucination")]),
    run("compliance", 10.5, "m1/c1", stored_parts={}),
]  # fmt: skip


def test_a_journal_is_read_as_thoughts_actions_and_observations() -> None:
    steps = read_trajectory(JOURNAL).steps

    assert [(step.kind.value, step.agent, step.iteration) for step in steps] == [
        ("thought", "triage", 1),
        ("thought", "compliance", 1),
        ("action", "compliance", 1),
        ("action", "compliance", 1),
        ("action", "compliance", 1),
        ("observation", "compliance", 1),
        ("observation", "compliance", 1),
    ]
    assert (steps[1].content, steps[1].branch) == ("who are the subcontractors?", "m1/c1")
    assert steps[2].tool_input == {"query": "subcontractor"}
    assert (steps[-1].success, steps[-1].error_type, steps[-1].at_ms) == (
        False, "hallucination", 300.0,
    )  # fmt: skip


def test_its_metrics_count_calls_repeats_inventions_tokens_cost_and_time() -> None:
    metrics = read_trajectory(JOURNAL).compute_metrics()

    assert (metrics.steps, metrics.thoughts, metrics.tool_calls) == (7, 2, 3)
    assert (metrics.unique_tools, metrics.repeated_calls) == (2, 1)
    assert (metrics.success_rate, metrics.hallucination_rate) == (0.5, 0.5)
    assert (metrics.model_calls, metrics.tokens, metrics.cost_usd) == (1, 100, "0.002")
    assert metrics.duration_ms == 500.0


def test_one_call_without_a_price_leaves_the_cost_unknown() -> None:
    metrics = read_trajectory([*JOURNAL, call_model(10.6, None)]).compute_metrics()

    assert (metrics.model_calls, metrics.cost_usd) == (2, None)


def test_without_entries_there_are_no_steps_and_no_rates() -> None:
    metrics = read_trajectory([]).compute_metrics()

    assert (metrics.steps, metrics.success_rate, metrics.hallucination_rate) == (0, None, None)


def test_steps_can_be_added_one_by_one() -> None:
    built = Trajectory()
    built.add_thought("it names a law", 1, agent="extractor")
    built.add_action("search", {"query": "law"}, 1, agent="extractor")
    built.add_observation("2 passages", True, 1, agent="extractor", tool_name="search")

    assert [step.kind for step in built.steps] == list(StepKind)
    assert built.compute_metrics().success_rate == 1.0


def make_run(role: str, milliseconds: float, branch: str = "", **more: Any) -> JournalEntry:
    fields: dict[str, Any] = {
        "role": role,
        "status": "completed",
        "milliseconds": milliseconds,
        "branch": branch,
    }
    return JournalEntry("agent_run", {**fields, **more})


def make_call(branch: str, cost: str | None) -> JournalEntry:
    return JournalEntry(
        "model_call", {"branch": branch, "input_tokens": 8, "output_tokens": 2, "cost_usd": cost}
    )


def test_each_agent_has_its_time_its_cost_and_its_errors_over_all_branches() -> None:
    totals = sum_agents(
        [
            make_call("m1", "0.01"),
            make_call("m2", "0.02"),
            make_run("extractor", 3.0, "m1"),
            make_run("compliance", 40.0, "m2", writes={"errors": [{"error_id": "RD-1"}]}),
            make_run("compliance", 2.5, "m2", status="failed"),
        ]
    )

    results = {agent_totals.agent: agent_totals for agent_totals in totals}
    assert [agent_totals.agent for agent_totals in totals] == ["compliance", "extractor"], (
        "the slowest first"
    )
    assert (results["compliance"].runs, results["compliance"].total_time_ms) == (2, 42.5)
    assert (results["compliance"].cost_usd, results["compliance"].error_count) == ("0.02", 2)
    assert (results["extractor"].model_calls, results["extractor"].input_tokens) == (1, 8)
    assert results["extractor"].error_count == 0


def test_the_cost_of_an_agent_is_unknown_if_that_of_one_call_is() -> None:
    known = make_call("", "0.01")

    [one] = sum_agents([known, make_call("", None), known, make_run("triage", 1.0)])

    assert (one.model_calls, one.cost_usd) == (3, None)
