"""A worker process as `refdesk worker` runs it, with a model that meets with what a message names.

`slow-*` hangs when it is asked for the first time, `shaky-*` breaks once, `broken-*` always does.
"""

import asyncio
import logging
import os
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import structlog

from broker.transport.connect import connect
from deploy.assembly.observing import observing
from deploy.assembly.runtime import connect_runtime, make_meter, run_workers
from deploy.logging_setup import configure_logging, secrets_of
from envelope.run import OUTSIDE, Run
from llm.missing_model import MissingModel
from llm.port import ModelCall, Usage, record
from tests.support.app_harness import settings_of

HANGING = "test:hanging"
READY = "test:ready"
LEASE_SECONDS = 3.0
KEY = "sk-nobody-may-read-this"
COST = Decimal("0.01")


class EventfulModel:
    """Takes a cent for each task, and gives no answer."""

    name = "gpt@test"

    def __init__(self, client: Any) -> None:
        self._client = client
        self._offline = MissingModel()

    async def ask(self, task: Any, inputs: Any, run: Run = OUTSIDE, **options: Any) -> Any:
        message = run.find_question().message_id
        await self._log()
        asked = await self._client.incr(f"test:asked:{message}:{task.name}")
        if message.startswith("slow") and asked == 1:
            await self._client.rpush(HANGING, message)
            await asyncio.Event().wait()
        if message.startswith("broken") or (message.startswith("shaky") and asked == 1):
            raise RuntimeError(f"the vendor refused the key {KEY}")
        record(ModelCall(task.name, self.name, Usage(10, 5), COST, 1.0))
        return await self._offline.ask(task, inputs, run, **options)

    async def _log(self) -> None:
        """Log as everybody does: our way, the libraries' way, from a thread, from a task."""
        structlog.get_logger("llm").info("asked")
        logging.getLogger("vendor").info("request sent with %s", KEY)
        await asyncio.to_thread(logging.getLogger("vendor").warning, "sent from a thread")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(
                asyncio.to_thread(structlog.get_logger("llm").info, "in a task", sent=KEY)
            )


async def work(url: str, data: str, roles: Sequence[str], port: int) -> None:
    settings = settings_of(
        Path(data),
        redis_url=url,
        openai_api_key=KEY,
        lease_seconds=LEASE_SECONDS,
        instances={"translation": 1},  # each read that a paused one has left open takes an entry
    )
    configure_logging("debug", secrets=secrets_of(settings))
    logging.getLogger("vendor").setLevel(logging.DEBUG)
    client: Any = connect(url)
    model = EventfulModel(client)
    meter = make_meter()
    async with (
        connect_runtime(settings) as runtime,
        run_workers(
            runtime, roles, None, health_port=port, meter=meter, models=lambda _task: model
        ),
        observing(runtime.broker, settings, meter.registry, runtime.jobs),
    ):
        await client.rpush(READY, port)
        await asyncio.Event().wait()


def main(url: str, data: str, roles: Sequence[str], port: int, log: str) -> None:
    """Work until killed, with standard error in a file as a container's is."""
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT), 2)
    asyncio.run(work(url, data, roles, port))
