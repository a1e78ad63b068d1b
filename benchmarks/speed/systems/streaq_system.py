"""streaq: one task for each role, on one queue; a task enqueues the next from within."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from streaq import Worker

from benchmarks.speed.payload import ROLES, Fields
from benchmarks.speed.systems.port import Ask, Setting, Watch

AT_ONCE = 256


@asynccontextmanager
async def harness(setting: Setting, watch: Watch) -> AsyncIterator[Ask]:
    """Open the system."""
    logging.getLogger("streaq").setLevel(logging.ERROR)
    client = _worker(setting, setting.client_url)
    manage = _tasks(client, setting, watch)

    async def ask(name: str) -> None:
        await manage.enqueue(setting.payload.opening(name))

    async with client:
        if not setting.works:
            yield ask
            return
        worker = _worker(setting, setting.worker_url)
        _tasks(worker, setting, watch)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(worker.run_async())
            yield ask
            running.cancel()


def _worker(setting: Setting, url: str) -> "Worker[None]":
    options: dict[str, Any] = {}
    if setting.lease_seconds:
        options["idle_timeout"] = setting.lease_seconds
    return Worker(
        redis_url=url,
        concurrency=AT_ONCE,
        handle_signals=False,
        **options,
    )


def _tasks(worker: "Worker[None]", setting: Setting, watch: Watch) -> Any:
    """Register manager and roles; return the manager's task. No results are kept."""
    registered: dict[str, Any] = {}

    async def manage(message: Fields) -> None:
        name, step = str(message["name"]), int(message["step"])
        if step == 0:
            watch.started(name)
        if step == len(ROLES):
            watch.finished(name)
            return
        await registered[ROLES[step]].enqueue({**message, "step": step + 1})

    def add(role: str) -> None:
        writes = setting.payload.writes[role]

        async def work(message: Fields) -> None:
            if role == ROLES[0]:
                await watch.held(str(message["name"]))
            watch.worked()
            await registered["manager"].enqueue({**message, **writes})

        registered[role] = worker.task(name=role, ttl=0, silent=True)(work)

    for role in ROLES:
        add(role)
    registered["manager"] = worker.task(name="manager", ttl=0, silent=True)(manage)
    return registered["manager"]
