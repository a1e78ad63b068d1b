"""Decides the next step of a message with pure functions, without I/O or a clock."""

from dataclasses import dataclass
from math import ceil
from typing import Literal

from envelope.conversation import REFUSALS, ClarificationReason
from envelope.outcome import Outcome
from envelope.role import Role
from envelope.swarm import TOPIC_CHANGE
from manager.flow import (
    Counter,
    Ending,
    Final,
    Flow,
    Next,
    PauseFor,
    Return,
    Row,
    Scatter,
    Stage,
    StageEvent,
    Target,
)
from manager.flows.stages import CLARIFICATION

Counters = dict[str, int]
NO_BETTER = "no_better_answer"
"""The termination reason if further work did not improve the best answer."""
_PAUSES = {
    Ending.PAUSE: Outcome.CLARIFICATION,
    Ending.PAUSE_OVER: Outcome.REFUSED,
    Ending.PAUSE_FOREIGN: Outcome.REFUSED,
}
_LIMITS = {
    Counter.RESEARCH: "research",
    Counter.REGENERATE: "regenerate",
    Counter.NEXT_MODEL: "next_model",
    Counter.ROUND: "rounds",
    Counter.WAVE: "waves",
    Counter.STEP: "steps",
    Counter.RETRY: "retries",
    Counter.ITERATION: "iterations",
    Counter.SEQUENCE: "sequence",
    Counter.TURN: "turns",
}
"""The name of the field of `Limits` for each counter."""
_NO_ATTEMPTS = frozenset(
    {
        Counter.ROUND,
        Counter.WAVE,
        Counter.SEQUENCE,
        Counter.STEP,
        Counter.ITERATION,
        Counter.TURN,
    }
)
"""Counters that do not count attempts of an agent."""
_IMPROVES = (Counter.RESEARCH, Counter.REGENERATE, Counter.ITERATION)
"""Counters of work that improves an answer."""
Limit = Literal["process_count_limit", "total_time_limit", "deadline"]


@dataclass(slots=True)
class Send:
    """Sends the envelope to the role of a stage."""

    stage: Stage


@dataclass(frozen=True, slots=True)
class End:
    """Ends the message. If `outcome` is None, the message is answered with the best answer or, if
    there is none, fails.
    """

    ending: Ending
    outcome: Outcome | None


