"""Twenty swarms of eight workers at once on two pods, one of which is killed again and again."""

from pathlib import Path

import pytest

from tests.faults.deployment import open_deployment
from tests.faults.swarms.swarm_round import WORKERS, hold_swarms

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]


async def test_no_worker_of_a_swarm_is_lost_counted_twice_or_late(folder: Path, seed: int) -> None:
    async with open_deployment(folder) as harness:
        held = await hold_swarms(harness, seed, kill_every_seconds=1.5, takes_seconds=0.4)

    assert held.report.findings == ()
    assert held.report.counts["messages accepted"] == 20
    assert held.report.counts["processes killed"] >= 3
    assert set(held.completed) == {WORKERS}
