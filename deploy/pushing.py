"""Puts push doors together: desk, memory and words, as the gateway's ports want them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from config.settings import Settings
from config.texts import load_texts
from deploy.assembly import Post, desk
from deploy.doors import StoredConversations, StoredRates
from deploy.serving import watched
from gateway.limits.people import People, PersonLimits
from gateway.pushing.door import PushDoor
from gateway.pushing.metrics import push_metrics
from gateway.pushing.port import Channel, Manners, PushBroker, Texts
from memory.duty import RedisDuty
from memory.errors import MemoryUnavailableError
from memory.pacing import RedisTurns
from memory.pushing import RedisPushMemory
from worker.process import consumer_name


@asynccontextmanager
async def turns_of(post: Post, channel: str) -> AsyncIterator[RedisTurns]:
    """Have the turns of a channel while inside."""
    client = post.endpoint.client()
    try:
        yield RedisTurns(client, channel)
    finally:
        await client.aclose()


@asynccontextmanager
async def duty_of(post: Post, channel: str, name: str) -> AsyncIterator[RedisDuty]:
    """Have a duty that one process of a channel has at a time while inside."""
    client = post.endpoint.client()
    try:
        yield RedisDuty(client, channel, name, consumer_name())
    finally:
        await client.aclose()


@asynccontextmanager
async def push_door(
    post: Post, make_channel: Callable[[Texts], Channel], *, secret: str
) -> AsyncIterator[PushDoor]:
    """Have the door of a channel while inside, delivering; `secret` keys its buttons."""
    settings = post.settings
    texts = load_texts(domain_name=settings.domain_name)
    channel = make_channel(texts)
    client = post.endpoint.client()
    keep_seconds = settings.memory_seconds_of(settings.tenant, settings.assistant)
    result_seconds = settings.result_seconds_of(settings.tenant, settings.assistant)
    broker: PushBroker = post.broker  # type: ignore[assignment] # `posted` makes no other
    try:
        door = PushDoor(
            channel,
            desk=desk(post, channel.name, result_list=channel.name),
            broker=broker,
            memory=RedisPushMemory(
                client,
                channel.name,
                question_seconds=max(1, int(result_seconds)),
                conversation_seconds=keep_seconds,
            ),
            thumbs=StoredConversations(client, shards=settings.shards, ttl_seconds=keep_seconds),
            texts=texts,
            manners=Manners(
                burst_seconds=settings.burst_seconds,
                supersedes=settings.newer_message == "supersedes",
                default_language=settings.default_language,
                deadline_seconds=settings.deadline_seconds,
                documentation=settings.documentation_url or "",
            ),
            secret=secret,
            people=People(
                StoredRates(client), person_limits(settings), channel=channel.name, secret=secret
            ),
            unavailable=(MemoryUnavailableError,),
        )
        async with (
            watched(post, push_metrics(channel.name, door.tally, door.refusals)),
            door.running(),
        ):
            yield door
    finally:
        await client.aclose()


def person_limits(settings: Settings) -> PersonLimits:
    """Return what one person may ask in a chat; a setting of 0 is no limit."""
    minute, day = settings.chat_questions_per_minute, settings.chat_questions_per_day
    return PersonLimits(minute if minute > 0 else None, day if day > 0 else None)
