"""Chooses the fixed text for a message that asks nothing of the documents."""

from collections.abc import Mapping

from pydantic import JsonValue

from envelope.conversation import ClarificationReason, ConversationAct
from manager.port import ReplyTexts

_Reason = ClarificationReason
_TEXTS = {
    ConversationAct.GREETING: "push_start",
    ConversationAct.THANKS: "act_thanks",
    ConversationAct.FAREWELL: "act_farewell",
    ConversationAct.ACKNOWLEDGEMENT: "act_acknowledgement",
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


def act_text(
    payload: Mapping[str, JsonValue], texts: ReplyTexts, language: str, domain_name: str
) -> str:
    """Return the fixed text for the act of the message."""
    act = find_act(payload)
    key = _why_key(payload.get("history")) if act is ConversationAct.WHY else None
    if key is None:
        key = _TEXTS.get(act or ConversationAct.NO_ANSWER_YET, "act_no_answer")
    return texts.text(key, language, domain_name=domain_name)


def _why_key(history: JsonValue) -> str | None:
    """Return the text that explains the last turn; None if there is none."""
    last = history[-1] if isinstance(history, list) and history else None
    reason = last.get("reason") if isinstance(last, dict) else None
    if reason not in set(_Reason):
        return None
    return _WHY.get(_Reason(str(reason)), "why_asked")
