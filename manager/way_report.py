"""The part of a reply about the way that answered: triage, calls of tools, and a fallback."""

from collections.abc import Mapping

from pydantic import JsonValue

from envelope.ways.tool_loop import WayName

_MOST_CALLS = 100
_CALL_FIELDS = (
    "tool_name", "arguments", "success", "error_type", "error", "duration_ms", "attempts",
)  # fmt: skip
_PLANNER = "reason"
"""The agent that calls in the tool loop: it is not named."""
_TEAM_FIELDS = ("sequence_notes", "errors", "verdicts", "citation_check", "review_report")


def describe_way(payload: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the fields of the reply about its way; none where one search answered from the start.

    `tool_calls` are in the order in which their results arrived.
    """
    triage, executions = payload.get("triage"), payload.get("tool_executions")
    fallback, assessment = payload.get("way_fallback"), payload.get("assessment")
    calls = [_describe_call(one) for one in _list_objects(executions)[:_MOST_CALLS]]
    if not (triage or calls or fallback):
        return {}
    team = describe_team(payload)
    way = WayName.SPECIALISTS if team else WayName.TOOLS if calls else WayName.SEARCH
    report: dict[str, JsonValue] = {
        "way": WayName.SEARCH if fallback else way,
        "tool_calls": [*calls],
        **team,
    }
    if fallback:
        report["way_fallback"] = fallback
    if isinstance(triage, dict):
        report["triage"] = triage
    if isinstance(assessment, dict):
        report["assessment"] = assessment
    return report


def describe_team(payload: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return what specialists left for the reply; empty if none has worked."""
    found = payload.get("extracted")
    if not isinstance(found, dict):
        return {name: payload[name] for name in ("errors",) if payload.get(name)}
    report: dict[str, JsonValue] = {
        "agent_sequence": payload.get("agent_sequence") or [],
        "documents": found.get("documents") or [],
        "against": found.get("against") or [],
    }
    return report | {name: payload[name] for name in _TEAM_FIELDS if payload.get(name)}


def _describe_call(execution: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    caller = execution.get("agent_name")
    named = {} if caller in {None, _PLANNER} else {"agent_name": caller}
    return named | {name: execution[name] for name in _CALL_FIELDS if name in execution}


def _list_objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
