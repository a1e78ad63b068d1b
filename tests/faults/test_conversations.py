"""Cancelling, superseding, merging and forgetting while processes are killed."""

from pathlib import Path

import pytest

from tests.faults.deployment import open_deployment
from tests.faults.rounds import Round, hold_round

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]

KINDS = {"ask": 4, "cancel": 4, "forget": 2}


async def test_cancel_supersede_merge_and_forget_hold_while_processes_are_killed(
    folder: Path, seed: int
) -> None:
    size = Round(questions=150, kills=20, workers=6, kinds=KINDS, merge_share=0.3)

    async with open_deployment(folder) as harness:
        report = await hold_round(harness, size, seed, labels=())

    assert report.broken == []
    assert report.counts["reported superseded"] > 20
    assert report.counts["processes killed"] >= 20
