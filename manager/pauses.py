"""Begins pauses, which store the payload, and resumes them when a reply arrives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import structlog

from envelope.conversation import ClarificationReason, Pause
from envelope.encoding import to_json
from envelope.envelope import Envelope, decode
from envelope.question import Question, has_all
from envelope.swarm import list_open
from envelope.texts import Texts
from manager.flow import Counter, Flow, PauseFor
from manager.machine import Limits
from manager.pause_replies import (
    Answered,
    NotOpen,
    OtherTopic,
    ReadReply,
    ReplyLabels,
    Unanswered,
    may_be_reply,
    needs_reading,
    read_typed,
    read_words,
)
from manager.state import PauseState, State
from manager.way_report import list_tasks
from memory.conversation import KeptPayload, RedisMemory

MOST_KEPT = 256_000
"""Maximum size in bytes of the payload that is stored with a pause."""
TOO_LARGE = "pause_too_large"
ANOTHER_OPEN = "pause_of_another_open"
"""The reason why a message cannot begin a pause if a pause of another user is open."""
_OF_ONE_MESSAGE = (
    State.cancelled_tasks,
    State.closes_pause,
    State.exhausted_budget,
    State.keeps_pause,
    State.model_usage,
    State.new_pause,
    State.open_pause,
    State.pause_answer,
    State.pause_reply,
    State.pause_state,
    State.people,
    State.reply_reading,
    State.reply_text,
    State.shows_drafts,
    State.termination_reason,
)
"""Attributes that a pause does not store, because they belong to a single message."""
_OF_THE_REPLY = (
    State.client_keeps_history,
    State.history_kept,
    State.model_usage,
    State.people,
    State.preferences,
    State.shows_drafts,
    State.statistics,
)
"""Attributes that are taken from the message with the reply."""
_NO_TEXT = (State.command, State.pause_reply, State.review)
_UNKNOWN = ""
"""The author of a message from a channel that does not identify users."""
_LONGEST_TASK = 100

log = structlog.get_logger("manager")


@dataclass(frozen=True, slots=True)
class OpenedPause:
    """A pause that begins, or the `problem` that prevents it, so that work continues without a
    reply.
    """

    envelope: Envelope
    kept: KeptPayload | None = None
    problem: str = ""


class Pauses:
    """Begins and resumes pauses; `flows` contains every flow in which an open pause can
    continue.
    """

    def __init__(
        self, flows: Mapping[str, Flow], memory: RedisMemory, texts: Texts, *, limits: Limits
    ) -> None:
        self._flows = flows
        self._memory = memory
        self._labels = _load_labels(texts)
        self._seconds, self._rounds = limits.pause_seconds, limits.rounds

    def begin(self, envelope: Envelope, action: PauseFor, now: float) -> OpenedPause:
        """Return the envelope with its pause, and the payload to store; `now` is in Unix seconds.

        The pause has a problem if it contains no question, if the payload is larger than
        `MOST_KEPT`, or if a pause of another user is open.
        """
        state = State(envelope.payload)
        if state.keeps_pause:
            log.info("pause_refused", reason=ANOTHER_OPEN)
            return OpenedPause(envelope, problem=ANOTHER_OPEN)
        is_approval = action.kind == "approval"
        asked = [
            question for question in state.needs_input if (question.field is None) == is_approval
        ]
        text = to_json(state.without(_OF_ONE_MESSAGE).json).decode()
        if not asked or len(text) > MOST_KEPT:
            problem = TOO_LARGE if asked else "pause_without_question"
            log.warning("pause_refused", reason=problem, bytes=len(text))
            return OpenedPause(envelope, problem=problem)
        hop, best = envelope.hop, state.best_answer
        pause = Pause(
            pause_id=envelope.message_id,
            original_question=state.canonical_question or state.text,
            original_text=state.text,
            reason=ClarificationReason.MISSING_DETAILS,
            asked="\n".join(question.text for question in asked),
            round=state.counters.get(Counter.ROUND, 0) + 1,
            best_answer=None if best is None else {**best.json},
            groups=envelope.groups or None,
            kind=action.kind,
            asked_by=hop.role if hop is not None else "",
            questions=tuple(asked),
            created=now,
            expires=now + self._seconds,
            resume_stage=action.resume.name,
            flow=envelope.flow,
            language=state.reply_language,
            people=state.people,
            tasks=tuple(
                title[:_LONGEST_TASK]
                for title in list_open(task.json for task in list_tasks(state))
            ),
        )
        opened = envelope.replace(payload=state.changed(new_pause=pause).json)
        # A reply that arrives in time may be processed after the pause has expired.
        patience = max(0.0, envelope.deadline_ts - envelope.create_ts)
        seconds = max(1, ceil(self._seconds + patience))
        return OpenedPause(opened, KeptPayload(pause.pause_id, text, seconds))

    def is_over(self, pause: Pause | None, now: float) -> bool:
        """Return whether a clarification has expired. Older versions did not store a creation
        time.
        """
        if pause is None or pause.kind != "clarification" or not pause.created:
            return False
        return now >= pause.created + self._seconds

    async def resume(self, question: Question, envelope: Envelope) -> Envelope:
        """Return the envelope with which a message starts, after checking for an open pause.

        A reply to a pause continues at its resume stage with the stored payload. Any other message
        starts as usual, and closes the pause if it is about a different topic. A reply is in time
        if it was accepted before the pause expired.
        """
        state, now = State(envelope.payload), envelope.create_ts
        stored = state.open_pause
        if stored is None and State.pause_reply not in state and "#" not in state.text:
            return envelope
        pause = None if stored is None or stored.kind == "clarification" else stored
        if pause is not None and not _is_theirs(pause, envelope):
            return self._meet_foreign(envelope, pause, now)
        read = self._read(state, pause, now)
        if isinstance(read, NotOpen):
            return _end(envelope, pause, "over")
        return envelope if pause is None else await self._continue(question, envelope, pause, read)

    async def _continue(
        self, question: Question, envelope: Envelope, pause: Pause, read: ReadReply
    ) -> Envelope:
        """Return the envelope of a message by a user who may answer the open pause."""
        state = State(envelope.payload)
        if needs_reading(pause, state, read):
            return envelope.replace(payload=state.changed(reply_reading="asked").json)
        if isinstance(read, OtherTopic) and may_be_reply(state):
            pause = pause.model_copy(update={"is_one_by_one": True})
            read = Unanswered(dict(pause.answers))
        if isinstance(read, Unanswered) and pause.round >= self._rounds:
            read = Answered(is_granted=False, values=read.values)
        if isinstance(read, Answered):
            return await self._go_on(question, envelope, pause, read)
        if isinstance(read, Unanswered):
            return self._ask_again(envelope, pause, read)
        return _close(envelope, pause)

    def _meet_foreign(self, envelope: Envelope, pause: Pause, now: float) -> Envelope:
        """Return the envelope of a message by a user who may not answer the open pause.

        A reply to the pause is rejected, and any other message is handled as usual. The pause stays
        open in both cases. Users who may not read the questions of the pause do not learn that it
        exists.
        """
        state, is_open = State(envelope.payload), now < pause.expires
        is_readable = is_open and has_all(pause.groups or (), envelope.groups)
        read = self._read(state, pause if is_readable else None, now, is_own=False)
        left = state.changed(keeps_pause=True) if is_open else state.changed(closes_pause=True)
        kept = envelope.replace(payload=left.changed(open_pause=None).json)
        if isinstance(read, NotOpen):
            return _end(kept, None, "over")
        if isinstance(read, OtherTopic):
            return kept
        log.info("pause_reply_refused", pause_id=pause.pause_id, reason="foreign")
        return _end(kept, pause.model_copy(update={"best_answer": None}), "foreign")

    def _read(
        self, state: State, pause: Pause | None, now: float, *, is_own: bool = True
    ) -> ReadReply:
        if state.command is not None:
            # A command does not close the pause.
            return OtherTopic()
        if state.reply_reading == "other":
            return OtherTopic()
        typed = state.pause_reply
        if typed is not None:
            return read_typed(pause, typed, now)
        return read_words(pause, state.text, self._labels, now, is_own=is_own)

    async def _go_on(
        self, question: Question, envelope: Envelope, pause: Pause, answer: Answered
    ) -> Envelope:
        flow = self._flows.get(pause.flow)
        if flow is None or pause.resume_stage not in flow.stages:
            log.warning("pause_of_unknown_flow", flow=pause.flow, stage=pause.resume_stage)
            return _end(envelope, pause, "over")
        claimed = await self._memory.claim_pause(question, pause.pause_id)
        if claimed is None:
            return _end(envelope, pause, "over")
        state = State(envelope.payload)
        kept = State({**State.decode(claimed).json, **state.copy(*_OF_THE_REPLY)})
        granted = {
            question.id: answer.is_granted for question in pause.questions if question.field is None
        }
        resumed = kept.changed(
            stage=pause.resume_stage,
            counters={**kept.counters, Counter.ROUND.value: pause.round},
            needs_input=(),
            user_inputs={**kept.user_inputs, **answer.values},
            approvals={**kept.approvals, **granted},
            pause_answer="replied" if answer.is_granted else "denied",
            reply_text=state.text,
            closes_pause=True,
        )
        return envelope.replace(flow=pause.flow, payload=resumed.json)

    def _ask_again(self, envelope: Envelope, pause: Pause, read: Unanswered) -> Envelope:
        """Return the envelope that repeats the pause and keeps the values so far."""
        again = pause.model_copy(update={"answers": read.values, "round": pause.round + 1})
        return _end(envelope, again, "unanswered")


def join_messages(envelope: Envelope, merged: Sequence[bytes]) -> Envelope:
    """Return the envelope with the texts of the messages that were merged into it when they were
    accepted.

    It has only the groups that all of the authors share, and lists all authors.
    """
    if not merged:
        return envelope
    joined = [envelope, *map(decode, merged)]
    groups = set(envelope.groups).intersection(*(message.groups for message in joined))
    texts = [State(message.payload).text for message in joined]
    state = State(envelope.payload).changed(text="\n".join(texts))
    people = {person for message in joined for person in _name_people(message)}
    if people != {_UNKNOWN}:
        state = state.changed(people=sorted(people))
    return envelope.with_groups(tuple(sorted(groups))).replace(payload=state.json)


def take_shown(envelope: Envelope, shown: Sequence[bytes]) -> Envelope:
    """Return the envelope with the text of a message that waits behind its question.

    Only messages from the same user are considered, because messages from others must neither end
    the work nor reveal it. Commands, replies to a pause, and reviews are ignored.
    """
    message = decode(shown[0]) if shown else None
    if message is None or message.groups != envelope.groups:
        return envelope
    waiting = State(message.payload)
    if not waiting.text or any(attribute in waiting for attribute in _NO_TEXT):
        return envelope
    if _name_people(message) != _name_people(envelope):
        return envelope
    return envelope.replace(payload=State(envelope.payload).changed(text=waiting.text).json)


def is_hidden_clarification(pause: Pause | None, groups: Sequence[str]) -> bool:
    """Return whether a pause is a clarification that users with these groups may not read.

    Other kinds of pauses are not hidden. They stay open, and users without the groups cannot close
    them.
    """
    if pause is None or pause.kind != "clarification":
        return False
    return not has_all(pause.groups or (), groups)


def _close(envelope: Envelope, pause: Pause) -> Envelope:
    """Return the envelope of a message about a different topic, which cancels the pause."""
    state = State(envelope.payload).changed(open_pause=None, closes_pause=True)
    if pause.tasks:
        state = state.changed(cancelled_tasks=pause.tasks)
    return envelope.replace(payload=state.json)


def _end(envelope: Envelope, pause: Pause | None, ended: PauseState) -> Envelope:
    """Return the envelope of a message that ends immediately, with or without a pause."""
    state = State(envelope.payload).changed(pause_state=ended, open_pause=None)
    if pause is not None:
        state = state.changed(new_pause=pause)
    return envelope.replace(payload=state.json)


def _is_theirs(pause: Pause, envelope: Envelope) -> bool:
    """Return whether the authors of a message may answer a pause."""
    people = State(envelope.payload).people
    is_asked = not pause.people or (bool(people) and set(people) <= set(pause.people))
    return is_asked and has_all(pause.groups or (), envelope.groups)


def _load_labels(texts: Texts) -> ReplyLabels:
    def fold(key: str) -> frozenset[str]:
        every = (texts.text(key, language).split(";") for language in texts.languages)
        return frozenset(" ".join(word.casefold().split()) for words in every for word in words)

    keys = ("approve", "deny", "exit_action", "approve_words", "deny_words")
    return ReplyLabels(*map(fold, keys))


def _name_people(envelope: Envelope) -> tuple[str, ...]:
    return State(envelope.payload).people or (_UNKNOWN,)
