"""Resubmits the questions of dead-lettered messages."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from broker.ports import Producer
from broker.values import Busy, DeadLetter, Submission
from envelope.envelope import DecodeError, Envelope, decode
from envelope.role import Role
from gateway.answer import Words
from gateway.desk import make_dead_letter_changes, make_last_resort
from gateway.errors import BusyError, MessageError

_SUBMITTED = (
    "text",
    "command",
    "arguments",
    "history",
    "open_pause",
    "pause_reply",
    "client_keeps_history",
    "shows_drafts",
)
"""Payload attributes from the channel, and from the manager's first hop."""


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Resubmits the questions of dead letters.

    `keep_seconds` returns how long the replies and journals of a tenant and an assistant are
    stored.
    """

    producer: Producer
    words: Words
    default_language: str
    deadline_seconds: float
    keep_seconds: Callable[[str, str], float]

    async def retry(self, letter: DeadLetter, *, deliver: bool) -> str:
        """Resubmit a question from the beginning, under a new message id that is linked to the old
        one; return the new id.

        If `deliver` is true, the channel that asked receives the reply. Raises `MessageError` and
        `BusyError`.
        """
        try:
            envelope = decode(letter.frame)
        except DecodeError as error:
            raise MessageError(
                "this dead letter cannot be run again, because its envelope cannot be read: "
                f"{error}"
            ) from error
        if envelope.branch:
            raise MessageError(
                f"this is branch {envelope.branch} of message {envelope.message_id}, which "
                "continued without it; ask the question again"
            )
        again = self._make_submission(envelope, deliver=deliver)
        result = await self.producer.submit(again)
        if isinstance(result, Busy):
            raise BusyError(
                f"all workers are busy ({result.reason}): "
                f"try again in {math.ceil(result.retry_after_seconds)} seconds",
                result.retry_after_seconds,
                result.reason,
            )
        return again.question.message_id

    def _make_submission(self, envelope: Envelope, *, deliver: bool) -> Submission:
        """Return the original message as a new submission, without the attributes that agents
        added.
        """
        original = {name: envelope.payload[name] for name in _SUBMITTED if name in envelope.payload}
        results = envelope.result_list if deliver else ""
        now = time.time()
        fresh = envelope.replace(
            message_id=f"{envelope.message_id[:110]}-retry-{uuid4().hex[:8]}",
            create_ts=now,
            update_ts=now,
            deadline_ts=now + self.deadline_seconds,
            payload=original,
            hop=None,
            gathered=None,
            retries=0,
            process_count=0,
            total_processing_time=0.0,
            sender_role="",
            target_role=Role.MANAGER.value,
            target_list="",
            result_list=results,
        )
        language = str(envelope.payload.get("language") or self.default_language)
        return Submission(
            question=fresh.question,
            frame=fresh.encode(),
            role=Role.MANAGER.value,
            deadline_seconds=self.deadline_seconds,
            last_resort=make_last_resort(fresh.question, self.words, language),
            dead_letter_changes=make_dead_letter_changes(self.words, language),
            result_list=results,
            accepted={"retry_of": envelope.message_id, "text": original.get("text")},
            retry_of=envelope.message_id,
            keep_seconds=self.keep_seconds(envelope.tenant, envelope.assistant),
        )
