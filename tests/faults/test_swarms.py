"""Swarms of eight workers on two pods, one of which is killed again and again."""

from pathlib import Path

import pytest

from tests.faults.deployment import open_deployment
from tests.faults.rounds import Round, hold_round
from tests.faults.worker_main import BRANCHING_ROLES

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]


async def test_no_worker_of_a_swarm_is_lost_or_counted_twice(folder: Path, seed: int) -> None:
    hiring = {"swarm": True, "roles": BRANCHING_ROLES}
    size = Round(
        questions=20,
        kills=6,
        kinds={"ask": 100},
        poison=False,
        workers=2,
        at_once=20,
        merge_share=0.0,
        hiring=hiring,
    )

    async with open_deployment(folder) as harness:
        report = await hold_round(harness, size, seed, labels=())

    assert report.broken == []
    assert report.counts["messages accepted"] == 20
    assert report.counts["processes killed"] >= 6
