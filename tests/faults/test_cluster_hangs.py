"""A master hangs: others work on, and what it held waits only until another has taken over."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest

from broker.keys import shard_for
from broker.transport.connect import connect
from gateway.desk import Message
from tests.faults.cluster import NODE_TIMEOUT_MS, Cluster, Node
from tests.faults.cluster_harness import DEADLINE_SECONDS, SHARDS, ClusterHarness, judge
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]

NAMES = count(1)
SHORT_SECONDS = 1.0
"""A hang that its cluster does not even notice."""
ELECTION_SECONDS = 4.0
"""For a replica to be elected, and for us to find it; a single call could last ten seconds."""


@pytest.fixture
async def harness(cluster: Cluster) -> AsyncIterator[ClusterHarness]:
    await cluster.healthy()
    harness = ClusterHarness(cluster)
    await harness.client.flushall()
    await harness.broker.prepare(["manager", "search"])
    async with harness.working():
        for shard in range(SHARDS):
            await seconds_of(harness, shard)
        yield harness


async def seconds_of(harness: ClusterHarness, shard: int) -> float:
    """Ask something of a shard, and return how long the answer took."""
    while True:
        name = str(next(NAMES))
        message = Message("?", f"c{name}", f"m{name}")
        if shard_for(harness.desk.question(message), SHARDS) == shard:
            break
    began = time.monotonic()
    harness.ledger.note(message.message_id, await harness.persistent(message))
    return time.monotonic() - began


@asynccontextmanager
async def hanging(node: Node) -> AsyncIterator[None]:
    node.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        node.signal(signal.SIGCONT)


async def test_a_master_that_hangs_is_replaced_and_keeps_nobody_else(
    cluster: Cluster, harness: ClusterHarness
) -> None:
    owners = [await cluster.master_of(f"rd:{{{shard}}}:open") for shard in range(SHARDS)]
    others = [shard for shard in range(SHARDS) if owners[shard] is not owners[0]]

    async with hanging(owners[0]):
        async with asyncio.TaskGroup() as tasks:
            held_up = tasks.create_task(seconds_of(harness, 0))
            of_others = [await seconds_of(harness, shard) for _ in range(5) for shard in others]
        later = await seconds_of(harness, 0)

    assert held_up.result() < NODE_TIMEOUT_MS / 1000 + ELECTION_SECONDS
    assert max(of_others) < ELECTION_SECONDS
    assert later < ELECTION_SECONDS
    await wait_until(harness.quiet, patience_seconds=DEADLINE_SECONDS)
    assert set(await judge(harness)) == {"answered"}


async def test_a_master_that_hangs_for_a_moment_goes_on_with_what_it_was_asked(
    cluster: Cluster, harness: ClusterHarness
) -> None:
    owner = await cluster.master_of("rd:{0}:open")

    async with asyncio.TaskGroup() as tasks, hanging(owner):
        held_up = tasks.create_task(seconds_of(harness, 0))
        await asyncio.sleep(SHORT_SECONDS)  # noqa: TID251 - the node hangs for this long

    assert held_up.result() < SHORT_SECONDS + ELECTION_SECONDS
    assert await cluster.master_of("rd:{0}:open") is owner
    await wait_until(harness.quiet, patience_seconds=DEADLINE_SECONDS)
    assert set(await judge(harness)) == {"answered"}


async def test_nobody_keeps_lines_to_a_node_that_holds_nothing_any_more(cluster: Cluster) -> None:
    await cluster.healthy()
    before = await cluster.master_of("rd:{0}:open")
    other = next(node for node in cluster.nodes if node is not before)
    client: Any = connect(other.url.replace("redis://", "redis+cluster://"))
    await client.get("rd:{0}:open")
    lines = await _lines(before)
    assert lines > 0
    await cluster.hand_over("rd:{0}:open")

    async def has_parted() -> bool:
        await client.get("rd:{0}:open")
        return await _lines(before) < lines

    await wait_until(has_parted)
    await client.aclose()


async def _lines(node: Node) -> int:
    clients = str(await node.ask("CLIENT", "LIST", "TYPE", "normal"))
    return clients.count("cmd=get ")