Action = Send | End | Scatter | Return | PauseFor


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a message; times are in seconds."""

    research: int = 2
    regenerate: int = 2
    next_model: int = 1
    rounds: int = 3
    waves: int = 20
    steps: int = 10
    retries: int = 3
    iterations: int = 2
    parallel_tools: int = 3
    parallel_workers: int = 8
    enough_share: float = 1.0
    sequence: int = 20
    turns: int = 20
    process_count: int = 60
    total_time_seconds: float = 110.0
    total_time_reserve_seconds: float = 5.0
    deadline_reserve_seconds: float = 1.0
    pause_seconds: float = 86_400.0

    def of(self, counter: Counter) -> int:
        """Return how many times rows with this counter may be taken."""
        limit: int = getattr(self, _LIMITS[counter])
        return limit

    def find_at_once(self, scatter: Scatter) -> int:
        """Return how many branches run at the same time, limited by the settings for tools and
        workers.
        """
        settings = {Role.TOOL: self.parallel_tools, Role.WORK: self.parallel_workers}
        at_once = scatter.join.at_once
        return min(at_once, settings.get(scatter.branch.role, at_once))

    def find_needed(self, scatter: Scatter, branches: int) -> int:
        """Return how many branches must succeed before the message continues without the others."""
        at_least = scatter.join.at_least
        if at_least is not None:
            return min(at_least, branches)
        share = self.enough_share if scatter.branch.role is Role.WORK else 1.0
        return branches if share >= 1 else max(1, ceil(share * branches))


@dataclass(slots=True)
class Context:
    """The input of the state machine in addition to stage and event.

    `has_best_answer` refers to a judged answer, and `has_unjudged_answer` to one that has not been
    judged yet. `stop_reason` is the reason why no further work may start, such as an exhausted
    budget. `sequence` is `agent_sequence`, and `sequence_place` is the index of its next name.
    Times are in seconds.
    """

    process_count: int = 0
    total_seconds: float = 0.0
    remaining_seconds: float = float("inf")
    has_best_answer: bool = False
    has_unjudged_answer: bool = False
    reason: ClarificationReason | None = None
    in_branch: bool = False
    stop_reason: str = ""
    sequence: tuple[str, ...] = ()
    sequence_place: int = 0
    lifetime_seconds: float = 0.0


@dataclass(slots=True)
class Decision:
    """The decision for a hop: the actions, and the attributes that the manager records.

    `sequence_place` is the index in `agent_sequence` after the stage that starts; `skipped`
    contains the names before it that the flow does not allow here. `is_fallback` is true if a way
    of answering failed and a search replaces it. `attempt` is the number of the current attempt,
    starting with 0.
    """

    row: str
    actions: tuple[Action, ...]
    counters: Counters
    reason: ClarificationReason | None = None
    termination_reason: str = ""
    sequence_place: int | None = None
    skipped: tuple[str, ...] = ()
    is_fallback: bool = False
    attempt: int = 0


def decide(
    flow: Flow, stage: Stage, did: StageEvent, counters: Counters, limits: Limits, context: Context
) -> Decision:
    """Return the decision for a hop; raises `FlowError` if the table has no row for it."""
    row = flow.row(stage, did)
    decision = _take(flow, row, counters, limits, context)
    decision.is_fallback = row.is_fallback
    if raised := decision.counters:
        decision.attempt = sum(raised[name] for name in raised if name not in _NO_ATTEMPTS)
    return decision


def _take(flow: Flow, row: Row, counters: Counters, limits: Limits, context: Context) -> Decision:
    limit = _limit(flow, limits, context)
    if limit is not None and not isinstance(row.go_to, Final | Return):
        end = Return() if context.in_branch else End(Ending.BEST, None)
        return Decision(row.name, (end,), counters, context.reason, termination_reason=limit)
    if context.has_best_answer and _refuses_repeated_work(row, counters, context):
        end = End(Ending.BEST, Outcome.ANSWERED)
        why = context.stop_reason or NO_BETTER
        return Decision(row.name, (end,), counters, context.reason, termination_reason=why)
    if row.is_fallback and context.stop_reason == TOPIC_CHANGE:
        end = End(Ending.BEST, None)
        return Decision(row.name, (end,), counters, context.reason, termination_reason=TOPIC_CHANGE)
    if row.is_fallback and context.has_unjudged_answer:
        # A search would start over, and its result would replace the answer that exists.
        why = f"{row.after}_failed" if row.did is StageEvent.FAILED else NO_BETTER
        end = End(Ending.BEST, None)
        return Decision(row.name, (end,), counters, context.reason, termination_reason=why)
    if row.counts is None:
        return _go(row, row.go_to, counters, context)
    taken = counters.get(row.counts, 0)
    refuses = row.counts is Counter.ROUND and context.reason in REFUSALS
    if _is_stopped(row, context):
        return _stop(row, counters, context)
    if taken < limits.of(row.counts) or refuses:
        # A round is counted when it ends; the pause stores the counter beyond the end of this
        # message.
        raised = counters if row.counts is Counter.ROUND else {**counters, row.counts: taken + 1}
        return _go(row, row.go_to, raised, context)
    return _at_limit(row, counters, context)


def _refuses_repeated_work(row: Row, counters: Counters, context: Context) -> bool:
    """Return whether work that was repeated to improve an answer ended in a refusal."""
    reason = context.reason if context.reason is not None else row.reason
    repeated = any(counters.get(counter, 0) for counter in _IMPROVES)
    return repeated and row.go_to is CLARIFICATION and reason in REFUSALS


def _limit(flow: Flow, limits: Limits, context: Context) -> Limit | None:
    most_hops = limits.process_count if flow.most_hops is None else flow.most_hops
    if context.process_count >= most_hops:
        return "process_count_limit"
    # A long job has more time than a question; its agents may use all of it except the reserve.
    own_seconds = context.lifetime_seconds - limits.total_time_reserve_seconds
    most_seconds = max(limits.total_time_seconds, own_seconds)
    if flow.most_hops is None and context.total_seconds >= most_seconds:
        return "total_time_limit"
    if context.remaining_seconds <= limits.deadline_reserve_seconds:
        return "deadline"
    return None


def _at_limit(row: Row, counters: Counters, context: Context) -> Decision:
    """Return the decision at the limit of the row. If there is a best answer, it replaces a
    refusal.

    If rewriting reached its limit, the reason is an internal fault, because the lack of a good
    enough answer says nothing about the documents.
    """
    if isinstance(row.at_limit, Stage) and row.at_limit is not CLARIFICATION:
        return _go(row, row.at_limit, counters, context)
    reason = f"{row.counts}_limit"
    if context.has_best_answer:
        end = End(Ending.BEST, Outcome.ANSWERED)
        return Decision(row.name, (end,), counters, context.reason, termination_reason=reason)
    target = row.at_limit if row.at_limit is not None else Final(Ending.BEST)
    if context.in_branch and isinstance(target, Final):
        target = Return()
    decision = _go(row, target, counters, context)
    is_fault = row.counts is Counter.REGENERATE
    why = (
        ClarificationReason.INTERNAL_FAULT if is_fault else ClarificationReason.INSUFFICIENT_CONTEXT
    )
    return Decision(decision.row, decision.actions, counters, why, termination_reason=reason)


def _is_stopped(row: Row, context: Context) -> bool:
    """Return whether the stop reason prevents this row."""
    if row.counts is Counter.ROUND:
        return context.stop_reason == TOPIC_CHANGE
    return context.stop_reason != ""


def _stop(row: Row, counters: Counters, context: Context) -> Decision:
    """Return the decision for a row that must not start further work.

    It leads to the target at the limit, which answers from the material so far, but not to a
    refusal, which would wrongly suggest that the documents are insufficient.
    """
    target = row.at_limit
    if context.in_branch:
        target = target if isinstance(target, Stage | Return) else Return()
    elif context.has_best_answer or target is None or target is CLARIFICATION:
        target = Final(Ending.BEST)
    decision = _go(row, target, counters, context)
    return Decision(
        decision.row,
        decision.actions,
        counters,
        context.reason,
        termination_reason=context.stop_reason,
    )


def _go(row: Row, target: Target, counters: Counters, context: Context) -> Decision:
    reason = context.reason if context.reason is not None else row.reason
    if isinstance(target, Stage):
        return Decision(row.name, (Send(target),), counters, reason)
    if isinstance(target, Next):
        return _take_next(row, target, counters, context)
    if not isinstance(target, Final):
        return Decision(row.name, (target,), counters, reason)
    end = End(target.ending, _outcome(row, target.ending, reason))
    return Decision(row.name, (end,), counters, reason, _why_ended(row, target.ending, context))


def _take_next(row: Row, target: Next, counters: Counters, context: Context) -> Decision:
    """Return the decision for the next allowed stage of the sequence, or for the end of the
    sequence.
    """
    allowed = {stage.name: stage for stage in target.stages}
    rest = context.sequence[context.sequence_place :]
    first = next((place for place, name in enumerate(rest) if name in allowed), len(rest))
    stage = allowed[rest[first]] if first < len(rest) else target.done
    place = context.sequence_place + min(first + 1, len(rest))
    action = stage if isinstance(stage, Return) else Send(stage)
    decision = Decision(row.name, (action,), counters, context.reason or row.reason)
    decision.sequence_place, decision.skipped = place, rest[:first]
    return decision


def _why_ended(row: Row, ending: Ending, context: Context) -> str:
    if context.stop_reason:
        return context.stop_reason
    return f"{row.after}_failed" if ending is Ending.BEST else ""


def _outcome(row: Row, ending: Ending, reason: ClarificationReason | None) -> Outcome | None:
    if ending is Ending.BEST:
        return None
    if ending in _PAUSES:
        return _PAUSES[ending]
    if row.after is not CLARIFICATION:
        return Outcome.ANSWERED
    if reason is ClarificationReason.INTERNAL_FAULT:
        return Outcome.FAILED
    return Outcome.REFUSED if reason in REFUSALS else Outcome.CLARIFICATION
