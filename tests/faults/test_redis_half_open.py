import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from broker.errors import BrokerUnavailableError
from broker.lease_renewer import LeaseRenewal
from broker.redis_broker import RedisBroker
from broker.transport.connect import ServerLinks, connect
from broker.transport.connection import GREETING_SECONDS, LATE_SECONDS
from tests.faults.proxy import Proxy
from tests.faults.servers import Server
from tests.support.broker_harness import ROLES, BrokerHarness, finish, question
from tests.support.waiting import wait_until, within
from tests.time_limits import measure_slowness

pytestmark = [pytest.mark.redis, pytest.mark.slow]

BLOCK_SECONDS = 0.2
LONG_SECONDS = 8.0
"""As long as workers wait."""
HANGING_SECONDS = 1.8
"""Long enough for a beat to be missed, and for nobody to greet back."""
SLACK_SECONDS = 10.0
"""For a busy machine; the system itself would notice after minutes."""


@pytest.fixture
async def harness(proxy: Proxy, redis_url: str) -> AsyncIterator[BrokerHarness]:
    """A broker behind the proxy; the client of its harness has a separate connection."""
    direct: Any = connect(redis_url)
    await direct.flushall()
    ours = connect(proxy.url)
    broker = RedisBroker(ours)
    await broker.prepare(ROLES)
    yield BrokerHarness(broker, direct, RedisBroker)
    await ours.aclose()
    await direct.aclose()


async def test_a_blocking_read_on_a_dead_line_is_given_up_soon_after_its_time(
    harness: BrokerHarness, proxy: Proxy
) -> None:
    async def read() -> None:
        await harness.broker.consumer.take("manager", "w1", slots=1, block_seconds=BLOCK_SECONDS)

    await read()
    assert proxy.freeze() == 1

    seconds = await _seconds_until_noticed(read())
    assert seconds < BLOCK_SECONDS + LATE_SECONDS + SLACK_SECONDS * measure_slowness()


async def test_a_silence_on_one_connection_is_known_to_all_others(
    harness: BrokerHarness, proxy: Proxy
) -> None:
    await harness.submit()
    held = await harness.take()
    proxy.freeze()
    with pytest.raises(BrokerUnavailableError):
        await harness.broker.consumer.take("manager", "w1", slots=1, block_seconds=BLOCK_SECONDS)

    # On another line that is as dead, and was not used since.
    assert await harness.settle(held, finish())


async def test_nobody_who_greets_back_is_noticed_even_sooner(
    harness: BrokerHarness, proxy: Proxy
) -> None:
    proxy.part()
    with pytest.raises(BrokerUnavailableError):
        await harness.broker.consumer.take("manager", "w1", slots=1, block_seconds=BLOCK_SECONDS)

    seconds = await _seconds_until_noticed(harness.submit())

    assert seconds < GREETING_SECONDS + SLACK_SECONDS * measure_slowness()
    proxy.heal()
    await harness.submit()
    assert (await harness.take()).question == question()


@pytest.mark.parametrize("reader", ["a worker", "who waits for an outcome"])
async def test_a_dead_line_is_noticed_long_before_a_read_on_it_is_over(
    harness: BrokerHarness, proxy: Proxy, reader: str
) -> None:
    lines = ServerLinks()
    reads = RedisBroker(connect(proxy.url, lines))
    renewal = LeaseRenewal(lambda: RedisBroker(connect(proxy.url, lines)))
    await harness.submit()
    await harness.take()

    async def read() -> None:
        if reader == "a worker":
            await reads.consumer.take("manager", "w1", slots=1, block_seconds=LONG_SECONDS)
        else:
            await reads.replies.await_reply(question(), block_seconds=LONG_SECONDS)

    async with renewal.running(lambda _lost: None), asyncio.TaskGroup() as tasks:
        noticed = tasks.create_task(_seconds_until_noticed(read()))
        await wait_until(_waits(harness.client, "xreadgroup" if reader == "a worker" else "xread"))
        proxy.freeze()

        assert await noticed < LONG_SECONDS / 2
    await reads.close()


async def test_a_read_outlives_a_server_that_hangs_for_a_moment(tmp_path: Path) -> None:
    lines = ServerLinks()
    with Server(tmp_path) as server:
        broker = RedisBroker(connect(server.url, lines))
        harness = BrokerHarness(broker, connect(server.url), RedisBroker)
        await broker.prepare(ROLES)
        renewal = LeaseRenewal(lambda: RedisBroker(connect(server.url, lines)))
        async with renewal.running(lambda _lost: None), asyncio.TaskGroup() as tasks:
            taking = tasks.create_task(
                broker.consumer.take("manager", "w1", slots=1, block_seconds=LONG_SECONDS)
            )
            await wait_until(_waits(harness.client, "xreadgroup"))
            server.stop()
            await asyncio.sleep(HANGING_SECONDS)  # noqa: TID251 - the server hangs for this long
            server.go_on()
            await harness.submit()

            assert [taken.question for taken in await taking] == [question()]
        await harness.client.aclose()
        await broker.close()


async def test_a_slow_line_is_no_dead_one(harness: BrokerHarness, proxy: Proxy) -> None:
    proxy.slow(0.1)

    await harness.submit()

    assert (await harness.take()).question == question()


async def _seconds_until_noticed(act: Any) -> float:
    started = time.monotonic()
    async with within():
        with pytest.raises(BrokerUnavailableError):
            await act
    return time.monotonic() - started


def _waits(client: Any, command: str) -> Callable[[], Awaitable[bool]]:
    """Return whether such a read waits, besides the two of the maintenance loop."""

    async def look() -> bool:
        doing = [each["cmd"] for each in await client.client_list() if "b" in each["flags"]]
        return sorted(doing) == sorted((command, "xread", "blpop"))

    return look
