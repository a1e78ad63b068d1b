"""Offers the questions of one message that are still to be answered, after the answer to one."""

from collections.abc import Mapping

from pydantic import JsonValue

from citations.links import plain_line
from envelope.conversation import ClarificationReason, Pause
from envelope.envelope import Envelope
from envelope.outcome import Outcome
from manager.port import ReplyTexts

Reply = dict[str, JsonValue]
_ENDS_A_QUESTION = frozenset({Outcome.ANSWERED.value, Outcome.REFUSED.value})


def find_remaining(payload: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Return the questions of the message, or of an earlier one, that are still open."""
    value = payload.get("remaining_questions")
    return tuple(str(one) for one in value) if isinstance(value, list) else ()


def make_offer(envelope: Envelope, reply: Reply) -> Pause | None:
    """Return the pause that lets the next turn choose an open question by its number."""
    remaining = find_remaining(envelope.payload)
    if not remaining or reply["outcome"] not in _ENDS_A_QUESTION:
        return None
    return Pause(
        pause_id=envelope.message_id,
        original_question=str(envelope.payload.get("canonical_question") or ""),
        original_text=str(envelope.payload.get("text") or ""),
        reason=ClarificationReason.MULTIPLE_TOPICS,
        asked=str(reply["text"]),
        options=remaining,
        is_offer=True,
        groups=envelope.groups or None,
    )


def add_offer(
    reply: Reply, payload: Mapping[str, JsonValue], texts: ReplyTexts, language: str
) -> Reply:
    """Return the reply with the open questions below it: as a list, and as buttons."""
    remaining = [plain_line(one) for one in find_remaining(payload)]
    if not remaining or reply["outcome"] not in _ENDS_A_QUESTION:
        return reply
    listed = [f"{number}. {one}" for number, one in enumerate(remaining, 1)]
    offered = "\n".join((texts.text("also_asked", language), *listed))
    known = reply.get("suggested_actions")
    actions: list[JsonValue] = [{"label": one, "value": one, "kind": "option"} for one in remaining]
    return {
        **reply,
        "text": f"{reply['text']}\n\n{offered}",
        "suggested_actions": [*(known if isinstance(known, list) else ()), *actions],
    }
