"""A worker process of the whole desk that stops where a message is named after, to be killed.

A message `after-<role>` stops when the role has done its work and nothing is settled yet,
`after-manager-<stage>` when the manager has decided at that stage, and `in-<task>` while the model
is asked. Every ask of a model is counted in Redis.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from broker.keys import record_of
from broker.lease_renewer import LeaseRenewal
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from broker.values import Delivery, Settlement
from deploy.assembly.agent_factory import make_worker_specs
from deploy.assembly.knowledge import open_knowledge
from deploy.assembly.runtime import KNOWING, connect_runtime
from envelope.envelope import Envelope
from envelope.run import OUTSIDE, Run
from llm.stored_model import StoredModel
from memory.model_calls import RedisCallStore
from tests.support.app_harness import settings_of
from tests.support.quoting_model import QuotingModel
from worker.port import Handler, SilentMeter
from worker.process import WorkerProcess

ASKED = "test:asked"
REACHED = "test:reached"
LEASE_SECONDS = 4.0
"""Long enough for a busy machine: an entry that lost its lease waits for those that stop here."""


class Stops:
    """Where this process stops; one that was started to go on stops nowhere."""

    def __init__(self, client: Any, *, stopping: bool) -> None:
        self._client = client
        self._stopping = stopping

    async def at(self, message_id: str, *names: str) -> None:
        """Wait until killed when the message is named so."""
        if self._stopping and message_id in names:
            await self._client.rpush(REACHED, message_id)
            await asyncio.Event().wait()


class CountedModel:
    """Searches and quotes, and counts who asked what: each ask would be billed."""

    name = "counted"

    def __init__(self, client: Any, stops: Stops) -> None:
        self._client = client
        self._stops = stops
        self._offline = QuotingModel()

    async def ask(self, task: Any, inputs: Any, run: Run = OUTSIDE, **options: Any) -> Any:
        message = run.find_question().message_id
        await self._client.hincrby(ASKED, f"{message}/{task.name}", 1)
        await self._stops.at(message, f"in-{task.name}")
        return await self._offline.ask(task, inputs, **options)


class StoppedHandler:
    """Does what its handler does, and stops before that is settled."""

    def __init__(self, handler: Handler, stops: Stops) -> None:
        self.role = handler.role
        self._handler = handler
        self._stops = stops

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        settlement = await self._handler.handle(delivery, envelope)
        name = f"after-{self.role.value}"
        stage = envelope.payload.get("stage", "start")
        await self._stops.at(envelope.message_id, name, f"{name}-{stage}")
        return settlement


async def work(url: str, data: str, roles: Sequence[str], *, stopping: bool) -> None:
    settings = settings_of(Path(data), redis_url=url)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(connect_runtime(settings))
        knowledge = None
        if KNOWING & set(roles):
            knowledge = await stack.enter_async_context(open_knowledge(settings))
        client = connect(url)
        stops = Stops(client, stopping=stopping)
        calls = RedisCallStore(client, shards=1, record_of=record_of(1))
        model = StoredModel(CountedModel(client, stops), calls, prompts=None)
        staffing = await make_worker_specs(
            settings, roles, client, knowledge, stack, meter=None, models=lambda _task: model
        )
        process = WorkerProcess(
            RedisBroker(connect(url), lease_seconds=LEASE_SECONDS),
            [
                replace(worker_spec, handler=StoppedHandler(worker_spec.handler, stops))
                for worker_spec in staffing
            ],
            renewal=LeaseRenewal(
                lambda: RedisBroker(connect(url), lease_seconds=LEASE_SECONDS),
                lease_seconds=LEASE_SECONDS,
            ),
            meter=SilentMeter(),
        )
        await stack.enter_async_context(process.running())
        await asyncio.Event().wait()


def main(url: str, data: str, roles: Sequence[str], stopping: bool) -> None:
    asyncio.run(work(url, data, roles, stopping=stopping))
