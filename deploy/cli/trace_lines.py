"""Formats what a trace shows of a message: its trajectory, the totals of its agents, its errors."""

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from pydantic import JsonValue

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


LONGEST_QUESTION = 200


def list_error_lines(entries: Sequence[JournalEntry]) -> Iterator[str]:
    """Yield the question, shortened, and the lines of each error that the journal has."""
    text = str(entries[0].fields.get("text") or "") if entries else ""
    yield " ".join(text.split())[:LONGEST_QUESTION]
    found = {str(one.get("error_id")): one for one in _list_errors(entries)}
    if not found:
        yield "no errors"
    for error_id, one in found.items():
        severity, phase = one.get("severity", "high"), one.get("phase") or "unknown phase"
        yield f"{error_id}  {severity}  {phase}  {one.get('specialist')}"
        yield f"    {one.get('text')}"


def _list_errors(entries: Sequence[JournalEntry]) -> Iterator[dict[str, JsonValue]]:
    """Yield the errors that agents wrote, and those of the reply, which has the manager's too."""
    for entry in entries:
        source: JsonValue = None
        if entry.kind == "agent_run":
            source = entry.fields.get("writes")
        elif entry.kind == "finished":
            source = dict(entry.fields)
        errors = source.get("errors") if isinstance(source, dict) else None
        for one in errors if isinstance(errors, list) else ():
            if isinstance(one, dict):
                yield one


_NAME_WIDTH = 24


def list_agent_costs(usage: Mapping[str, JsonValue]) -> Iterator[str]:
    """Yield a line for each agent of `model_usage`, the most expensive one first."""
    found = usage.get("by_agent")
    agents = found if isinstance(found, dict) else {}
    known = [(name, one) for name, one in agents.items() if isinstance(one, dict)]
    known.sort(key=lambda pair: (-_read_price(pair[1]), pair[0]))
    for name, one in known:
        price = one.get("cost_usd")
        cost = "cost unknown" if price is None else f"{Decimal(str(price)):.6f} USD"
        tokens = f"{one.get('input_tokens', 0)} + {one.get('output_tokens', 0)} tokens"
        yield f"  {name[:_NAME_WIDTH]:<{_NAME_WIDTH}} {one.get('calls', 0)} calls, {tokens}, {cost}"


def _read_price(agent: Mapping[str, JsonValue]) -> Decimal:
    price = agent.get("cost_usd")
    return Decimal(0) if price is None else Decimal(str(price))
