"""Puts the desk together: the only place that chooses concrete classes."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from broker.admission import Pace
from broker.embedded import Endpoint, embedded_redis
from broker.errors import BrokerUnavailableError
from broker.port import Broker
from broker.redis_broker import RedisBroker
from broker.renewal import LeaseRenewal, PlayedRenewal
from broker.rewriting import Rewriting
from config.settings import Settings
from config.texts import load_texts
from deploy.announcing import announcing
from deploy.command import CommandError
from deploy.data_folder import protect_data_folder
from deploy.quarantine import made_quarantine, warming, with_quarantine
from deploy.recording import HopCalls
from deploy.staff import handlers
from envelope.role import Role
from gateway.desk import Desk
from knowledge.errors import IndexOwned
from llm.port import Model
from memory.presence import RedisPresence
from worker.agent_handler import told_of_poison
from worker.process import Staffing, WorkerProcess

if TYPE_CHECKING:
    from deploy.knowledge import Knowledge
    from knowledge.ingestion_report import IngestionResult, Report
    from worker.metrics import PrometheusMeter

INGESTION = Role.INGESTION.value
ROLES = tuple(role.value for role in Role if role is not Role.INGESTION)
KNOWING = frozenset({Role.GUARDRAILS.value, Role.SEARCH.value, INGESTION})
"""Roles that need the index."""
ASKING = frozenset({"translation", "essence", "guardrails", "clarification", "response", "quality"})
"""Roles that may ask a model."""
DAY_SECONDS = 86_400
HOUR_SECONDS = 3600
REWRITE_SECONDS = 20.0
"""So long a command that ends waits for the file of its own server to be written anew."""
REWRITE_LOOK_SECONDS = 0.05
STUCK_DEADLINES = 2.0
"""An event loop that stands for the life of two questions holds nothing worth waiting for."""
STAND_IN_SECONDS = 0.5
"""How often somebody who handed work over looks whether the owner of the index still is there."""


@dataclass(frozen=True, slots=True)
class Post:
    """A connection to Redis, and what is made of it; `knowledge` where this process opened it."""

    endpoint: Endpoint
    broker: Broker
    settings: Settings
    knowledge: "Knowledge | None" = None


@asynccontextmanager
async def posted(settings: Settings, *, endpoint: Endpoint | None = None) -> AsyncIterator[Post]:
    """Reach Redis while inside: `endpoint`, else `REDIS_URL`, else the data folder's own server."""
    async with AsyncExitStack() as stack:
        if endpoint is None and settings.redis_url is not None:
            endpoint = Endpoint(url=settings.redis_url, durable=True)
        owned = endpoint is None
        if endpoint is None:
            protect_data_folder(settings.refdesk_data)
            endpoint = await stack.enter_async_context(embedded_redis(settings.refdesk_data))
        broker = _broker(settings, endpoint)
        stack.push_async_callback(broker.close)
        if owned and endpoint.durable:
            stack.push_async_callback(written_anew, broker)
        await broker.prepare((*ROLES, INGESTION))
        yield Post(endpoint, broker, settings)


async def written_anew(broker: Broker) -> None:
    """Have the file written anew before the last one leaves, where anything was erased.

    Should that not succeed, the mark of it stays, and whoever starts the server next does it.
    """
    with suppress(BrokerUnavailableError, TimeoutError):
        async with asyncio.timeout(REWRITE_SECONDS):
            going_on = True
            while going_on:
                going_on = await broker.rewrite_file()
                await asyncio.sleep(REWRITE_LOOK_SECONDS if going_on else 0)


@asynccontextmanager
async def connected(settings: Settings) -> AsyncIterator[Broker]:
    """Speak with the broker while inside, without working for it."""
    async with posted(settings) as post:
        yield post.broker


@asynccontextmanager
async def working(
    settings: Settings, roles: Sequence[str], *, health_port: int = 0
) -> AsyncIterator[Post]:
    """Work for `roles` while inside."""
    async with AsyncExitStack() as stack:
        post = await stack.enter_async_context(posted(settings))
        knowledge = None
        if KNOWING & set(roles):
            from deploy.knowledge import opened_knowledge

            knowledge = await stack.enter_async_context(opened_knowledge(settings))
            await stack.enter_async_context(knowledge.warming())
        await stack.enter_async_context(
            staffed(post, roles, knowledge, health_port=health_port, warm=True)
        )
        yield post


