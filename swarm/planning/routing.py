"""Decides how a request is handled: answered at once, asked back, planned, or cancelled.

The offline rules; a planning model fills in the same `RoutingDecision`.
"""

from collections.abc import Sequence

from llm.offline.dialogue.subjects import asks_completely, points_back
from llm.offline.support import terms, weight_of
from llm.offline.words import normalise
from swarm.information.fields import RequiredInfoField
from swarm.planning.complexity import measure_complexity
from swarm.planning.plan import QueryComplexity, RoutingAction, RoutingDecision

LEAST_COMPLEXITY = 0.2
"""A question below it is answered by one search, unless it needs several workers."""
_CANCELLATIONS = frozenset(
    {
        "cancel", "cancel that", "cancel this", "cancel it", "stop", "stop it", "stop that",
        "abort", "never mind", "nevermind", "forget it", "abbrechen", "stopp", "vergiss es",
        "cancelar", "para", "olvídalo", "annuler", "arrête", "laisse tomber",
    }
)  # fmt: skip


def decide_route(
    text: str,
    *,
    active_question: str = "",
    documents: int = 0,
    missing: Sequence[RequiredInfoField] = (),
    risky_tools: Sequence[str] = (),
) -> RoutingDecision:
    """Return the route of a message.

    `active_question` is what the swarm works on now, if anything: a message that cancels it or is
    about something else ends it. `missing` are facts that workers need and nobody has given.
    """
    complexity = measure_complexity(text, documents=documents)
    if not text.strip():
        return _decide(RoutingAction.SIMPLE_RESPONSE, "there is no message", complexity, sure=1.0)
    if active_question and is_cancellation(text):
        return _decide(
            RoutingAction.SIMPLE_RESPONSE, "the user cancels", complexity, sure=0.95
        ).model_copy(update={"is_cancellation": True})
    changed = bool(active_question) and is_topic_change(active_question, text)
    required = [field.name for field in missing if field.required]
    if required:
        action, reason = RoutingAction.GATHER_INFO, f"needs {', '.join(required)}"
    elif is_simple(complexity):
        action, reason = RoutingAction.SIMPLE_RESPONSE, "one search can answer it"
    else:
        action, reason = RoutingAction.ORCHESTRATE, _describe(complexity)
    decision = _decide(action, reason, complexity, sure=_rate_confidence(complexity))
    return decision.model_copy(
        update={"topic_change_detected": changed, "should_seek_approval": bool(risky_tools)}
    )


def is_simple(complexity: QueryComplexity) -> bool:
    """Return whether one search is enough."""
    return complexity.score < LEAST_COMPLEXITY and complexity.suggested_workers == 1


def is_cancellation(text: str) -> bool:
    """Return whether a message as a whole cancels the work in progress."""
    plain = normalise(text).strip()
    return plain.removeprefix("please ").removesuffix(" please") in _CANCELLATIONS


def is_topic_change(active_question: str, text: str) -> bool:
    """Return whether a message is a complete question about something else."""
    if not asks_completely(text) or points_back(text):
        return False
    return not (_read_subjects(active_question) & _read_subjects(text))


def _decide(
    action: RoutingAction, reason: str, complexity: QueryComplexity, *, sure: float
) -> RoutingDecision:
    return RoutingDecision(
        action=action,
        reasoning=reason,
        confidence=sure,
        requires_agents=("worker",) if action is RoutingAction.ORCHESTRATE else (),
        complexity_estimate=complexity.score,
    )


def _describe(complexity: QueryComplexity) -> str:
    strongest = max(complexity.dimensions, key=lambda name: complexity.dimensions[name])
    return f"complexity {complexity.score:.2f}, mostly {strongest}"


def _rate_confidence(complexity: QueryComplexity) -> float:
    """Return how far the score is from the threshold: a score at the threshold is a guess."""
    return round(min(0.95, 0.5 + 2 * abs(complexity.score - LEAST_COMPLEXITY)), 2)


def _read_subjects(text: str) -> frozenset[str]:
    return frozenset(term for term in terms(text) if weight_of(term) >= 1)
