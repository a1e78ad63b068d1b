"""The part of a reply about the way that answered: triage, calls of tools, and a fallback."""

from collections.abc import Mapping

from pydantic import JsonValue

from envelope.ways.tool_loop import WayName

_MOST_CALLS = 100
_CALL_FIELDS = (
    "tool_name", "arguments", "success", "error_type", "error", "duration_ms", "attempts",
)  # fmt: skip


def describe_way(payload: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the fields of the reply about its way; none where one search answered from the start.

    `tool_calls` are in the order in which their results arrived.
    """
    triage, executions = payload.get("triage"), payload.get("tool_executions")
    fallback, assessment = payload.get("way_fallback"), payload.get("assessment")
    calls = [_describe_call(one) for one in _list_objects(executions)[:_MOST_CALLS]]
    budget = _describe_budget(payload)
    if not (triage or calls or fallback):
        return {"budget": budget} if "exhausted" in budget else {}
    report: dict[str, JsonValue] = {
        "budget": budget,
        "way": WayName.SEARCH if fallback or not calls else WayName.TOOLS,
        "tool_calls": [*calls],
    }
    if fallback:
        report["way_fallback"] = fallback
    if isinstance(triage, dict):
        report["triage"] = triage
    if isinstance(assessment, dict):
        report["assessment"] = assessment
    return report


def _describe_budget(payload: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return how many calls counted against the budgets, and the budget that was used up.

    A call of a tool that was refused before it ran counts against none.
    """
    usage, exhausted = payload.get("model_usage"), payload.get("exhausted_budget")
    made = [one for one in _list_objects(payload.get("tool_executions")) if one.get("attempts")]
    budget: dict[str, JsonValue] = {
        "model_calls": usage.get("calls") if isinstance(usage, dict) else 0,
        "tool_calls": len(made),
    }
    return {**budget, "exhausted": exhausted} if exhausted else budget


def _describe_call(execution: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: execution[name] for name in _CALL_FIELDS if name in execution}


def _list_objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
