import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from broker.transport.connect import connect
from tests.faults.proxy import Proxy
from tests.support.waiting import wait_until

pytestmark = pytest.mark.redis


@pytest.fixture
def proxy(redis_url: str) -> Iterator[Proxy]:
    with Proxy(Path(redis_url.removeprefix("unix://"))) as made:
        yield made


@pytest.fixture
async def client(proxy: Proxy) -> AsyncIterator[Any]:
    """One connection through the proxy, which gives up at once."""
    made = aioredis.Redis.from_url(
        proxy.url, retry=Retry(NoBackoff(), 0), socket_timeout=0.3, protocol=2
    )
    await made.flushall()
    yield made
    await made.aclose()


async def test_a_lost_reply_is_of_a_command_that_was_done(proxy: Proxy, client: Any) -> None:
    proxy.lose_replies("INCR")

    with pytest.raises(RedisConnectionError):
        await client.incr("counted")

    assert await client.get("counted") == b"1"
    assert proxy.lost == 1


async def test_a_broken_line_can_be_made_again(proxy: Proxy, client: Any, redis_url: str) -> None:
    direct: Any = connect(redis_url)

    async def waits() -> bool:
        return int((await direct.info("clients"))["blocked_clients"]) > 0

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        blocked = tasks.create_task(_failure(client.blpop(["nothing"], timeout=0)))
        await wait_until(waits)
        proxy.reset()

    assert isinstance(blocked.result(), RedisConnectionError)
    assert await client.ping()
    await direct.aclose()


async def test_a_parted_line_says_nothing_and_a_new_one_works_once_it_is_whole(
    proxy: Proxy, client: Any
) -> None:
    proxy.part()
    assert isinstance(await _failure(client.set("sent", "once")), RedisTimeoutError)
    assert isinstance(await _failure(client.ping()), RedisTimeoutError)

    proxy.heal()

    assert await client.get("sent") is None


async def test_a_frozen_line_stays_mute_while_others_speak(proxy: Proxy, client: Any) -> None:
    await client.ping()
    assert proxy.freeze() == 1

    assert isinstance(await _failure(client.ping()), RedisTimeoutError)
    assert await client.ping()


async def test_a_slow_line_holds_up_both_ways(proxy: Proxy, client: Any) -> None:
    proxy.slow(0.05)
    started = time.monotonic()

    await client.ping()

    assert time.monotonic() - started >= 0.1


async def test_a_burst_of_commands_is_one_round_trip(proxy: Proxy, client: Any) -> None:
    await client.ping()
    before = proxy.turns

    pipeline = client.pipeline(transaction=False)
    for _ in range(20):
        pipeline.incr("counted")
    await pipeline.execute()
    await client.ping()

    assert proxy.turns == before + 2


async def _failure(command: Any) -> Exception | None:
    try:
        await command
    except Exception as error:  # noqa: BLE001 - which one it is, is what is looked at
        return error
    return None
