"""pydocket: one task for each role on one docket; a task adds the next from within."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from docket import Docket, Worker

from benchmarks.speed.payload import ROLES, Fields
from benchmarks.speed.systems.port import Ask, Setting, Watch

AT_ONCE = 256
"""More than are ever open: a full worker sleeps a quarter of a second before it looks again."""


@asynccontextmanager
async def harness(setting: Setting, watch: Watch) -> AsyncIterator[Ask]:
    """Open the system."""
    logging.getLogger("docket").setLevel(logging.ERROR)
    async with _docket(setting.client_url) as client:
        manage = _tasks(client, setting, watch)

        async def ask(name: str) -> None:
            await client.add(manage)(setting.payload.opening(name))

        if not setting.works:
            yield ask
            return
        async with asyncio.TaskGroup() as tasks:
            worker = tasks.create_task(_work(setting, watch))
            yield ask
            worker.cancel()


async def _work(setting: Setting, watch: Watch) -> None:
    options: dict[str, Any] = {}
    if setting.lease_seconds:
        options["redelivery_timeout"] = timedelta(seconds=setting.lease_seconds)
    async with _docket(setting.worker_url) as docket:
        _tasks(docket, setting, watch)
        async with Worker(docket, concurrency=AT_ONCE, **options) as worker:
            await worker.run_forever()


def _docket(url: str) -> Docket:
    """Return the docket; what ended is not kept, which is its fastest."""
    return Docket(name="bench", url=f"{url}?max_connections=2000", execution_ttl=timedelta(0))


def _tasks(docket: Docket, setting: Setting, watch: Watch) -> Callable[..., Awaitable[None]]:
    """Register manager and roles; return the manager's task."""
    registered: dict[str, Callable[..., Awaitable[None]]] = {}

    async def manage(message: Fields) -> None:
        name, step = str(message["name"]), int(message["step"])
        if step == 0:
            watch.started(name)
        if step == len(ROLES):
            watch.finished(name)
            return
        await docket.add(registered[ROLES[step]])({**message, "step": step + 1})

    def add(role: str) -> None:
        writes = setting.payload.writes[role]

        async def work(message: Fields) -> None:
            if role == ROLES[0]:
                await watch.held(str(message["name"]))
            watch.worked()
            await docket.add(manage)({**message, **writes})

        work.__name__ = role
        registered[role] = work
        docket.register(work)

    for role in ROLES:
        add(role)
    docket.register(manage)
    return manage
