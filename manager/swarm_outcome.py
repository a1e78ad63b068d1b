"""Adds the outcome of a swarm to the changes that the end of its message makes."""

from collections.abc import Mapping
from dataclasses import replace

from pydantic import JsonValue

from envelope.encoding import to_json
from envelope.envelope import Envelope
from envelope.outcome import Outcome
from memory.port import Ended

_ENDS = frozenset({Outcome.ANSWERED.value, Outcome.REFUSED.value, Outcome.FAILED.value})
_WORST, _SPAN = 1.0, 9.0
"""The scale of the judge: a score of 0 is 1, one of 1 is 10."""


def note_outcome(ended: Ended, envelope: Envelope, reply: Mapping[str, JsonValue]) -> Ended:
    """Return the changes with the outcome of the swarm of a message, if it had a finished one.

    A swarm that fell back to one search, and one without an answer, did as badly as possible. What
    a person stopped, replaced or still has to answer says nothing about a strategy.
    """
    payload = envelope.payload
    routing, plan = payload.get("routing"), payload.get("swarm_plan")
    kind = routing.get("question_kind") if isinstance(routing, dict) else None
    workers = plan.get("workers") if isinstance(plan, dict) else None
    if not (isinstance(plan, dict) and isinstance(workers, list) and workers and kind):
        return ended
    if reply.get("outcome") not in _ENDS:
        return ended
    fields: dict[str, JsonValue] = {
        "kind": kind,
        "strategy": str(plan.get("strategy"))[:60],
        "workers": len(workers),
        "judge": _rate(payload, reply),
        "cost_usd": _read_cost(payload.get("model_usage")),
        "seconds": round(envelope.total_processing_time, 3),
    }
    return replace(ended, learned=to_json(fields).decode())


def _rate(payload: Mapping[str, JsonValue], reply: Mapping[str, JsonValue]) -> float | None:
    """Return the score of the judge, 1 to 10; None for an answer that nobody judged."""
    score = reply.get("quality_score")
    if reply.get("outcome") != Outcome.ANSWERED.value or payload.get("way_fallback"):
        return _WORST
    if not isinstance(score, int | float):
        return None
    return round(_WORST + _SPAN * min(1.0, max(0.0, float(score))), 2)


def _read_cost(usage: JsonValue) -> float:
    """Return the cost of the models in USD; 0 where it is unknown."""
    cost = usage.get("cost_usd") if isinstance(usage, dict) else None
    try:
        return max(0.0, float(str(cost))) if cost is not None else 0.0
    except ValueError:
        return 0.0
