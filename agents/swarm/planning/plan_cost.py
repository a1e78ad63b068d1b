"""Says what a plan costs at most, before a person approves it."""

from collections.abc import Mapping
from decimal import Decimal

from pydantic import BaseModel

from agents.swarm.planning.plan import SwarmPlan
from tools.dialogue import MOST_CALLS

MOST_STEPS = 6
"""The messages of one worker's model, the last of which writes its result."""


class PlanCost(BaseModel, frozen=True, extra="forbid"):
    """Bounds of a plan: calls of models and tools, and micro-USD of priced tools."""

    workers: int
    model_calls: int
    tool_calls: int
    tool_micros: int | None = None
    model_usd: Decimal | None = None


def measure_cost(
    plan: SwarmPlan,
    prices: Mapping[str, int | None] | None = None,
    *,
    call_usd: Decimal | None = None,
) -> PlanCost:
    """Return the bounds; `prices` are the most that a call of a tool costs, None: not known.

    `call_usd` is the estimated price of one call of a worker's model.
    """
    known = prices or {}
    workers = len(plan.workers)
    calls = workers * (MOST_STEPS - 1) * MOST_CALLS
    named = {tool for worker in plan.workers for tool in worker.tools}
    highest = max((known.get(tool) or 0 for tool in named), default=0)
    model_calls = workers * MOST_STEPS + 1
    return PlanCost(
        workers=workers,
        model_calls=model_calls,
        model_usd=None if call_usd is None else model_calls * call_usd,
        tool_calls=calls,
        tool_micros=calls * highest or None,
    )
