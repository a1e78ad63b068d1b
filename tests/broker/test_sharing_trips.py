"""Script calls that share round trips: each keeps its own answer, and its own error."""

import asyncio
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, ResponseError

from broker.connecting import connect
from broker.trips import LANES

pytestmark = pytest.mark.redis

ECHO = "return ARGV[1]"
FAIL = "return redis.error_reply('WRONG ' .. ARGV[1])"


async def loaded(client: Any, script: str) -> str:
    digest: str = await client.script_load(script)
    return digest


async def test_many_calls_at_once_share_few_trips_and_each_gets_its_own_answer(
    redis_url: str,
) -> None:
    client: Any = connect(redis_url)
    echo, fail = await loaded(client, ECHO), await loaded(client, FAIL)

    calls = [client.evalsha(fail if n % 10 == 0 else echo, 0, str(n)) for n in range(500)]
    told = await asyncio.gather(*calls, return_exceptions=True)
    connections = await client.client_list()
    await client.aclose()

    assert [t for n, t in enumerate(told) if n % 10] == [
        str(n).encode() for n in range(500) if n % 10
    ]
    errors = [t for n, t in enumerate(told) if n % 10 == 0]
    assert [str(error) for error in errors] == [f"WRONG {n}" for n in range(0, 500, 10)]
    assert {type(error) for error in errors} == {ResponseError}
    assert len(connections) <= LANES + 1


async def test_a_forgotten_script_fails_its_own_call_alone(redis_url: str) -> None:
    client: Any = connect(redis_url)
    echo = await loaded(client, ECHO)

    calls = [client.evalsha("0" * 40 if n == 7 else echo, 0, str(n)) for n in range(20)]
    told = await asyncio.gather(*calls, return_exceptions=True)
    await client.aclose()

    assert isinstance(told[7], NoScriptError)
    assert [t for n, t in enumerate(told) if n != 7] == [
        str(n).encode() for n in range(20) if n != 7
    ]


async def test_a_call_that_is_given_up_while_it_waits_disturbs_nobody(redis_url: str) -> None:
    client: Any = connect(redis_url)
    echo = await loaded(client, ECHO)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(client.evalsha(echo, 0, str(n))) for n in range(50)]
        await asyncio.sleep(0)
        for task in tasks[::5]:
            task.cancel()
    again = await client.evalsha(echo, 0, "again")
    await client.aclose()

    kept = {n: task.result() for n, task in enumerate(tasks) if not task.cancelled()}
    assert kept == {n: str(n).encode() for n in range(50) if n % 5}
    assert again == b"again"


async def test_when_connections_break_each_call_is_told_and_the_next_one_succeeds(
    redis_url: str,
) -> None:
    client: Any = connect(redis_url)
    # Longer than it takes to break the connection: nothing was answered by then.
    busy = await loaded(client, "for i = 1, 3000000 do local _ = tostring(i) end return ARGV[1]")
    killer: Any = connect(redis_url)
    await killer.ping()

    told, _ = await asyncio.gather(
        asyncio.gather(
            *(client.evalsha(busy, 0, str(n)) for n in range(LANES + 2)), return_exceptions=True
        ),
        killer.client_kill_filter(_type="normal", skipme=True),
    )
    again = await client.evalsha(busy, 0, "again")
    await client.aclose()
    await killer.aclose()

    broken = [t for t in told if isinstance(t, RedisConnectionError)]
    assert broken
    assert all(t == str(n).encode() for n, t in enumerate(told) if t not in broken)
    assert again == b"again"
