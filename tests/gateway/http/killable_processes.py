"""Processes around a server that is killed: `server URL PORT`, and `workers URL`."""

import asyncio
import sys
from typing import Any

import structlog

from broker.transport.connect import connect
from envelope.role import Role
from tests.support.http_server import open_http_server
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

GO = "test:go"
"""Once Redis has this key, answers are written."""
QUESTIONS = 200
READY = "ready"


async def serve(url: str, port: int) -> None:
    """Run a server until killed."""
    harness = WorkerHarness(lambda: connect(url), played=False)
    async with open_http_server(harness, port=port):
        await report_and_wait()


async def work(url: str) -> None:
    """Work until killed; every answer waits for the word."""
    harness = WorkerHarness(lambda: connect(url), played=False)

    async def answer_when_released() -> dict[str, Any]:
        await wait_until(lambda: harness.client.exists(GO), patience_seconds=None)
        return {}

    harness.script.next(Role.RESPONSE, *([lambda _reads: answer_when_released()] * QUESTIONS))
    async with harness.open(slots=QUESTIONS):
        await report_and_wait()


async def report_and_wait() -> None:
    """Report to the parent process that this one is ready."""
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    what, url, *more = sys.argv[1:]
    asyncio.run(serve(url, int(more[0])) if what == "server" else work(url))
