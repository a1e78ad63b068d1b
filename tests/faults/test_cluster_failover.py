"""Masters die and hand over while questions travel: lost ones are reported, none is twice."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.cluster import Cluster
from tests.faults.cluster_harness import DEADLINE_SECONDS, SHARDS, ClusterHarness, judge
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]

SEED = 11
SOME = 60
"""That many have to be answered after each fault, for the system to count as well again."""


async def kill_and_restart(cluster: Cluster, harness: ClusterHarness, key: str, more: int) -> None:
    """Kill the master of a key; a replica takes over, and the killed one comes back as another."""
    master = await cluster.master_of(key)
    master.kill()
    await cluster.has_failed_over(key, master)
    await harness.until_answered(more)
    await asyncio.to_thread(master.start)
    await cluster.healthy()


async def hand_over_master(cluster: Cluster, harness: ClusterHarness, key: str, more: int) -> None:
    """Let a replica ask its master for its place."""
    await cluster.hand_over(key)
    await harness.until_answered(more)
    await cluster.healthy()


CHANCE = random.Random(SEED)
FAULTS = [
    (CHANCE.choice([kill_and_restart, hand_over_master]), CHANCE.randrange(SHARDS))
    for _ in range(30)
]


@pytest.mark.parametrize(
    "faults",
    [
        [(kill_and_restart, 0), (hand_over_master, 1)],
        pytest.param(FAULTS, marks=[pytest.mark.long, pytest.mark.timeout(590)]),
    ],
    ids=len,
)
async def test_masters_that_are_killed_or_hand_over_double_nothing(
    cluster: Cluster, faults: list[tuple[Callable[..., Any], int]]
) -> None:
    await cluster.healthy()
    harness = ClusterHarness(cluster)
    await harness.client.flushall()
    await harness.broker.prepare(["manager", "search"])

    async with harness.working():
        async with harness.asking():
            await harness.until_answered(SOME)
            for act, shard in faults:
                await act(cluster, harness, f"rd:{{{shard}}}:open", SOME)
        await wait_until(harness.quiet, patience_seconds=DEADLINE_SECONDS)
        reasons = await judge(harness)

    assert reasons["answered"] >= (1 + len(faults)) * SOME
