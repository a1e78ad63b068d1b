"""Assembles the webhooks: sends the events of the desk to the endpoints of the settings."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from config.settings import Settings
from envelope.question import Question
from gateway.port import Feedback
from memory.http_state import RedisSessionStore
from memory.webhook_queue import RedisWebhookQueue

if TYPE_CHECKING:
    from pydantic import JsonValue

    from deploy.assembly.runtime import Runtime
    from notifications.webhooks import Endpoint


async def announce_event(
    runtime: "Runtime",
    kind: str,
    *,
    tenant: str,
    assistant: str,
    subject: str,
    data: "Mapping[str, JsonValue]",
) -> None:
    """Tell the webhooks of a gap or a failed source; see `notifications.webhooks.announce`."""
    if not runtime.settings.webhooks:
        return
    from notifications.webhooks import announce

    client = runtime.endpoint.client()
    try:
        queue = RedisWebhookQueue(client)
        await announce(queue, kind, tenant=tenant, assistant=assistant, subject=subject, data=data)
    finally:
        await client.aclose()


@asynccontextmanager
async def sending_webhooks(runtime: "Runtime") -> AsyncIterator[None]:
    """Send events while inside, if the settings have endpoints."""
    settings = runtime.settings
    if not settings.webhooks:
        yield
        return
    from notifications.webhooks import WebhookSender
    from records.record import redact

    client = runtime.endpoint.client()
    sessions = RedisSessionStore(client, shards=settings.shards, ttl_seconds=1, empty_seconds=1)

    async def find_rating(question: Question) -> tuple[str, str] | None:
        found = (await sessions.feedback(question)).get(question.message_id)
        if found is None:
            return None
        feedback = Feedback.model_validate_json(found)
        return feedback.rating, feedback.reason

    sender = WebhookSender(
        list_endpoints(settings),
        RedisWebhookQueue(client),
        runtime.broker.announced,
        runtime.broker.replies,
        find_rating,
        redact=partial(redact, kinds=settings.records_redact),
    )
    try:
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(sender.run())
            try:
                yield
            finally:
                running.cancel()
    finally:
        await client.aclose()


def list_endpoints(settings: Settings) -> "list[Endpoint]":
    """Return the endpoints of the settings."""
    from notifications.webhooks import Endpoint

    return [
        Endpoint(
            name,
            one.url,
            one.secrets,
            kinds=one.events,
            assistants=tuple(
                (tenant, assistant)
                for tenant, _, assistant in (text.partition("/") for text in one.assistants)
            ),
            is_private=one.private,
        )
        for name, one in settings.webhooks.items()
    ]
