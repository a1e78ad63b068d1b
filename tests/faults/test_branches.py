"""Questions with parallel branches, whose workers and managers are killed at random moments."""

from pathlib import Path

import pytest

from tests.faults.deployment import open_deployment
from tests.faults.rounds import Round, hold_round
from tests.faults.worker_main import BRANCHING_ROLES

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]

KINDS = {"ask": 60, "again": 10, "unclear": 5, "outside": 5, "flaky": 8, "wait": 8, "forget": 2}


async def test_no_branch_is_lost_or_counted_twice_and_no_join_stays_or_goes_on_twice(
    folder: Path, seed: int
) -> None:
    hiring = {"branching": True, "roles": BRANCHING_ROLES}
    size = Round(questions=40, kills=10, pauses=1, kinds=KINDS, poison=False, hiring=hiring)

    async with open_deployment(folder) as harness:
        report = await hold_round(harness, size, seed, labels=())

    assert report.broken == []
    assert report.counts["messages accepted"] == 40
    assert report.counts["processes killed"] >= 10
