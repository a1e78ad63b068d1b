"""Masters die and hand over while questions travel: some may be lost and are told, none twice."""

import asyncio
import random
from collections.abc import Iterator

import pytest

from tests.broker.rig import eventually
from tests.faults.cluster import Cluster
from tests.faults.relay import DEADLINE_SECONDS, SHARDS, House, judged

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]

SEED = 11
SOME = 60
"""So many have to be answered after each fault, for the system to count as well again."""
FAULTS = 30


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


async def killed_and_back(cluster: Cluster, house: House, key: str, more: int) -> None:
    """Kill the master of a key; a replica takes over, and the killed one comes back as another."""
    master = await cluster.master_of(key)
    master.kill()
    await cluster.failed_over(key, master)
    await house.until_answered(more)
    await asyncio.to_thread(master.start)
    await cluster.healthy()


async def handed_over(cluster: Cluster, house: House, key: str, more: int) -> None:
    """Let a replica ask its master for its place."""
    await cluster.hand_over(key)
    await house.until_answered(more)
    await cluster.healthy()


async def test_a_master_that_is_killed_and_one_that_hands_over_double_nothing(
    cluster: Cluster,
) -> None:
    house = House(cluster)
    await house.broker.prepare(["manager", "search"])
    async with house.working():
        async with house.asking():
            await house.until_answered(SOME)
            await killed_and_back(cluster, house, "rd:{0}:open", SOME)
            await handed_over(cluster, house, "rd:{1}:open", SOME)
        await eventually(house.quiet, patience_seconds=DEADLINE_SECONDS)
        reasons = await judged(house)

    assert reasons["answered"] >= 3 * SOME


@pytest.mark.faults
@pytest.mark.timeout(590)
async def test_many_masters_are_killed_and_handed_over_and_nothing_is_doubled(
    cluster: Cluster,
) -> None:
    house, chance = House(cluster), random.Random(SEED)
    await house.broker.prepare(["manager", "search"])
    async with house.working():
        async with house.asking():
            for _ in range(FAULTS):
                act = chance.choice([killed_and_back, handed_over])
                await act(cluster, house, f"rd:{{{chance.randrange(SHARDS)}}}:open", SOME)
        await eventually(house.quiet, patience_seconds=DEADLINE_SECONDS)
        reasons = await judged(house)

    assert reasons["answered"] >= FAULTS * SOME
