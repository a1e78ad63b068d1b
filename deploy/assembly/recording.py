"""Assembles the records: the database, the retention rules, and the task that writes them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from broker.ports import Broker
from config.settings import Settings
from deploy.assembly.open_records import FILE, connect_records
from envelope.question import Question
from gateway.conversations import Conversations
from memory.http_state import Feedback, RedisSessionStore
from records.conversation_records import ConversationRecords

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from deploy.assembly.runtime import Runtime
    from records.recorder import Recorder
    from records.store import RecordStore


def make_conversation_records(settings: Settings, broker: Broker) -> ConversationRecords:
    """Return the operations on the records of conversations."""
    url, folder = settings.records_url, settings.refdesk_data

    def open_store() -> "RecordStore | None":
        return connect_records(url, folder) if url or (folder / FILE).exists() else None

    return ConversationRecords(broker.ended, open_store, is_recording=settings.keeps_records)


def make_conversations(
    settings: Settings,
    broker: Broker,
    client: "Redis",
    *,
    ttl_seconds: int = 1,
    ttl_of: Callable[[Question], int] | None = None,
) -> Conversations:
    """Return the conversations of the channels, with their records."""
    records = make_conversation_records(settings, broker)
    return Conversations(
        client,
        shards=settings.shards,
        ttl_seconds=ttl_seconds,
        ttl_of=ttl_of,
        on_rated=records.announce_rating,
        forget_recorded=records.forget,
    )


@asynccontextmanager
async def recording(runtime: "Runtime") -> AsyncIterator[None]:
    """Record finished messages, if records are enabled in the settings."""
    if not runtime.settings.keeps_records:
        yield
        return
    async with (
        _open_recorder(runtime) as recorder,
        runtime.jobs.running("records", recorder.run),
    ):
        yield


async def record_waiting(runtime: "Runtime") -> None:
    """Record messages that finished while no process was recording, such as questions of `refdesk
    ask`.

    Does nothing if the processes may use databases in different data folders, because each message
    is recorded by only one of them.
    """
    settings = runtime.settings
    is_own = settings.redis_url is None or settings.records_url is not None
    if settings.keeps_records and is_own:
        async with _open_recorder(runtime) as recorder:
            while await recorder.record_next():
                pass


@asynccontextmanager
async def _open_recorder(runtime: "Runtime") -> AsyncIterator["Recorder"]:
    from records.record import redact
    from records.recorder import Recorder, RecordRules

    settings = runtime.settings
    rules = RecordRules(
        days={
            assistant.assistant_key: settings.records_days_of(assistant.tenant, assistant.assistant)
            for assistant in settings.of_assistants()
        },
        redact=partial(redact, kinds=settings.records_redact),
    )
    store, client = (
        connect_records(settings.records_url, settings.refdesk_data),
        runtime.endpoint.client(),
    )
    sessions = RedisSessionStore(client, shards=settings.shards, ttl_seconds=1, empty_seconds=1)

    async def find_rating(question: Question) -> Feedback | None:
        return (await sessions.feedback(question)).get(question.message_id)

    try:
        yield Recorder(runtime.broker.ended, runtime.broker.replies, store, rules, find_rating)
    finally:
        await asyncio.to_thread(store.close)
        await client.aclose()
