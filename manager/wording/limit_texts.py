"""Names the texts that say why the work on a question ended before an approved answer."""

from envelope.conversation import ClarificationReason
from envelope.ways.swarm import TOPIC_CHANGE
from manager.machine import NO_BETTER

DEAD_LETTER = "dead_letter"
"""The termination reason of a question that no process could work on."""
BUDGETS = (
    "budget_model_calls",
    "budget_tool_calls",
    "budget_tokens",
    "budget_usd",
    "budget_tenant_usd",
)
"""The termination reasons of exhausted budgets."""
_OUT_OF_TIME = ("deadline", "total_time_limit")
_OUT_OF_ATTEMPTS = (
    "process_count_limit",
    "research_limit",
    "regenerate_limit",
    "round_limit",
    NO_BETTER,
    *BUDGETS,
)
_BEST_ANSWERS = {
    **dict.fromkeys(_OUT_OF_TIME, "limit_reached"),
    **dict.fromkeys(_OUT_OF_ATTEMPTS, "attempts_reached"),
    TOPIC_CHANGE: TOPIC_CHANGE,
}
_APOLOGIES = {
    **dict.fromkeys(_OUT_OF_TIME, "deadline"),
    **dict.fromkeys(("process_count_limit", *BUDGETS), "steps_reached"),
}
_REFUSALS = {"round_limit": "rounds_reached", "research_limit": "searches_reached"}
_FIXED_REFUSALS = {
    ClarificationReason.OUT_OF_SCOPE: "refused_out_of_scope",
    ClarificationReason.INSUFFICIENT_CONTEXT: "refused_insufficient_context",
    ClarificationReason.INTERNAL_FAULT: "apology",
}


def name_best_answer_text(termination_reason: str) -> str:
    """Return the key of the text above an answer that went out before it was approved."""
    return _BEST_ANSWERS.get(termination_reason, "fault_reached")


def name_apology(termination_reason: str) -> str:
    """Return the key of the text of an end without an answer."""
    return _APOLOGIES.get(termination_reason, "apology")


def name_refusal_limit(termination_reason: str) -> str | None:
    """Return the key of the text above a refusal at a limit; None if no limit ended the work."""
    return _REFUSALS.get(termination_reason)


def name_fixed_text(reason: ClarificationReason | None) -> str:
    """Return the key of the text that replaces an agent's own words for a reason."""
    return "clarify_again" if reason is None else _FIXED_REFUSALS.get(reason, "clarify_again")
