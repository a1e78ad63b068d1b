"""FastStream: a subscriber with a consumer group for each role, which publishes to the manager."""

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from faststream.redis import RedisBroker, StreamSub

from benchmarks.speed.payload import ROLES, Fields
from benchmarks.speed.systems.port import Ask, Setting, Watch

GROUP = "workers"
AT_ONCE = 64


@asynccontextmanager
async def harness(setting: Setting, watch: Watch) -> AsyncIterator[Ask]:
    """Open the system."""
    client = _broker(setting.client_url)

    async def ask(name: str) -> None:
        await client.publish(setting.payload.opening(name), stream="manager")

    await client.connect()
    broker = _run_workers(setting, watch) if setting.works else None
    if broker is not None:
        await broker.start()
    try:
        yield ask
    finally:
        if broker is not None:
            await broker.stop()
        await client.stop()


def _broker(url: str) -> RedisBroker:
    logger = logging.getLogger("silent")
    logger.setLevel(logging.CRITICAL)
    return RedisBroker(url, logger=logger, max_connections=2000)


def _run_workers(setting: Setting, watch: Watch) -> RedisBroker:
    broker = _broker(setting.worker_url)

    @broker.subscriber(stream=_stream("manager"), max_workers=AT_ONCE)
    async def manage(message: Fields) -> None:
        name, step = str(message["name"]), int(message["step"])
        if step == 0:
            watch.started(name)
        if step == len(ROLES):
            watch.finished(name)
            return
        await broker.publish({**message, "step": step + 1}, stream=ROLES[step])

    def add(role: str) -> None:
        writes = setting.payload.writes[role]

        @broker.subscriber(stream=_stream(role), max_workers=AT_ONCE)
        async def work(message: Fields) -> None:
            if role == ROLES[0]:
                await watch.held(str(message["name"]))
            watch.worked()
            await broker.publish({**message, **writes}, stream="manager")

    for role in ROLES:
        add(role)
    return broker


def _stream(name: str) -> StreamSub:
    return StreamSub(
        name, group=GROUP, consumer=f"worker-{os.getpid()}", max_records=AT_ONCE, last_id=">"
    )
