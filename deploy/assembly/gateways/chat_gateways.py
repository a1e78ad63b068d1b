"""Assembles the chat channels, connecting desk, memory, and texts to the ports of the gateway."""

import tomllib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from config.errors import SettingsError
from config.texts import load_texts
from deploy.assembly.gateways.handover import make_handover
from deploy.assembly.gateways.listening import serve_probes
from deploy.assembly.recording import make_conversations
from deploy.assembly.runtime import Runtime, desk
from envelope.question import parse_groups
from envelope.texts import Texts
from gateway.api_keys import StoredKeys
from gateway.chat.connector import ChatChannel
from gateway.chat.delivery import push_metrics
from gateway.chat.people import People, PersonLimits
from gateway.chat.ports import Channel, ChatGroups, ChatPolicy, UserGroups
from gateway.chat_channels import CHAT_CHANNELS
from memory.chat_state import RedisPushMemory
from memory.errors import MemoryUnavailableError
from memory.http_state import RedisRates
from memory.presence import RedisDuty
from memory.rate_limits import RedisTurns
from worker.process import consumer_name

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

DRAFT_SECONDS = 1.0
"""The minimum time between two edits of a draft. Slack and Telegram allow about one message per
second in a chat, including edits.
"""
MakeUserGroups = Callable[[Iterable[str]], UserGroups]
"""Returns the user groups with these ids."""
_TABLES = frozenset({"people", "places"})
_USER_GROUPS = "user_groups"
_WITH_USER_GROUPS = frozenset({"slack"})


@asynccontextmanager
async def turns_of(runtime: Runtime, channel: str) -> AsyncIterator[RedisTurns]:
    """Provide the rate limit for posts in a channel, which all processes of the channel share."""
    client = runtime.endpoint.client()
    try:
        yield RedisTurns(client, channel)
    finally:
        await client.aclose()


@asynccontextmanager
async def duty_of(runtime: Runtime, channel: str, name: str) -> AsyncIterator[RedisDuty]:
    """Provide the lease for a task that only one process of a channel performs at a time."""
    client = runtime.endpoint.client()
    try:
        yield RedisDuty(client, channel, name, consumer_name())
    finally:
        await client.aclose()


@asynccontextmanager
async def run_chat_channel(
    runtime: Runtime,
    make_channel: Callable[[Texts], Channel],
    *,
    secret: str,
    make_user_groups: MakeUserGroups | None = None,
    registry: "CollectorRegistry | None" = None,
) -> AsyncIterator[ChatChannel]:
    """Run a chat channel that delivers replies; `secret` signs its buttons.

    `make_user_groups` returns the user groups of the platform; it is None if the platform has no
    user groups. `registry` contains the other metrics of the process.
    """
    settings = runtime.settings
    texts = load_texts(topic=settings.topic)
    channel = make_channel(texts)
    groups = read_chat_groups(settings.chat_groups_file, channel.name, make_user_groups)
    await groups.warm()
    client = runtime.endpoint.client()
    keep_seconds = settings.memory_seconds_of(settings.tenant, settings.assistant)
    result_seconds = settings.result_seconds_of(settings.tenant, settings.assistant)
    try:
        conversations = make_conversations(
            settings, runtime.broker, client, ttl_seconds=keep_seconds
        )
        connector = ChatChannel(
            channel,
            desk=desk(runtime, channel.name, result_list=channel.name),
            broker=runtime.broker,
            memory=RedisPushMemory(
                client,
                channel.name,
                question_seconds=max(1, int(result_seconds)),
                conversation_seconds=keep_seconds,
            ),
            feedback=conversations,
            texts=texts,
            policy=ChatPolicy(
                burst_seconds=settings.burst_seconds,
                supersedes=settings.newer_message == "supersedes",
                default_language=settings.default_language,
                deadline_seconds=settings.deadline_seconds,
                draft_seconds=None if settings.release == "approved" else DRAFT_SECONDS,
                documentation=settings.documentation_url or "",
                link_hosts=frozenset(settings.link_hosts),
                groups=groups,
            ),
            secret=secret,
            people=People(
                RedisRates(client),
                person_limits(settings.chat_questions_per_minute, settings.chat_questions_per_day),
                channel=channel.name,
                secret=secret,
            ),
            handover=await make_handover(
                runtime, client, StoredKeys(client), conversations, journals_alone=True
            ),
            unavailable=(MemoryUnavailableError,),
            jobs=runtime.jobs,
        )
        async with (
            serve_probes(
                runtime,
                push_metrics(
                    channel.name,
                    connector.tally,
                    connector.refusals,
                    connector.ratings,
                    registry=registry,
                ),
            ),
            connector.running(),
        ):
            yield connector
    finally:
        await client.aclose()


def person_limits(minute: int, day: int) -> PersonLimits:
    """Return the limits of one person in a chat; 0 means no limit."""
    return PersonLimits(minute if minute > 0 else None, day if day > 0 else None)


def read_chat_groups(
    file: Path | None, channel: str, make_user_groups: MakeUserGroups | None = None
) -> ChatGroups:
    """Return the groups of a channel; raises `SettingsError` if the file cannot be used.

    The file contains the tables `[slack.people]`, `[slack.places]` and so on, in which each line
    maps an ID to its groups. `make_user_groups` is called if the file contains user groups of the
    platform.
    """
    if file is None:
        return ChatGroups()
    try:
        stated = tomllib.loads(file.read_text(encoding="utf-8"))
        channels = {spec.name for spec in CHAT_CHANNELS}
        if not stated.keys() <= channels:
            raise ValueError(f"expected {' or '.join(sorted(channels))}, found {sorted(stated)}")
        read = {name: _read_channel(name, tables) for name, tables in stated.items()}
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise SettingsError(f"CHAT_GROUPS_FILE: {file} cannot be used: {reason}") from error
    groups = read.get(channel, ChatGroups())
    if not groups.user_groups or make_user_groups is None:
        return groups
    return replace(groups, memberships=make_user_groups(groups.user_groups))


def _read_channel(channel: str, tables: object) -> ChatGroups:
    known = _TABLES | {_USER_GROUPS} if channel in _WITH_USER_GROUPS else _TABLES
    if not isinstance(tables, dict) or not tables.keys() <= known:
        expected = " or ".join(f"[{channel}.{table}]" for table in sorted(known))
        raise ValueError(f"expected {expected}, found {tables!r:.80}")
    people, places, user_groups = (
        _read_table(tables.get(name, {})) for name in ("people", "places", _USER_GROUPS)
    )
    # One person may be a member of all of them.
    parse_groups(group for groups in user_groups.values() for group in groups)
    return ChatGroups(people, places, user_groups)


def _read_table(table: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(table, dict) or not all(isinstance(names, list) for names in table.values()):
        raise ValueError(f"expected ids with lists of groups, found {table!r:.80}")
    return {name: parse_groups(groups) for name, groups in table.items()}
