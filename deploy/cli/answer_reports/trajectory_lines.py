"""Formats the trajectory of a message and the totals of its agents for a terminal."""

import json
from collections.abc import Iterator, Sequence

from broker.values import JournalEntry
from deploy.cli.printing import WIDTH
from gateway.trajectory import (
    AgentTotals,
    StepKind,
    TrajectoryMetrics,
    TrajectoryStep,
    read_trajectory,
    sum_agents,
)

_MARKS = {StepKind.THOUGHT: "?", StepKind.ACTION: ">", StepKind.OBSERVATION: "<"}
_WIDTH = 22


def list_trajectory_lines(entries: Sequence[JournalEntry]) -> Iterator[str]:
    """Yield a line for each step, the metrics, and a line for each agent."""
    found = read_trajectory(entries)
    for step in found.steps:
        yield _describe_step(step)
    if not found.steps:
        yield "no thoughts and no calls of tools"
    yield ""
    yield from _describe_metrics(found.compute_metrics())
    yield ""
    yield f"{'agent':<{_WIDTH}} {'runs':>5} {'ms':>9} {'calls':>6} {'USD':>10} {'errors':>7}"
    for one in sum_agents(entries):
        yield _describe_agent(one)


def _describe_step(step: TrajectoryStep) -> str:
    head = f"{step.at_ms:>8.0f} ms {_MARKS[step.kind]} {step.agent} {step.iteration}: "
    match step.kind:
        case StepKind.ACTION:
            text = f"{step.tool_name} {json.dumps(step.tool_input, ensure_ascii=False)}"
        case StepKind.OBSERVATION:
            ending = "" if step.error_type is None else f" ({step.error_type})"
            text = f"{step.tool_name}{ending}: {step.content}"
        case _:
            text = step.content
    line = " ".join(f"{head}{text}".split())
    # The times stand below each other.
    line = f"{'':>{len(head) - len(head.lstrip())}}{line}"
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def _describe_metrics(metrics: TrajectoryMetrics) -> Iterator[str]:
    cost = "cost unknown" if metrics.cost_usd is None else f"{metrics.cost_usd} USD"
    yield (
        f"{metrics.steps} steps, {metrics.tool_calls} calls of {metrics.unique_tools} tools, "
        f"{metrics.repeated_calls} repeated"
    )
    yield (
        f"{metrics.success_rate:.0%} succeeded, {metrics.hallucination_rate:.0%} named no tool; "
        f"{metrics.duration_ms:.0f} ms"
    )
    yield f"{metrics.model_calls} model calls, {metrics.tokens} tokens, {cost}"


def _describe_agent(one: AgentTotals) -> str:
    cost = "unknown" if one.cost_usd is None else f"{float(one.cost_usd):.6f}"
    return (
        f"{one.agent[:_WIDTH]:<{_WIDTH}} {one.runs:>5} {one.total_time_ms:>9.1f} "
        f"{one.model_calls:>6} {cost:>10} {one.error_count:>7}"
    )
