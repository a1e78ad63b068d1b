"""Adds the open parts to an answer: parts without a result, and further questions.

Parts are those into which the swarm divided the question; further questions are those of the same
message that are still to be answered.
"""

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from citations.links import plain_line
from envelope.conversation import ClarificationReason, Pause
from envelope.envelope import Envelope
from envelope.outcome import Outcome
from envelope.swarm import NOTES, TOPIC_CHANGE
from envelope.texts import Texts
from manager.way_report import list_effects, read_parts

Reply = dict[str, JsonValue]
_MOST_PARTS, _LONGEST_PART = 8, 120
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
        flow=envelope.flow,
    )


def add_open_parts(
    reply: Reply, payload: Mapping[str, JsonValue], texts: Texts, language: str
) -> Reply:
    """Return the answer of a swarm, followed by its notes and the unanswered parts."""
    parts = read_parts(payload)
    missing = [_shorten(title) for title, found in parts.items() if not found]
    done = [plain_line(name)[:_LONGEST_PART] for name in list_effects(payload)]
    if done and reply["outcome"] in _ENDS_A_QUESTION:
        note = texts.text("effects_done", language, value=", ".join(done))
        reply = {**reply, "text": f"{reply['text']}\n\n{note}"}
    is_fallback = bool(payload.get("way_fallback"))
    if is_fallback or reply["outcome"] != Outcome.ANSWERED.value:
        return reply
    notes = list(_read_notes(payload, texts, language))
    left = texts.text(TOPIC_CHANGE, language)
    if payload.get("termination_reason") == TOPIC_CHANGE and left not in str(reply["text"]):
        notes.append(left)
    if notes:
        reply = {**reply, "text": "\n\n".join((str(reply["text"]), *notes))}
    if not missing:
        return reply
    more = f" (+{len(missing) - _MOST_PARTS})" if len(missing) > _MOST_PARTS else ""
    note = texts.text(
        "parts_answered",
        language,
        done=str(len(parts) - len(missing)),
        total=str(len(parts)),
        missing=f"{'; '.join(missing[:_MOST_PARTS])}{more}",
    )
    return {**reply, "text": f"{reply['text']}\n\n{note}"}


def _shorten(title: str) -> str:
    """Return the title of a part without its end: a full stop follows the list of parts."""
    return plain_line(title)[:_LONGEST_PART].rstrip("?.!\uff1f\u3002\uff01 ")


def _read_notes(payload: Mapping[str, JsonValue], texts: Texts, language: str) -> Iterator[str]:
    notes = payload.get("report_notes")
    for note in notes if isinstance(notes, list) else ():
        if isinstance(note, dict) and note.get("key") in NOTES:
            value = plain_line(str(note.get("value") or ""))
            yield texts.text(str(note["key"]), language, value=value)


def add_offer(reply: Reply, payload: Mapping[str, JsonValue], texts: Texts, language: str) -> Reply:
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