@asynccontextmanager
async def opened(settings: Settings, *, channel: str = "cli") -> AsyncIterator[Desk]:
    """Open a desk that answers; raises `CommandError` while there are no documents."""
    async with attended(settings) as post:
        yield desk(post, channel)


@asynccontextmanager
async def attended(settings: Settings, *, empty: bool = False) -> AsyncIterator[Post]:
    """Have questions answered: by workers of our own, or beside a running `refdesk up`.

    Raises `CommandError` while there are no documents, unless `empty` is allowed.
    """
    async with AsyncExitStack() as stack:
        async with _loading(settings):
            post = await stack.enter_async_context(posted(settings))
        from deploy.knowledge import opened_knowledge

        try:
            knowledge = await stack.enter_async_context(opened_knowledge(settings))
        except IndexOwned:
            # Whoever owns the index runs the roles; it is handed the question.
            await stack.enter_async_context(_standing_in(post, ROLES))
            yield post
            return
        if not empty and not await knowledge.has_documents():
            raise CommandError("there are no documents yet; read some with: refdesk ingest PATH...")
        await stack.enter_async_context(knowledge.warming())
        await stack.enter_async_context(staffed(post, ROLES, knowledge))
        yield replace(post, knowledge=knowledge)


@asynccontextmanager
async def _loading(settings: Settings) -> AsyncIterator[None]:
    """Import what knowledge needs while inside: a third of the time a command takes to start."""

    def load() -> None:
        from deploy.knowledge import load_libraries

        load_libraries(settings)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(asyncio.to_thread(load))
        yield


def desks(post: Post, channel: str, *, result_list: str = "") -> dict[tuple[str, str], Desk]:
    """Return the desk of every assistant by tenant and assistant, as `channel` sees it."""
    posts = [replace(post, settings=one) for one in post.settings.of_assistants()]
    return {
        (one.settings.tenant, one.settings.assistant): desk(one, channel, result_list=result_list)
        for one in posts
    }


def desk(post: Post, channel: str, *, result_list: str = "") -> Desk:
    """Return the desk of this process's tenant and first assistant, as `channel` sees it."""
    texts = load_texts()
    return Desk(
        post.broker,
        tenant=post.settings.tenant,
        assistant=post.settings.assistant,
        channel=channel,
        deadline_seconds=post.settings.deadline_seconds,
        apology=lambda language: texts.text("apology", language),
        result_list=result_list,
        keep_seconds=kept_seconds(post.settings),
    )


def kept_seconds(settings: Settings) -> float | None:
    """Return how long this assistant's replies and journals stay; None: as long as all."""
    seconds = settings.result_seconds_of(settings.tenant, settings.assistant)
    return None if seconds == settings.result_ttl_hours * HOUR_SECONDS else seconds


async def ingested(
    settings: Settings, paths: Sequence[Path], report: "Report"
) -> "IngestionResult":
    """Bring paths into the index: here, or by the process that owns it."""
    from deploy.ingestion import hand_over, ingest_here
    from deploy.knowledge import opened_knowledge

    try:
        async with opened_knowledge(settings, alone=True) as knowledge:
            return await ingest_here(settings, knowledge, paths, report)
    except IndexOwned:
        async with posted(settings) as post, _standing_in(post, ()):
            return await hand_over(post.broker, settings, paths, report)


@asynccontextmanager
async def _standing_in(post: Post, roles: Sequence[str]) -> AsyncIterator[None]:
    """Work in the place of the index's owner should it leave before our work is done."""
    async with keeping_time(post), asyncio.TaskGroup() as tasks:
        standing = tasks.create_task(_stand_in(post, roles))
        try:
            yield
        finally:
            standing.cancel()


async def _stand_in(post: Post, roles: Sequence[str]) -> None:
    from deploy.knowledge import opened_knowledge

    while True:
        await asyncio.sleep(STAND_IN_SECONDS)
        try:
            async with (
                opened_knowledge(post.settings) as knowledge,
                staffed(post, roles, knowledge),
            ):
                await asyncio.Event().wait()
        except IndexOwned:
            continue


