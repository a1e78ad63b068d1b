"""Assembles the chat channels: desk, memory and texts behind the ports of the gateway."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from config.settings import Settings
from config.texts import load_texts
from deploy.assembly.gateways.chat_group_file import MakeUserGroups, read_chat_groups
from deploy.assembly.gateways.http_gateway import StoredConversations, StoredRates
from deploy.assembly.gateways.listening import serve_probes
from deploy.assembly.runtime import Runtime, desk
from gateway.chat.connector import ChatChannel
from gateway.chat.metrics import push_metrics
from gateway.chat.people import People, PersonLimits
from gateway.chat.ports import Channel, ChannelTexts, ChatPolicy, PushBroker
from memory.chat_state import RedisPushMemory
from memory.errors import MemoryUnavailableError
from memory.leader_lock import RedisDuty
from memory.turn_pacing import RedisTurns
from worker.process import consumer_name

DRAFT_SECONDS = 1.0
"""Slack and Telegram permit about one message per second in a chat, edits included."""


@asynccontextmanager
async def turns_of(runtime: Runtime, channel: str) -> AsyncIterator[RedisTurns]:
    """Provide the rate limit of a channel's posts, shared by all its processes."""
    client = runtime.endpoint.client()
    try:
        yield RedisTurns(client, channel)
    finally:
        await client.aclose()


@asynccontextmanager
async def duty_of(runtime: Runtime, channel: str, name: str) -> AsyncIterator[RedisDuty]:
    """Provide the lease of a task that one process of a channel performs at a time."""
    client = runtime.endpoint.client()
    try:
        yield RedisDuty(client, channel, name, consumer_name())
    finally:
        await client.aclose()


@asynccontextmanager
async def run_chat_channel(
    runtime: Runtime,
    make_channel: Callable[[ChannelTexts], Channel],
    *,
    secret: str,
    make_user_groups: MakeUserGroups | None = None,
) -> AsyncIterator[ChatChannel]:
    """Run a chat channel that delivers replies; `secret` signs its buttons.

    `make_user_groups` returns the user groups of the platform; None if it has none.
    """
    settings = runtime.settings
    texts = load_texts(domain_name=settings.domain_name)
    channel = make_channel(texts)
    groups = read_chat_groups(settings.chat_groups_file, channel.name, make_user_groups)
    await groups.warm()
    client = runtime.endpoint.client()
    keep_seconds = settings.memory_seconds_of(settings.tenant, settings.assistant)
    result_seconds = settings.result_seconds_of(settings.tenant, settings.assistant)
    broker: PushBroker = runtime.broker  # type: ignore[assignment] # `connect_runtime` makes no other
    try:
        connector = ChatChannel(
            channel,
            desk=desk(runtime, channel.name, result_list=channel.name),
            broker=broker,
            memory=RedisPushMemory(
                client,
                channel.name,
                question_seconds=max(1, int(result_seconds)),
                conversation_seconds=keep_seconds,
            ),
            feedback=StoredConversations(client, shards=settings.shards, ttl_seconds=keep_seconds),
            texts=texts,
            policy=ChatPolicy(
                burst_seconds=settings.burst_seconds,
                supersedes=settings.newer_message == "supersedes",
                default_language=settings.default_language,
                deadline_seconds=settings.deadline_seconds,
                draft_seconds=None if settings.release == "approved" else DRAFT_SECONDS,
                documentation=settings.documentation_url or "",
                groups=groups,
            ),
            secret=secret,
            people=People(
                StoredRates(client), person_limits(settings), channel=channel.name, secret=secret
            ),
            unavailable=(MemoryUnavailableError,),
        )
        async with (
            serve_probes(
                runtime,
                push_metrics(channel.name, connector.tally, connector.refusals, connector.ratings),
            ),
            connector.running(),
        ):
            yield connector
    finally:
        await client.aclose()


def person_limits(settings: Settings) -> PersonLimits:
    """Return the limits of one person in a chat; a setting of 0 means no limit."""
    minute, day = settings.chat_questions_per_minute, settings.chat_questions_per_day
    return PersonLimits(minute if minute > 0 else None, day if day > 0 else None)
