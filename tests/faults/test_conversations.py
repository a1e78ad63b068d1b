"""Cancelling, superseding, merging and forgetting while processes are killed."""

from pathlib import Path

import pytest

from tests.faults.deployment import open_deployment
from tests.faults.rounds import Round, hold_round

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]

KINDS = {"ask": 4, "cancel": 4, "forget": 2}


@pytest.mark.parametrize("kills", [8, pytest.param(20, marks=pytest.mark.long)])
async def test_cancel_supersede_merge_and_forget_hold_while_processes_are_killed(
    folder: Path, seed: int, kills: int
) -> None:
    size = Round(questions=7 * kills, kills=kills, workers=6, kinds=KINDS, merge_share=0.3)

    async with open_deployment(folder) as harness:
        report = await hold_round(harness, size, seed, labels=())

    assert report.broken == []
    assert report.counts["reported superseded"] > kills
    assert report.counts["processes killed"] >= kills
