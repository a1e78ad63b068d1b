"""Kills at every place where worker or manager waits."""

import random
from pathlib import Path

import pytest

from tests.faults import load
from tests.faults.deployment import open_deployment
from tests.faults.label_discovery import discover, ends, find_unpassed
from tests.faults.rounds import Round, hold_round

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]

KINDS = {**load.KINDS, "slow": 80}
"""Enough that takes long for some of it to be in hand whenever a process is sent home."""
FEW = 12
"""That many places are chosen by the seed; `make faults` takes them all, many times."""


async def test_a_process_may_die_wherever_worker_or_manager_waits(folder: Path, seed: int) -> None:
    async with open_deployment(folder) as harness:
        labels = await discover(harness, seed)
        plans = tuple(random.Random(seed).sample(ends(labels), FEW))
        size = Round(questions=70, kills=0, cuts=10, workers=3, plans=plans, kinds=KINDS)

        report = await hold_round(harness, size, seed, labels=())

    assert [str(place) for place in find_unpassed(labels)] == []
    assert report.broken == []
    assert "; ".join(f"{plan.label} {plan.phase}" for plan in report.missed) == ""
