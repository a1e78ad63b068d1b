"""Questions that wait for an approval, given twice at once, while workers and managers die."""

from pathlib import Path

import pytest

from tests.faults.deployment import open_deployment
from tests.faults.label_discovery import discover, ends
from tests.faults.rounds import Round, hold_round
from tests.faults.worker_main import BRANCHING_ROLES

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]

KINDS = {"ask": 80, "flaky": 10, "wait": 10}


async def test_each_pause_goes_on_once_whoever_dies(folder: Path, seed: int) -> None:
    hiring = {"pausing": True, "roles": BRANCHING_ROLES}
    size = Round(questions=40, kills=10, pauses=1, kinds=KINDS, poison=False, hiring=hiring)

    async with open_deployment(folder) as harness:
        report = await hold_round(harness, size, seed, labels=())

    assert report.broken == []
    assert report.counts["messages accepted"] > 40, "there were approvals"
    assert report.counts["processes killed"] >= 10


@pytest.mark.long
async def test_a_manager_may_die_wherever_it_waits_for_the_claim_of_a_pause(
    folder: Path, seed: int
) -> None:
    hiring = {"pausing": True, "roles": BRANCHING_ROLES}
    async with open_deployment(folder) as harness:
        plans = tuple(ends(await discover(harness, seed), pausing=True))
        size = Round(
            questions=40, kills=0, workers=3, plans=plans, kinds=KINDS, poison=False, hiring=hiring
        )

        report = await hold_round(harness, size, seed, labels=())

    assert plans, "the claim is a place where a manager waits"
    assert report.broken == []
    assert "; ".join(f"{plan.label} {plan.phase}" for plan in report.missed) == ""
