"""taskiq: one task for each role, all on the one stream of its broker.

Its own stream broker, and that of taskiq-redis-streams, which recovers by heartbeats.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from taskiq import AsyncBroker
from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker

from benchmarks.speed.payload import ROLES, Fields
from benchmarks.speed.systems.port import Ask, Setting, Watch

AT_ONCE = 256
INTERVALS_IN_A_LEASE = 6
"""As in the defaults of taskiq-redis-streams: a minute of life, a heartbeat and a look at the
others each 10 seconds."""
MakeBroker = Callable[[Setting, str], AsyncBroker]


def harness(setting: Setting, watch: Watch) -> AbstractAsyncContextManager[Ask]:
    """Open the system."""
    return open_system(_broker, setting, watch)


def _broker(setting: Setting, url: str) -> AsyncBroker:
    options: dict[str, Any] = {}
    if setting.lease_seconds:
        options["idle_timeout"] = int(setting.lease_seconds * 1000)
        options["unacknowledged_lock_timeout"] = setting.lease_seconds
    return RedisStreamBroker(url, consumer_id="0", **options)


def harness_of_streams(setting: Setting, watch: Watch) -> AbstractAsyncContextManager[Ask]:
    """Open the system on the broker of taskiq-redis-streams."""
    return open_system(_streams_broker, setting, watch)


def _streams_broker(setting: Setting, url: str) -> AsyncBroker:
    from taskiq_redis_streams import RedisStreamsBroker

    options: dict[str, Any] = {}
    if setting.lease_seconds:
        lease_ms = int(setting.lease_seconds * 1000)
        options["consumer_heartbeat_ttl"] = lease_ms
        options["consumer_heartbeat_interval"] = lease_ms // INTERVALS_IN_A_LEASE
        options["reclaim_interval"] = lease_ms // INTERVALS_IN_A_LEASE
    return RedisStreamsBroker(url, max_pending=AT_ONCE, **options)


@asynccontextmanager
async def open_system(make: MakeBroker, setting: Setting, watch: Watch) -> AsyncIterator[Ask]:
    """Open a system on a broker of taskiq."""
    logging.getLogger("taskiq").setLevel(logging.ERROR)
    client = make(setting, setting.client_url)
    manage = _tasks(client, setting, watch)

    async def ask(name: str) -> None:
        await manage(setting.payload.opening(name))

    await client.startup()
    try:
        if not setting.works:
            yield ask
            return
        async with asyncio.TaskGroup() as tasks:
            worker = tasks.create_task(_work(make(setting, setting.worker_url), setting, watch))
            yield ask
            worker.cancel()
    finally:
        await client.shutdown()


async def _work(broker: AsyncBroker, setting: Setting, watch: Watch) -> None:
    broker.is_worker_process = True
    _tasks(broker, setting, watch)
    await broker.startup()
    try:
        await run_receiver_task(broker, max_async_tasks=AT_ONCE)
    finally:
        await broker.shutdown()


def _tasks(
    broker: AsyncBroker, setting: Setting, watch: Watch
) -> Callable[[Fields], Awaitable[object]]:
    """Register manager and roles; return how the manager is called."""
    called: dict[str, Callable[[Fields], Awaitable[object]]] = {}

    async def manage(message: Fields) -> None:
        name, step = str(message["name"]), int(message["step"])
        if step == 0:
            watch.started(name)
        if step == len(ROLES):
            watch.finished(name)
            return
        await called[ROLES[step]]({**message, "step": step + 1})

    def add(role: str) -> None:
        writes = setting.payload.writes[role]

        async def work(message: Fields) -> None:
            if role == ROLES[0]:
                await watch.held(str(message["name"]))
            watch.worked()
            await called["manager"]({**message, **writes})

        called[role] = broker.register_task(work, task_name=role).kiq

    for role in ROLES:
        add(role)
    called["manager"] = broker.register_task(manage, task_name="manager").kiq
    return called["manager"]
