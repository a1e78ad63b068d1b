"""Begins a pause, which keeps the payload, and continues with it when the reply arrives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import structlog
from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import from_json

from envelope.conversation import ClarificationReason, Pause, PauseQuestion, PauseReply
from envelope.encoding import to_json
from envelope.envelope import Envelope, decode
from envelope.question import Question, has_all
from envelope.swarm import list_open, list_tasks
from envelope.texts import Texts
from manager.flow import Counter, Flow, PauseFor
from manager.machine import Limits, count_rounds, write_payload
from manager.pause_replies import (
    Answered,
    NotOpen,
    OtherTopic,
    ReadReply,
    ReplyLabels,
    Unanswered,
    read_language,
    read_typed,
    read_words,
)
from memory.conversation import KeptPayload, RedisMemory

MOST_KEPT = 256_000
"""The most bytes of the payload that a pause keeps."""
TOO_LARGE = "pause_too_large"
ANOTHER_OPEN = "pause_of_another_open"
"""The reason why a message cannot begin a pause: the conversation waits for the reply of somebody
else.
"""
_OF_ONE_MESSAGE = frozenset(
    {
        "cancelled_tasks", "closes_pause", "exhausted_budget", "keeps_pause", "model_usage",
        "new_pause", "open_pause", "pause_answer", "pause_reply", "pause_state", "people",
        "reply_text", "shows_drafts", "termination_reason",
    }
)  # fmt: skip
"""Attributes that a pause does not keep: they belong to one message."""
_OF_THE_REPLY = (
    "client_keeps_history",
    "history_kept",
    "people",
    "preferences",
    "shows_drafts",
    "statistics",
)
"""Attributes that the message with the reply brings along."""
_LONGEST_TASK = 100
_QUESTIONS = TypeAdapter(tuple[PauseQuestion, ...])
Payload = Mapping[str, JsonValue]

log = structlog.get_logger("manager")


@dataclass(frozen=True, slots=True)
class OpenedPause:
    """A pause that begins; `problem` says why it cannot: the work then goes on without a reply."""

    envelope: Envelope
    kept: KeptPayload | None = None
    problem: str = ""


class Pauses:
    """Begins pauses and resumes them; `flows` are those by which an open pause can go on."""

    def __init__(
        self, flows: Mapping[str, Flow], memory: RedisMemory, texts: Texts, *, limits: Limits
    ) -> None:
        self._flows = flows
        self._memory = memory
        self._labels = _load_labels(texts)
        self._seconds, self._rounds = limits.pause_seconds, limits.rounds

    def begin(self, envelope: Envelope, action: PauseFor, now: float) -> OpenedPause:
        """Return the envelope with its pause, and the kept payload; `now` in Unix seconds.

        A pause without a question, one whose payload is larger than `MOST_KEPT`, and one while the
        pause of somebody else is open have a problem.
        """
        payload = envelope.payload
        if payload.get("keeps_pause"):
            log.info("pause_refused", reason=ANOTHER_OPEN)
            return OpenedPause(envelope, problem=ANOTHER_OPEN)
        asked = [
            one
            for one in _read_questions(payload)
            if (one.field is None) == (action.kind == "approval")
        ]
        kept = {name: value for name, value in payload.items() if name not in _OF_ONE_MESSAGE}
        text = to_json(kept).decode()
        if not asked or len(text) > MOST_KEPT:
            problem = TOO_LARGE if asked else "pause_without_question"
            log.warning("pause_refused", reason=problem, bytes=len(text))
            return OpenedPause(envelope, problem=problem)
        hop, best = envelope.hop, payload.get("best_answer")
        pause = Pause(
            pause_id=envelope.message_id,
            original_question=str(payload.get("canonical_question") or payload.get("text") or ""),
            original_text=str(payload.get("text") or ""),
            reason=ClarificationReason.MISSING_DETAILS,
            asked="\n".join(one.text for one in asked),
            round=count_rounds(payload) + 1,
            best_answer=dict(best) if isinstance(best, dict) else None,
            groups=envelope.groups or None,
            kind=action.kind,
            asked_by=hop.role if hop is not None else "",
            questions=tuple(asked),
            created=now,
            expires=now + self._seconds,
            resume_stage=action.resume.name,
            flow=envelope.flow,
            language=read_language(payload),
            people=_list_people(payload),
            tasks=tuple(one[:_LONGEST_TASK] for one in list_open(list_tasks(payload))),
        )
        changes: dict[str, JsonValue] = {"new_pause": _dump(pause)}
        opened = envelope.replace(payload=write_payload(payload, changes))
        # A reply that comes in time may begin, or be delivered again, after the pause has expired.
        patience = max(0.0, envelope.deadline_ts - envelope.create_ts)
        seconds = max(1, ceil(self._seconds + patience))
        return OpenedPause(opened, KeptPayload(pause.pause_id, text, seconds))

    async def resume(self, question: Question, envelope: Envelope) -> Envelope:
        """Return the envelope with which a message begins, after checking for an open pause.

        A reply is in time if it was accepted in time, however long it waited since.

        The reply to a pause continues at its stage with the kept payload. Every other message
        begins as usual; one about something else closes the pause.
        """
        payload, now = envelope.payload, envelope.create_ts
        found = payload.get("open_pause")
        if found is None and "pause_reply" not in payload and "#" not in str(payload.get("text")):
            return envelope
        is_other = not isinstance(found, dict) or found.get("kind") in {None, "clarification"}
        pause = None if is_other else Pause.model_validate(found)
        if pause is not None and not _is_theirs(pause, envelope):
            return self._meet_foreign(envelope, pause, now)
        read = self._read(payload, pause, now)
        if isinstance(read, Unanswered) and pause is not None and pause.round >= self._rounds:
            read = Answered(is_granted=False, values=read.values)
        if isinstance(read, Answered) and pause is not None:
            return await self._go_on(question, envelope, pause, read)
        if isinstance(read, NotOpen):
            return _end(envelope, pause, "over")
        if isinstance(read, Unanswered) and pause is not None:
            return self._ask_again(envelope, pause, read)
        if pause is None:
            return envelope
        return _close(envelope, pause)

    def _meet_foreign(self, envelope: Envelope, pause: Pause, now: float) -> Envelope:
        """Return the envelope of a message while only somebody else may answer the pause.

        A reply to the pause is refused, any other message is handled as usual; the pause stays open
        in either case. People who may not read the question of the pause do not learn that there is
        one.
        """
        is_open = now < pause.expires
        is_readable = is_open and has_all(pause.groups or (), envelope.groups)
        read = self._read(envelope.payload, pause if is_readable else None, now, is_own=False)
        changes: dict[str, JsonValue] = {
            "open_pause": None,
            "keeps_pause" if is_open else "closes_pause": True,
        }
        kept = envelope.replace(payload=write_payload(envelope.payload, changes))
        if isinstance(read, NotOpen):
            return _end(kept, None, "over")
        if isinstance(read, OtherTopic):
            return kept
        log.info("pause_reply_refused", pause_id=pause.pause_id, reason="foreign")
        return _end(kept, pause.model_copy(update={"best_answer": None}), "foreign")

    def _read(
        self, payload: Payload, pause: Pause | None, now: float, *, is_own: bool = True
    ) -> ReadReply:
        if payload.get("command") is not None:
            # A command leaves the pause open.
            return OtherTopic()
        typed = payload.get("pause_reply")
        if typed is not None:
            return read_typed(pause, PauseReply.model_validate(typed), now)
        text = str(payload.get("text") or "")
        return read_words(pause, text, self._labels, now, is_own=is_own)

    async def _go_on(
        self, question: Question, envelope: Envelope, pause: Pause, answer: Answered
    ) -> Envelope:
        flow = self._flows.get(pause.flow)
        if flow is None or pause.resume_stage not in flow.stages:
            log.warning("pause_of_unknown_flow", flow=pause.flow, stage=pause.resume_stage)
            return _end(envelope, pause, "over")
        found = await self._memory.claim_pause(question, pause.pause_id)
        if found is None:
            return _end(envelope, pause, "over")
        payload = envelope.payload
        brought = {name: payload[name] for name in _OF_THE_REPLY if name in payload}
        kept: dict[str, JsonValue] = {**from_json(found), **brought}
        granted = {one.id: answer.is_granted for one in pause.questions if one.field is None}
        changes: dict[str, JsonValue] = {
            "stage": pause.resume_stage,
            "counters": {**_read_object(kept, "counters"), Counter.ROUND.value: pause.round},
            "needs_input": [],
            "user_inputs": {**_read_object(kept, "user_inputs"), **answer.values},
            "approvals": {**_read_object(kept, "approvals"), **granted},
            "pause_answer": "replied" if answer.is_granted else "denied",
            "reply_text": str(payload.get("text") or ""),
            "closes_pause": True,
        }
        return envelope.replace(flow=pause.flow, payload=write_payload(kept, changes))

    def _ask_again(self, envelope: Envelope, pause: Pause, found: Unanswered) -> Envelope:
        """Return the envelope that ends with the pause again: its values so far are kept."""
        again = pause.model_copy(update={"answers": found.values, "round": pause.round + 1})
        return _end(envelope, again, "unanswered")


def _close(envelope: Envelope, pause: Pause) -> Envelope:
    """Return the envelope of a message about something else: it cancels all that awaits a reply."""
    changes: dict[str, JsonValue] = {"open_pause": None, "closes_pause": True}
    if pause.tasks:
        changes["cancelled_tasks"] = [*pause.tasks]
    return envelope.replace(payload=write_payload(envelope.payload, changes))


def _end(envelope: Envelope, pause: Pause | None, state: str) -> Envelope:
    """Return the envelope of a message that ends at once, with the pause or without it."""
    changes: dict[str, JsonValue] = {"pause_state": state, "open_pause": None}
    if pause is not None:
        changes["new_pause"] = _dump(pause)
    return envelope.replace(payload=write_payload(envelope.payload, changes))


def _is_theirs(pause: Pause, envelope: Envelope) -> bool:
    """Return whether who wrote a message may answer a pause."""
    people = _list_people(envelope.payload)
    asked = not pause.people or (bool(people) and set(people) <= set(pause.people))
    return asked and has_all(pause.groups or (), envelope.groups)


def _list_people(payload: Payload) -> tuple[str, ...]:
    found = payload.get("people")
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _load_labels(texts: Texts) -> ReplyLabels:
    def fold(key: str) -> frozenset[str]:
        every = (texts.text(key, language).split(";") for language in texts.languages)
        return frozenset(" ".join(word.casefold().split()) for words in every for word in words)

    keys = ("approve", "deny", "exit_action", "approve_words", "deny_words")
    return ReplyLabels(*map(fold, keys))


def _read_questions(payload: Payload) -> tuple[PauseQuestion, ...]:
    """Return what agents ask the user for; none where they wrote something else."""
    try:
        return _QUESTIONS.validate_python(payload.get("needs_input") or ())
    except ValidationError as error:
        log.warning("pause_questions_invalid", error=str(error)[:200])
        return ()


def _read_object(payload: Payload, name: str) -> dict[str, JsonValue]:
    found = payload.get(name)
    return dict(found) if isinstance(found, dict) else {}


def _dump(pause: Pause) -> JsonValue:
    dumped: JsonValue = pause.model_dump(mode="json", exclude_defaults=True)
    return dumped


_NO_TEXT = frozenset({"command", "pause_reply", "review"})
_UNKNOWN = ""
"""Represents the author of a message whose channel does not identify people."""


def join_messages(envelope: Envelope, merged: Sequence[bytes]) -> Envelope:
    """Return the envelope with the texts of the messages that were merged into it at acceptance.

    It has the groups that all of their people have, and names all of these people.
    """
    if not merged:
        return envelope
    joined = [envelope, *map(decode, merged)]
    groups = set(envelope.groups).intersection(*(each.groups for each in joined))
    texts = [str(each.payload.get("text") or "") for each in joined]
    changes: dict[str, JsonValue] = {"text": "\n".join(texts)}
    people = {person for each in joined for person in _name_people(each)}
    if people != {_UNKNOWN}:
        changes["people"] = [*sorted(people)]
    return envelope.with_groups(tuple(sorted(groups))).replace(
        payload=write_payload(envelope.payload, changes)
    )


def take_shown(envelope: Envelope, shown: Sequence[bytes]) -> Envelope:
    """Return the envelope with the text of a message that waits behind its question. Only messages
    of the same person are read: those of others do not end the work, and must not reveal it.
    Commands, replies to a pause and reviews are not read.
    """
    message = decode(shown[0]) if shown else None
    if (
        message is None
        or message.groups != envelope.groups
        or not _NO_TEXT.isdisjoint(message.payload)
    ):
        return envelope
    text = message.payload.get("text")
    if not text or _name_people(message) != _name_people(envelope):
        return envelope
    return envelope.replace(payload=write_payload(envelope.payload, {"text": text}))


def is_hidden_clarification(pause: JsonValue, groups: Sequence[str]) -> bool:
    """Return whether a stored pause is a clarification that people of these groups may not read.

    A pause of another kind stays open: people who lack one of its groups cannot close it.
    """
    if not isinstance(pause, dict):
        return False
    found = Pause.model_validate(pause)
    return found.kind == "clarification" and not has_all(found.groups or (), groups)


def _name_people(envelope: Envelope) -> list[str]:
    found = envelope.payload.get("people")
    known = [str(person) for person in found] if isinstance(found, list) else []
    return known or [_UNKNOWN]
