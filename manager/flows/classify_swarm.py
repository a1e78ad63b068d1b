"""Derives the event of a hop of the swarm from the attributes that the agent wrote."""

from envelope.ways.swarm import LedgerStep, PlanStep
from manager.flow import Writes
from manager.stage_event import StageEvent

_PLAN_EVENTS = {
    PlanStep.WORK: StageEvent.DONE,
    PlanStep.APPROVE: StageEvent.NEEDS_APPROVAL,
    PlanStep.SEARCH: StageEvent.SEARCHES,
}
_LEDGER_EVENTS = {
    LedgerStep.WORK: StageEvent.BEGINS,
    LedgerStep.ASK_INFORMATION: StageEvent.NEEDS_INPUT,
    LedgerStep.ASK_APPROVAL: StageEvent.NEEDS_APPROVAL,
    LedgerStep.REPLAN: StageEvent.AGAIN,
    LedgerStep.FINISH: StageEvent.DONE,
}


def classify_plan(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether workers begin, a person approves the plan first, or one search is enough."""
    step = str(writes.get("plan_step"))
    return next((_PLAN_EVENTS[one] for one in PlanStep if one == step), StageEvent.FAILED)


def classify_gather(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether facts are missing that only the user knows."""
    if "collected_info" not in writes:
        return StageEvent.FAILED
    return StageEvent.NEEDS_INPUT if writes.get("needs_input") else StageEvent.DONE


def classify_ledger(writes: Writes, _threshold: float) -> StageEvent:
    """Return what follows a round of the workers."""
    step = str(writes.get("ledger_step"))
    return next((_LEDGER_EVENTS[one] for one in LedgerStep if one == step), StageEvent.FAILED)


def classify_work(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether a worker calls tools, or has ended, be it to wait for the user."""
    if writes.get("tool_calls"):
        return StageEvent.CALLS
    return StageEvent.DONE if writes.get("worker_outputs") else StageEvent.FAILED


def classify_synthesis(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether anything was found that an answer can say."""
    return StageEvent.DONE if writes.get("response") else StageEvent.NOTHING