@asynccontextmanager
async def staffed(
    post: Post,
    roles: Sequence[str],
    knowledge: "Knowledge | None",
    *,
    health_port: int = 0,
    models: Callable[[str], Model] | None = None,
    warm: bool = False,
) -> AsyncIterator[None]:
    """Have workers of `roles` while inside; `models` by task, else those that settings name.

    `warm` gets ready for the first suspect, which costs a process and pays for who works long.
    """
    settings = post.settings
    meter = _meter() if health_port else None
    async with AsyncExitStack() as stack:
        client = post.endpoint.client()
        stack.push_async_callback(client.aclose)
        staffing = await handlers(
            settings,
            roles,
            client,
            knowledge,
            stack,
            meter=meter,
            models=models,
        )
        if models is None and post.endpoint.played is None:
            quarantine = made_quarantine(roles, settings, post.endpoint, KNOWING)
            staffing = with_quarantine(staffing, quarantine, HopCalls(meter))
            if warm:
                await stack.enter_async_context(warming(quarantine))
        renewal = _renewal(post)
        process = _process(post, staffing, renewal, meter)
        if meter is not None:
            _show_staffing(meter, staffing, process)
            await stack.enter_async_context(_served(post, process, renewal, meter, health_port))
        if process.roles and post.endpoint.played is None:
            # Left last: a process that still finishes its work lives.
            presence = RedisPresence(client)
            own = presence.of_process(socket.gethostname(), os.getpid(), process.roles)
            await stack.enter_async_context(announcing(own))
        await stack.enter_async_context(process.running())
        yield


@asynccontextmanager
async def keeping_time(post: Post) -> AsyncIterator[None]:
    """Keep delays, deadlines and recovery going while inside, also when no worker lives."""
    async with _renewal(post).running(lambda _lost: None):
        yield


def _renewal(post: Post) -> LeaseRenewal:
    kind = LeaseRenewal if post.endpoint.played is None else PlayedRenewal
    return kind(
        lambda: _broker(post.settings, post.endpoint), lease_seconds=post.settings.lease_seconds
    )


def _meter() -> "PrometheusMeter":
    from worker.metrics import PrometheusMeter

    return PrometheusMeter()


def _show_staffing(
    meter: "PrometheusMeter", staffing: Sequence[Staffing], process: WorkerProcess
) -> None:
    def running(role: str) -> int:
        return sum(len(worker.runs) for worker in process.workers if worker.role == role)

    for member in staffing:
        role = member.handler.role.value
        places = member.places * member.instances
        meter.staffed(role, places=places, running=partial(running, role))


def _process(
    post: Post, staffing: list[Staffing], renewal: LeaseRenewal, meter: "PrometheusMeter | None"
) -> WorkerProcess:
    from worker.port import SilentMeter

    return WorkerProcess(
        post.broker,
        staffing,
        renewal=renewal,
        meter=meter if meter is not None else SilentMeter(),
        attempts=post.settings.agent_attempts,
    )


@asynccontextmanager
async def _served(
    post: Post,
    process: WorkerProcess,
    renewal: LeaseRenewal,
    meter: "PrometheusMeter",
    port: int,
) -> AsyncIterator[None]:
    from worker.depths import Depths
    from worker.health import serving
    from worker.readiness import Readiness

    readiness = Readiness(
        process,
        lambda: renewal.alive,
        stuck_seconds=STUCK_DEADLINES * post.settings.deadline_seconds,
    )
    depths = Depths(post.broker, process.roles)
    meter.registry.register(depths)
    async with asyncio.TaskGroup() as tasks:
        watching = [tasks.create_task(depths.run()), tasks.create_task(readiness.pulse())]
        with serving(port, meter.registry, dead=readiness.dead, unready=readiness.unready):
            yield
        for task in watching:
            task.cancel()


def _broker(settings: Settings, endpoint: Endpoint) -> RedisBroker:
    return RedisBroker(
        endpoint.client(),
        shards=settings.shards,
        lease_seconds=settings.lease_seconds,
        ttl_seconds=settings.result_ttl_hours * HOUR_SECONDS,
        quota=settings.shard_quota,
        pace=Pace(
            share=settings.queue_share,
            at_least=max(1, settings.smallest_role // settings.shards),
            lanes=(INGESTION,),
        ),
        tell=told_of_poison,
        dead_letter_ttl_seconds=settings.dead_letter_ttl_days * DAY_SECONDS,
        dead_letter_ttls={
            (one.tenant, one.assistant): settings.dead_letter_seconds_of(one.tenant, one.assistant)
            for one in settings.of_assistants()
        },
        rewriting=Rewriting(
            settings.erasure_rewrite_seconds, settings.expiry_rewrite_hours * HOUR_SECONDS
        ),
    )
