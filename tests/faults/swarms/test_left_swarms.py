"""Swarms whose conversations go on with something else, while pods are killed again and again."""

from pathlib import Path

import pytest

from tests.faults.deployment import open_deployment
from tests.faults.swarms.swarm_round import hold_swarms

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]


async def test_no_message_is_lost_answered_twice_or_late_where_another_one_ends_its_work(
    folder: Path, seed: int
) -> None:
    async with open_deployment(folder) as harness:
        held = await hold_swarms(
            harness, seed, kill_every_seconds=1.5, takes_seconds=0.4, leaves=True
        )

    assert held.report.findings == ()
    assert held.report.counts["messages accepted"] == 20
    assert held.report.counts["processes killed"] >= 3
    assert held.left > 0
