"""Masters die and hand over while questions travel: lost ones are reported, none is twice."""

import asyncio
import random
from collections.abc import Iterator

import pytest

from tests.faults.cluster import Cluster
from tests.faults.cluster_harness import DEADLINE_SECONDS, SHARDS, ClusterHarness, judge
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]

SEED = 11
SOME = 60
"""That many have to be answered after each fault, for the system to count as well again."""
FAULTS = 30


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


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


async def test_a_master_that_is_killed_and_one_that_hands_over_double_nothing(
    cluster: Cluster,
) -> None:
    harness = ClusterHarness(cluster)
    await harness.broker.prepare(["manager", "search"])
    async with harness.working():
        async with harness.asking():
            await harness.until_answered(SOME)
            await kill_and_restart(cluster, harness, "rd:{0}:open", SOME)
            await hand_over_master(cluster, harness, "rd:{1}:open", SOME)
        await wait_until(harness.quiet, patience_seconds=DEADLINE_SECONDS)
        reasons = await judge(harness)

    assert reasons["answered"] >= 3 * SOME


@pytest.mark.long
@pytest.mark.timeout(590)
async def test_many_masters_are_killed_and_handed_over_and_nothing_is_doubled(
    cluster: Cluster,
) -> None:
    harness, chance = ClusterHarness(cluster), random.Random(SEED)
    await harness.broker.prepare(["manager", "search"])
    async with harness.working():
        async with harness.asking():
            for _ in range(FAULTS):
                act = chance.choice([kill_and_restart, hand_over_master])
                await act(cluster, harness, f"rd:{{{chance.randrange(SHARDS)}}}:open", SOME)
        await wait_until(harness.quiet, patience_seconds=DEADLINE_SECONDS)
        reasons = await judge(harness)

    assert reasons["answered"] >= FAULTS * SOME
