"""Slots move from node to node while questions travel: each of them is answered, none twice."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.exceptions import TryAgainError

from broker.transport.connect import connect
from tests.faults.cluster import Cluster, Move, begun, move_slot
from tests.faults.cluster_harness import DEADLINE_SECONDS, ClusterHarness, judge
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]

SOME = 60
PAUSE_SECONDS = 0.005
AT_ONCE = 10
MOVES = 12
BOTH = "return redis.call('GET', KEYS[1]) .. redis.call('GET', KEYS[2])"
"""A script about two keys of one slot."""


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Any]:
    made: Any = connect(cluster.url)
    await made.flushall()
    yield made
    await made.aclose()


async def test_a_key_is_found_where_it_moved_to_while_others_still_move(
    cluster: Cluster, client: Any
) -> None:
    await client.set("{t}a", "1")
    await client.set("{t}b", "2")
    move = await begun(cluster, "{t}a")
    await move.carry(1)

    assert [await client.get("{t}a"), await client.get("{t}b")] == [b"1", b"2"]
    pipeline = client.pipeline(transaction=False)
    for key in ("{t}a", "{t}b"):
        pipeline.append(key, "!")
    assert await pipeline.execute() == [2, 2]
    while await move.carry(1):
        pass
    assert await client.get("{t}b") == b"2!"
    await move.end()
    assert await client.get("{t}a") == b"1!"


async def test_a_script_waits_for_its_keys_while_they_are_on_two_nodes(
    cluster: Cluster, client: Any
) -> None:
    await client.set("{s}a", "1")
    await client.set("{s}b", "2")
    move = await begun(cluster, "{s}a")
    await move.carry(1)

    async with asyncio.TaskGroup() as tasks:
        script_result = tasks.create_task(client.eval(BOTH, 2, "{s}a", "{s}b"))
        await wait_until(lambda: is_refused(move))
        await move.carry(1)

    assert script_result.result() == b"12"
    await move.end()


async def test_a_script_is_notified_when_its_keys_do_not_come_together(
    cluster: Cluster, client: Any
) -> None:
    await client.set("{u}a", "1")
    await client.set("{u}b", "2")
    move = await begun(cluster, "{u}a")
    await move.carry(1)

    with pytest.raises(TryAgainError):
        await client.eval(BOTH, 2, "{u}a", "{u}b")
    await move.carry(1)
    await move.end()
    assert await client.eval(BOTH, 2, "{u}a", "{u}b") == b"12"


@pytest.mark.parametrize(
    "shards",
    [
        [0],
        pytest.param(
            [number % 3 for number in range(MOVES)],
            marks=[pytest.mark.long, pytest.mark.timeout(590)],
        ),
    ],
    ids=len,
)
async def test_slots_that_move_under_load_lose_and_double_nothing(
    cluster: Cluster, shards: list[int]
) -> None:
    harness = ClusterHarness(cluster)
    await harness.client.flushall()
    await harness.broker.prepare(["manager", "search"])

    async with harness.working():
        async with harness.asking():
            await harness.until_answered(SOME)
            for shard in shards:
                key = f"rd:{{{shard}}}:open"
                await move_slot(cluster, key, keys=AT_ONCE, pause_seconds=PAUSE_SECONDS)
                await harness.until_answered(SOME)
        await wait_until(harness.quiet, patience_seconds=DEADLINE_SECONDS)
        reasons = await judge(harness)

    assert set(reasons) == {"answered"}


async def is_refused(move: Move) -> bool:
    # Redis 7 says so at the node that the slot leaves, Redis 6.2 at the one that imports it.
    nodes = (move.before, move.after)
    info = [str(await node.ask("INFO", "errorstats")) for node in nodes]
    return any("TRYAGAIN" in stats for stats in info)
