"""Sends requests about documents to the process that owns an index."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from uuid import uuid4

import structlog

from broker.errors import BrokerUnavailableError
from broker.outages import bridge_outage
from broker.ports import Broker
from broker.values import Fields, Submission
from envelope.envelope import Envelope
from envelope.question import Question, qualify_conversation
from envelope.role import Role
from knowledge.errors import IndexUnavailable

log = structlog.get_logger("gateway")

Name = tuple[str, str]
"""Tenant and assistant."""
CHANNEL = "cli"
CONVERSATION = "ingestion"
LONGEST_SECONDS = 6 * 3600.0
BLOCK_SECONDS = 1.0
OUTAGE_SECONDS = 60.0
"""How long Redis may be unreachable while a request is executed."""


async def ask_owner(
    broker: Broker,
    name: Name,
    payload: Fields,
    *,
    seconds: float = LONGEST_SECONDS,
    on_draft: Callable[[Fields], None] = lambda _: None,
) -> Fields:
    """Have the process that owns the index execute the request `payload` within `seconds`.

    `name` is the tenant and assistant; `on_draft` receives the progress reported by the process. A
    short outage of Redis has no effect, because the request is executed only once. Cancelling this
    call stops an ingestion if Redis responds. Raises `IndexUnavailable`, and
    `BrokerUnavailableError` after a longer outage.
    """
    question = Question(
        tenant=name[0],
        assistant=name[1],
        conversation_id=qualify_conversation(CHANNEL, f"{CONVERSATION}-{uuid4().hex[:12]}"),
        message_id=uuid4().hex[:12],
    )
    submission = _submission(question, payload, seconds)
    patience = min(seconds, OUTAGE_SECONDS)
    await bridge_outage(lambda: broker.producer.submit(submission), patience)
    try:
        reply = await _await_end(broker, question, seconds, on_draft)
    except asyncio.CancelledError:
        try:
            await broker.producer.cancel(question)
        except BrokerUnavailableError as error:
            log.warning("ingestion_not_stopped", error=str(error))
        raise
    if reply.get("outcome") != "answered":
        raise IndexUnavailable(
            f"the process that owns the index could not execute the request: {reply.get('error')}"
        )
    return reply


async def _await_end(
    broker: Broker, question: Question, seconds: float, on_draft: Callable[[Fields], None]
) -> Fields:
    patience = min(seconds, OUTAGE_SECONDS)
    began, last = time.monotonic(), "0"
    while time.monotonic() - began < seconds:
        entries = await bridge_outage(
            partial(broker.replies.read_journal, question, after=last, block_seconds=BLOCK_SECONDS),
            patience,
        )
        for entry in entries:
            last = entry.id
            if entry.kind == "draft":
                on_draft(entry.fields)
        if any(entry.kind == "finished" for entry in entries):
            reply = await bridge_outage(lambda: broker.replies.read_reply(question), patience)
            return {} if reply is None else reply
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
        last_resort={
            "outcome": "failed",
            "error": "the request did not finish before its time limit",
        },
        accepted={"role": Role.INGESTION.value},
        dead_letter_changes={"error": "the request failed; `refdesk dead` shows the reason"},
    )
