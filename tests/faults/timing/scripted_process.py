"""A process of the system whose handler does what the text of its envelope says."""

import asyncio
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from multiprocessing import connection
from typing import Any

from broker.lease_renewer import LeaseRenewal
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from broker.values import Delivery, Finish, FrameSend, Retry, Settlement
from envelope.envelope import Envelope
from envelope.outcome import Outcome
from envelope.role import Role
from worker.isolation import IsolatedHandler, Quarantine
from worker.port import SilentMeter
from worker.process import WorkerProcess, WorkerSpec

READY = "test:ready"
STARTED = "test:started"
ROLE = Role.SEARCH
PLACES = 16
WORK_SECONDS = 0.05


class Actor:
    """Notes each start in Redis, with its process and the clock of Redis, then acts."""

    role = ROLE

    def __init__(self, client: Any) -> None:
        self._client = client

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        text = str(envelope.payload["text"])
        act, _, seconds = text.partition(" ")
        now = await redis_time(self._client)
        if act != "work":
            event = {"message": envelope.message_id, "pid": os.getpid(), "at": now}
            await self._client.rpush(STARTED, json.dumps(event))
        match act:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "block":
                time.sleep(float(seconds))  # noqa: ASYNC251 - a loop that stands still is the fault
            case "wait" if delivery.starts == 1:
                await asyncio.Event().wait()
            case "later" if envelope.retries == 0:
                again = envelope.replace(retries=1)
                return Retry(again.encode(), "it was asked for", seconds=float(seconds))
            case "work":
                await asyncio.sleep(WORK_SECONDS)
        return Finish(Outcome.ANSWERED, {"outcome": "answered"})


async def redis_time(client: Any) -> float:
    """The clock of Redis, in Unix seconds."""
    seconds, microseconds = await client.time()
    return float(seconds + microseconds / 1e6)


def broker_of(url: str, lease_seconds: float) -> RedisBroker:
    return RedisBroker(connect(url), lease_seconds=lease_seconds, make_notice=make_no_notice)


def make_no_notice(_delivery: Delivery, _error: str) -> FrameSend | None:
    return None


@asynccontextmanager
async def actor(url: str, _role: str) -> AsyncIterator[Actor]:
    client = connect(url)
    yield Actor(client)
    await client.aclose()


async def work(url: str, lease_seconds: float, kind: str) -> None:
    """Be a worker, or somebody who only keeps time."""
    client = connect(url)
    renewal = LeaseRenewal(lambda: broker_of(url, lease_seconds), lease_seconds=lease_seconds)
    async with AsyncExitStack() as stack:
        if kind == "timekeeper":
            await stack.enter_async_context(renewal.running(lambda _lost: None))
        else:
            quarantine = Quarantine(
                partial(actor, url), [ROLE.value], make_no_notice, preload=[__name__]
            )
            await quarantine.warm()
            process = WorkerProcess(
                broker_of(url, lease_seconds),
                [WorkerSpec(IsolatedHandler(Actor(client), quarantine), PLACES)],
                renewal=renewal,
                meter=SilentMeter(),
            )
            await stack.enter_async_context(process.running())
        await client.rpush(READY, os.getpid())
        await asyncio.Event().wait()


def main(url: str, lease_seconds: float, kind: str) -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()
    asyncio.run(work(url, lease_seconds, kind))


def end_with_parent() -> None:
    """Leave nothing behind when whoever hired this process is gone."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
