"""Asks the questions of dead letters again."""

import time
from uuid import uuid4

from broker.ports import Broker
from broker.values import Busy, DeadLetter, Submission
from config.settings import Settings
from config.texts import load_texts
from deploy.errors import CommandError
from envelope.envelope import DecodeError, Envelope, decode
from envelope.role import Role
from gateway.desk import make_dead_letter_changes, make_last_resort


async def retry_letter(
    broker: Broker, letter: DeadLetter, settings: Settings, *, deliver: bool
) -> str:
    """Submit the whole question again, from its start, under a new and linked message id."""
    try:
        envelope = decode(letter.frame)
    except DecodeError as error:
        raise CommandError(
            f"this dead letter cannot be run again, because its envelope cannot be read: {error}"
        ) from error
    if envelope.branch:
        raise CommandError(
            f"this is the branch {envelope.branch} of {envelope.message_id}, "
            "which went on without it: ask the question again"
        )
    again = _again(envelope, settings, deliver=deliver)
    result = await broker.producer.submit(again)
    if isinstance(result, Busy):
        raise CommandError(
            f"all workers are busy ({result.reason}): "
            f"try again in {result.retry_after_seconds:.0f} seconds"
        )
    return again.question.message_id


def _again(envelope: Envelope, settings: Settings, *, deliver: bool) -> Submission:
    """Return the original message as a new submission, without the writes of agents."""
    original = {name: envelope.payload[name] for name in _SUBMITTED if name in envelope.payload}
    results = envelope.result_list if deliver else ""
    now = time.time()
    fresh = envelope.replace(
        message_id=f"{envelope.message_id[:110]}-retry-{uuid4().hex[:8]}",
        create_ts=now,
        update_ts=now,
        deadline_ts=now + settings.deadline_seconds,
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
    language = str(envelope.payload.get("language") or settings.default_language)
    return Submission(
        question=fresh.question,
        frame=fresh.encode(),
        role=Role.MANAGER.value,
        deadline_seconds=settings.deadline_seconds,
        last_resort=make_last_resort(fresh.question, load_texts().text, language),
        dead_letter_changes=make_dead_letter_changes(load_texts().text, language),
        result_list=results,
        accepted={"retry_of": envelope.message_id, "text": original.get("text")},
        retry_of=envelope.message_id,
        keep_seconds=settings.result_seconds_of(envelope.tenant, envelope.assistant),
    )


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
