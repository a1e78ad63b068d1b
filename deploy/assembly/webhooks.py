"""Assembles the webhooks, which send the events of the desk to the endpoints in `WEBHOOKS`."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import structlog

from deploy.assembly.open_records import connect_records, finding_gaps
from envelope.question import Question
from knowledge.errors import KnowledgeError
from memory.errors import MemoryUnavailableError
from memory.http_state import RedisSessionStore
from memory.webhook_queue import RedisWebhookQueue

if TYPE_CHECKING:
    from pydantic import JsonValue

    from config.notification_settings import WebhookEndpoint
    from deploy.assembly.runtime import Runtime
    from notifications.webhooks import WebhookTarget
    from records.gaps import GapFinder

log = structlog.get_logger("webhooks")

GAPS_SECONDS = 3_600.0
LONGEST_ERROR = 300
SMALLEST_GAP = 3
"""Minimum number of questions of a gap that is announced."""


async def announce_event(
    runtime: "Runtime",
    kind: str,
    *,
    tenant: str,
    assistant: str,
    subject: str,
    data: "Mapping[str, JsonValue]",
) -> None:
    """Send an event about a gap or a failed source to the webhooks; see
    `notifications.webhooks.announce`.
    """
    if not runtime.settings.webhooks:
        return
    from notifications.webhooks import announce

    client = runtime.endpoint.client()
    try:
        queue = RedisWebhookQueue(client)
        await announce(queue, kind, tenant=tenant, assistant=assistant, subject=subject, data=data)
    finally:
        await client.aclose()


async def announce_failed_source(runtime: "Runtime", source: str, failure: str) -> None:
    """Announce, at most once a day, that a source could not be read; if that cannot be stored, log
    it.
    """
    from notifications.webhooks import SOURCE_FAILED

    settings, day = runtime.settings, datetime.now(UTC).date().isoformat()
    data: dict[str, JsonValue] = {"source": source, "error": failure[:LONGEST_ERROR]}
    try:
        await announce_event(
            runtime,
            SOURCE_FAILED,
            tenant=settings.tenant,
            assistant=settings.assistant,
            subject=f"{source} {day}",
            data=data,
        )
    except MemoryUnavailableError as away:
        log.warning("webhook_not_stored", kind=SOURCE_FAILED, error=str(away))


@asynccontextmanager
async def sending_webhooks(runtime: "Runtime") -> AsyncIterator[None]:
    """Send events inside the context, if endpoints are configured."""
    settings = runtime.settings
    if not settings.webhooks:
        yield
        return
    from notifications.webhooks import GAP, WebhookSender
    from records.record import redact

    wanted = settings.webhooks.values()
    client = runtime.endpoint.client()
    sessions = RedisSessionStore(client, shards=settings.shards, ttl_seconds=1, empty_seconds=1)

    async def find_rating(question: Question) -> tuple[str, str] | None:
        feedback = (await sessions.feedback(question)).get(question.message_id)
        if feedback is None:
            return None
        return feedback.rating, feedback.reason

    sender = WebhookSender(
        list_endpoints(settings.webhooks),
        RedisWebhookQueue(client),
        runtime.broker.announced,
        runtime.broker.replies,
        find_rating,
        redact=partial(redact, kinds=settings.records_redact),
    )
    try:
        async with AsyncExitStack() as stack:
            running = runtime.jobs.running
            await stack.enter_async_context(running("webhook_events", sender.collect))
            await stack.enter_async_context(running("webhook_deliveries", sender.deliver))
            if settings.keeps_records and any(GAP in endpoint.events for endpoint in wanted):
                announce = partial(_announce_gaps, runtime)
                await stack.enter_async_context(running("gap_announcements", announce))
            yield
    finally:
        await client.aclose()


async def announce_gaps(runtime: "Runtime", finder: "GapFinder", name: tuple[str, str]) -> None:
    """Announce each open gap with at least `SMALLEST_GAP` questions once, without the text of the
    questions.
    """
    from notifications.webhooks import GAP
    from records.gaps import OPEN

    for gap in await finder.find(name):
        if gap.state != OPEN or gap.size < SMALLEST_GAP:
            continue
        data: dict[str, JsonValue] = {
            "gap_id": gap.id,
            "questions": gap.size,
            "reasons": dict(gap.reasons),
            "pages": [str(page.get("title") or "") for page in gap.pages],
            "last_week": gap.last_week,
        }
        await announce_event(
            runtime, GAP, tenant=name[0], assistant=name[1], subject=gap.id, data=data
        )


def list_endpoints(webhooks: "Mapping[str, WebhookEndpoint]") -> "list[WebhookTarget]":
    """Return the endpoints in `WEBHOOKS`."""
    from notifications.webhooks import WebhookTarget

    return [
        WebhookTarget(
            name,
            webhook.url,
            webhook.secrets,
            kinds=webhook.events,
            assistants=tuple(
                (tenant, assistant)
                for tenant, _, assistant in (text.partition("/") for text in webhook.assistants)
            ),
            is_private=webhook.private,
        )
        for name, webhook in webhooks.items()
    ]


async def _announce_gaps(runtime: "Runtime") -> None:
    """Announce new gaps every hour, until cancelled."""
    from records.store import RecordRefusedError, RecordsUnavailableError

    settings = runtime.settings
    store = connect_records(settings.records_url, settings.refdesk_data)
    embedder = None if runtime.knowledge is None else runtime.knowledge.embedder
    try:
        async with finding_gaps(settings, store, embedder) as finder:
            while True:
                try:
                    await asyncio.to_thread(store.prepare)
                    for assistant in settings.of_assistants():
                        await announce_gaps(runtime, finder, assistant.assistant_key)
                except (
                    MemoryUnavailableError,
                    KnowledgeError,
                    RecordRefusedError,
                    RecordsUnavailableError,
                ) as error:
                    log.warning("webhooks_delayed", error=str(error), retry_seconds=GAPS_SECONDS)
                await asyncio.sleep(GAPS_SECONDS)
    finally:
        await asyncio.to_thread(store.close)
