import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.connecting import connect
from broker.errors import BrokerUnavailableError
from broker.packing import GREETING_SECONDS, LATE_SECONDS
from broker.redis_broker import RedisBroker
from tests.broker.rig import ROLES, Rig, finish, question
from tests.faults.proxy import Proxy

pytestmark = [pytest.mark.redis, pytest.mark.slow]

BLOCK_SECONDS = 0.2
SLACK_SECONDS = 10.0
"""For a busy machine; the system itself would notice after minutes."""


@pytest.fixture
def proxy(redis_url: str) -> Iterator[Proxy]:
    with Proxy(Path(redis_url.removeprefix("unix://"))) as made:
        yield made


@pytest.fixture
async def rig(proxy: Proxy, redis_url: str) -> AsyncIterator[Rig]:
    """A broker behind the proxy; its rig's client has a line of its own."""
    direct: Any = connect(redis_url)
    await direct.flushall()
    ours = connect(proxy.url)
    broker = RedisBroker(ours)
    await broker.prepare(ROLES)
    yield Rig(broker, direct, RedisBroker)
    await ours.aclose()
    await direct.aclose()


async def test_a_blocking_read_on_a_dead_line_is_given_up_soon_after_its_time(
    rig: Rig, proxy: Proxy
) -> None:
    async def read() -> None:
        await rig.broker.take("manager", "w1", places=1, block_seconds=BLOCK_SECONDS)

    await read()
    assert proxy.freeze() == 1

    assert await _seconds_until_noticed(read()) < BLOCK_SECONDS + LATE_SECONDS + SLACK_SECONDS


async def test_what_one_line_missed_all_others_know(rig: Rig, proxy: Proxy) -> None:
    await rig.submit()
    held = await rig.take()
    proxy.freeze()
    with pytest.raises(BrokerUnavailableError):
        await rig.broker.take("manager", "w1", places=1, block_seconds=BLOCK_SECONDS)

    # On another line that is as dead, and was not used since.
    assert await rig.settle(held, finish())


async def test_nobody_who_greets_back_is_noticed_even_sooner(rig: Rig, proxy: Proxy) -> None:
    proxy.part()
    with pytest.raises(BrokerUnavailableError):
        await rig.broker.take("manager", "w1", places=1, block_seconds=BLOCK_SECONDS)

    seconds = await _seconds_until_noticed(rig.submit())

    assert seconds < GREETING_SECONDS + SLACK_SECONDS
    proxy.heal()
    await rig.submit()
    assert (await rig.take()).question == question()


async def test_a_slow_line_is_no_dead_one(rig: Rig, proxy: Proxy) -> None:
    proxy.slow(0.1)

    await rig.submit()

    assert (await rig.take()).question == question()


async def _seconds_until_noticed(act: Any) -> float:
    started = time.monotonic()
    async with asyncio.timeout(30):
        with pytest.raises(BrokerUnavailableError):
            await act
    return time.monotonic() - started
