"""Chooses fixed texts: for messages that ask nothing, and for work that ended before approval."""

from collections.abc import Mapping

from pydantic import JsonValue

from envelope.conversation import ClarificationReason, ConversationAct
from envelope.texts import Texts
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


_Reason = ClarificationReason
_TEXTS = {
    ConversationAct.GREETING: "push_start",
    ConversationAct.THANKS: "act_thanks",
    ConversationAct.FAREWELL: "act_farewell",
    ConversationAct.ACKNOWLEDGEMENT: "act_acknowledgement",
    ConversationAct.EXIT: "act_acknowledgement",
    ConversationAct.CAPABILITIES: "act_capabilities",
    ConversationAct.STRAY_CHOICE: "push_expired",
    ConversationAct.NO_ANSWER_YET: "act_no_answer",
}
_WHY = {
    _Reason.OUT_OF_SCOPE: "why_scope",
    _Reason.SCOPE_UNCLEAR: "why_scope",
    _Reason.INSUFFICIENT_CONTEXT: "why_missing",
    _Reason.QUALITY_INSUFFICIENT: "why_missing",
    _Reason.INTERNAL_FAULT: "why_fault",
}
COURTESIES = frozenset(ConversationAct) - {ConversationAct.REPHRASE, ConversationAct.CORRECTION}
"""Acts that a fixed text answers; the memory keeps no turn of them."""


def find_act(payload: Mapping[str, JsonValue]) -> ConversationAct | None:
    """Return the act of the message, if it has one."""
    value = payload.get("conversation_act")
    return ConversationAct(value) if value in set(ConversationAct) else None


def act_text(payload: Mapping[str, JsonValue], texts: Texts, language: str, topic: str) -> str:
    """Return the fixed text for the act of the message."""
    act = find_act(payload)
    key = _why_key(payload.get("history")) if act is ConversationAct.WHY else None
    if key is None:
        key = _TEXTS.get(act or ConversationAct.NO_ANSWER_YET, "act_no_answer")
    return texts.text(key, language, topic=topic)


def _why_key(history: JsonValue) -> str | None:
    """Return the text that explains the last turn; None if there is none."""
    last = history[-1] if isinstance(history, list) and history else None
    reason = last.get("reason") if isinstance(last, dict) else None
    if reason not in set(_Reason):
        return None
    return _WHY.get(_Reason(str(reason)), "why_asked")
