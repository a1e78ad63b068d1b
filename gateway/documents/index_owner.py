"""Asks the process that owns an index to work on its documents."""

import time
from uuid import uuid4

from broker.ports import Broker
from broker.values import Fields, Submission
from envelope.envelope import Envelope
from envelope.question import Question, qualify_conversation
from envelope.role import Role
from knowledge.errors import IndexUnavailable

Name = tuple[str, str]
"""Tenant and assistant."""
CHANNEL = "cli"
CONVERSATION = "ingestion"
LONGEST_SECONDS = 6 * 3600.0
BLOCK_SECONDS = 1.0


async def ask_owner(
    broker: Broker, name: Name, payload: Fields, *, seconds: float = LONGEST_SECONDS
) -> Fields:
    """Have the process that owns the index execute the request `payload` within `seconds`.

    `name` is that of the assistant. Raises `IndexUnavailable`.
    """
    question = Question(
        tenant=name[0],
        assistant=name[1],
        conversation_id=qualify_conversation(CHANNEL, f"{CONVERSATION}-{uuid4().hex[:12]}"),
        message_id=uuid4().hex[:12],
    )
    await broker.producer.submit(_submission(question, payload, seconds))
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        entries = await broker.replies.read_journal(question, block_seconds=BLOCK_SECONDS)
        if any(entry.kind == "finished" for entry in entries):
            reply = await broker.replies.read_reply(question) or {}
            if reply.get("outcome") != "answered":
                raise IndexUnavailable(
                    f"the process that owns the index could not execute the request: "
                    f"{reply.get('error')}"
                )
            return reply
    raise IndexUnavailable(
        f"the process that owns the index did not finish within {seconds:.0f} seconds"
    )


def _submission(question: Question, payload: Fields, seconds: float) -> Submission:
    now = time.time()
    envelope = Envelope(
        tenant=question.tenant,
        assistant=question.assistant,
        channel=CHANNEL,
        conversation_id=question.conversation_id,
        message_id=question.message_id,
        create_ts=now,
        update_ts=now,
        deadline_ts=now + seconds,
        target_role=Role.INGESTION.value,
        payload=dict(payload),
    )
    return Submission(
        question=question,
        frame=envelope.encode(),
        role=Role.INGESTION.value,
        deadline_seconds=seconds,
        last_resort={"outcome": "failed", "error": "it did not finish before its time limit"},
        accepted={"role": Role.INGESTION.value},
    )
