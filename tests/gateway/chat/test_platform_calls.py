"""A channel ends when it is cancelled, also when a client loses the one cancellation of a loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import httpx
import pytest
from aiohttp import web

from gateway.chat.platform_calls import raise_if_cancelled
from tests.support.chat_harness import open_connector
from tests.support.fake_channel import FakeChannel
from tests.support.waiting import within
from tests.support.worker_harness import WorkerHarness


class DeafResults:
    """A result list whose client loses a cancellation inside its first renewal."""

    renew_seconds = 0.01

    def __init__(self, results: Any) -> None:
        self._results = results
        self.renews = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._results, name)

    async def renew(self, _held: Any) -> None:
        if not self.renews.is_set():
            self.renews.set()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()


class DeafBroker:
    """A broker with such a result list."""

    def __init__(self, broker: Any) -> None:
        self._broker = broker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def result_list(self, name: str, consumer: str) -> DeafResults:
        self.results = DeafResults(self._broker.result_list(name, consumer))
        return self.results


async def test_a_channel_ends_though_the_renewal_of_its_outcomes_missed_the_cancellation(
    harness: WorkerHarness,
) -> None:
    broker = DeafBroker(harness.make_broker())
    async with within(), open_connector(harness, FakeChannel(), broker=broker):
        await broker.results.renews.wait()


async def test_a_cancellation_that_was_lost_is_raised_later() -> None:
    began, goes_on = asyncio.Event(), asyncio.Event()

    async def deaf() -> None:
        began.set()
        with suppress(asyncio.CancelledError):
            await goes_on.wait()
        raise_if_cancelled()
        raise AssertionError("it went on")

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(deaf())
        await began.wait()
        task.cancel()

    assert task.cancelled()


@asynccontextmanager
async def silent_server() -> AsyncIterator[str]:
    """Serve what never answers while inside; return its address."""

    async def never(_request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError("it never answers")

    app = web.Application()
    app.router.add_get("/", never)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def ask_telegram(url: str) -> None:
    async with httpx.AsyncClient(timeout=0.05) as client:
        await client.get(url)


async def ask_slack(url: str) -> None:
    limit = aiohttp.ClientTimeout(total=0.05)
    async with aiohttp.ClientSession(timeout=limit) as client, client.get(url):
        pass


@pytest.mark.parametrize("ask", [ask_telegram, ask_slack])
async def test_the_time_limit_of_a_client_is_not_taken_for_a_cancellation(ask: Any) -> None:
    async with silent_server() as url:
        with pytest.raises((httpx.TimeoutException, TimeoutError)):
            await ask(url)

        raise_if_cancelled()
