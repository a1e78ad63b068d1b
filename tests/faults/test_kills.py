"""Workers and managers that are killed at random moments, and the oracle's word on it."""

from pathlib import Path

import pytest

from tests.faults.deployment import open_deployment
from tests.faults.rounds import Report, Round, hold_round

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]


async def report_of(folder: Path, size: Round, seed: int) -> Report:
    async with open_deployment(folder) as harness:
        report = await hold_round(harness, size, seed, labels=())
    assert report.broken == []
    return report


@pytest.mark.parametrize("kills", [10, pytest.param(40, marks=pytest.mark.long)])
async def test_eight_managers_under_kills_make_no_double_transition(
    folder: Path, seed: int, kills: int
) -> None:
    size = Round(questions=6 * kills, kills=kills)

    report = await report_of(folder, size, seed)

    assert report.counts["messages accepted"] == 6 * kills
    assert report.counts["processes killed"] >= kills
    assert report.counts["redelivered"] > 0
    assert report.counts["handed over"] > 0
