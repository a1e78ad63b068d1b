"""Script calls that share round trips: each keeps its own answer, and its own error."""

import asyncio
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, ResponseError

from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from broker.transport.connection import LANES
from tests.support.broker_harness import question
from tests.support.waiting import wait_until, yield_to_tasks

pytestmark = pytest.mark.redis

ECHO = "return ARGV[1]"
FAIL = "return redis.error_reply('WRONG ' .. ARGV[1])"


async def load_script(client: Any, script: str) -> str:
    digest: str = await client.script_load(script)
    return digest


async def gather_answers(calls: list[Any]) -> list[Any]:
    return await asyncio.gather(*calls, return_exceptions=True)


async def waiting(client: Any) -> bool:
    """Whether scripts wait at the server on every lane."""
    commands = [connection["cmd"] for connection in await client.client_list()]
    return commands.count("evalsha") >= LANES


async def test_many_calls_at_once_share_few_trips_and_each_gets_its_own_answer(
    redis_url: str,
) -> None:
    client: Any = connect(redis_url)
    echo, fail = await load_script(client, ECHO), await load_script(client, FAIL)

    calls = [client.evalsha(fail if n % 10 == 0 else echo, 0, str(n)) for n in range(500)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    connections = await client.client_list()
    await client.aclose()

    assert [t for n, t in enumerate(results) if n % 10] == [
        str(n).encode() for n in range(500) if n % 10
    ]
    errors = [t for n, t in enumerate(results) if n % 10 == 0]
    assert [str(error) for error in errors] == [f"WRONG {n}" for n in range(0, 500, 10)]
    assert {type(error) for error in errors} == {ResponseError}
    assert len(connections) <= LANES + 1


async def test_simultaneous_reads_of_outcomes_share_connections(redis_url: str) -> None:
    client: Any = connect(redis_url)
    broker = RedisBroker(client)
    before = len(await client.client_list())

    asked = [
        broker.replies.await_reply(question(conversation=f"look-{number}")) for number in range(100)
    ]
    replies = await asyncio.gather(*asked)
    connections = await client.client_list()
    await broker.close()

    assert {reply["termination_reason"] for reply in replies if reply is not None} == {"lost"}
    assert len(connections) - before <= LANES


async def test_a_forgotten_script_fails_its_own_call_alone(redis_url: str) -> None:
    client: Any = connect(redis_url)
    echo = await load_script(client, ECHO)

    calls = [client.evalsha("0" * 40 if n == 7 else echo, 0, str(n)) for n in range(20)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    await client.aclose()

    assert isinstance(results[7], NoScriptError)
    assert [t for n, t in enumerate(results) if n != 7] == [
        str(n).encode() for n in range(20) if n != 7
    ]


async def test_a_cancelled_waiting_call_does_not_affect_others(redis_url: str) -> None:
    client: Any = connect(redis_url)
    echo = await load_script(client, ECHO)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(client.evalsha(echo, 0, str(n))) for n in range(50)]
        await yield_to_tasks()
        for task in tasks[::5]:
            task.cancel()
    again = await client.evalsha(echo, 0, "again")
    await client.aclose()

    kept = {n: task.result() for n, task in enumerate(tasks) if not task.cancelled()}
    assert kept == {n: str(n).encode() for n in range(50) if n % 5}
    assert again == b"again"


async def test_when_connections_break_each_call_fails_and_the_next_one_succeeds(
    redis_url: str,
) -> None:
    client: Any = connect(redis_url)
    echo = await load_script(client, ECHO)
    killer: Any = connect(redis_url)
    # Scripts wait, all else goes on: nothing was answered when the connections break.
    await killer.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")

    async with asyncio.TaskGroup() as group:
        calls = [client.evalsha(echo, 0, str(n)) for n in range(LANES + 2)]
        gathering = group.create_task(gather_answers(calls))
        await wait_until(lambda: waiting(killer))
        await killer.client_kill_filter(_type="normal", skipme=True)
        await killer.execute_command("CLIENT", "UNPAUSE")
    results = gathering.result()
    again = await client.evalsha(echo, 0, "again")
    await client.aclose()
    await killer.aclose()

    broken = [t for t in results if isinstance(t, RedisConnectionError)]
    assert broken
    assert all(t == str(n).encode() for n, t in enumerate(results) if t not in broken)
    assert again == b"again"


async def test_a_call_after_the_end_leaves_no_connection_open(redis_url: str) -> None:
    client: Any = connect(redis_url)
    other: Any = connect(redis_url)
    echo = await load_script(client, ECHO)
    await client.aclose()

    answer = await client.evalsha(echo, 0, "late")

    assert answer == b"late"
    await wait_until(lambda: count_connections(other, 1))
    await other.aclose()


async def count_connections(client: Any, number: int) -> bool:
    """Whether the server has this number of clients."""
    return len(await client.client_list()) == number
