"""A worker process of the whole desk that stops after some model calls, to be killed.

A finished call is counted in Redis under its task, its branch and its content: each would be
billed. A process that has finished its number of calls stops inside the next ones.
"""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from broker.keys import record_of
from broker.lease_renewer import LeaseRenewal
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from deploy.assembly.agent_factory import make_worker_specs
from deploy.assembly.knowledge import open_knowledge
from deploy.assembly.runtime import ROLES, connect_runtime
from envelope.run import OUTSIDE, Run
from llm.port import ModelStep, ToolConversation
from llm.stored_model import StoredModel, digest
from memory.model_calls import RedisCallStore
from tests.support.app_harness import settings_of
from tests.support.reviewing_model import ReviewingModel
from worker.port import SilentMeter
from worker.process import WorkerProcess

FINISHED, STOPPED = "test:finished", "test:stopped"
LEASE_SECONDS = 2.0
COUNTED = frozenset({"requirement_extractor", "compliance"})


class CountingModel:
    """Judges as a person would, counts finished calls, and stops after `most` of them."""

    name = "counting"

    def __init__(self, client: Any, most: int) -> None:
        self._client = client
        self._most = most
        self._finished = 0
        self._judging = ReviewingModel()

    async def ask(self, task: Any, inputs: Any, run: Run = OUTSIDE, **options: Any) -> Any:
        await self._wait_to_be_killed(task.name)
        answer = await self._judging.ask(task, inputs, **options)
        await self._count(task.name, inputs, run)
        return answer

    async def converse(
        self, conversation: ToolConversation, run: Run = OUTSIDE, *, skip: int = 0
    ) -> ModelStep:
        await self._wait_to_be_killed(conversation.task)
        step = await self._judging.converse(conversation, skip=skip)
        await self._count(conversation.task, conversation, run)
        return step

    async def _wait_to_be_killed(self, task: str) -> None:
        if task in COUNTED and self._finished >= self._most:
            await self._client.incr(STOPPED)
            await asyncio.Event().wait()

    async def _count(self, task: str, asked: BaseModel, run: Run) -> None:
        if task in COUNTED:
            self._finished += 1
            name = f"{task}/{run.place}/{digest(asked.model_dump_json())}"
            await self._client.hincrby(FINISHED, name, 1)


async def work(url: str, data: str, most: int) -> None:
    # One call at a time: an entry that was killed several times would be buried as poison.
    alone = dict.fromkeys(COUNTED, 1)
    settings = settings_of(
        Path(data), redis_url=url, way="specialists", concurrency=alone, instances=alone
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(connect_runtime(settings))
        knowledge = await stack.enter_async_context(open_knowledge(settings))
        client = connect(url)
        calls = RedisCallStore(client, shards=1, record_of=record_of(1))
        model = StoredModel(CountingModel(client, most), calls, prompts=None)
        specs = await make_worker_specs(
            settings, ROLES, client, knowledge, stack, meter=None, models=lambda _task: model
        )
        process = WorkerProcess(
            RedisBroker(connect(url), lease_seconds=LEASE_SECONDS),
            specs,
            renewal=LeaseRenewal(
                lambda: RedisBroker(connect(url), lease_seconds=LEASE_SECONDS),
                lease_seconds=LEASE_SECONDS,
            ),
            meter=SilentMeter(),
        )
        await stack.enter_async_context(process.running())
        await asyncio.Event().wait()


def main(url: str, data: str, most: int) -> None:
    asyncio.run(work(url, data, most))
