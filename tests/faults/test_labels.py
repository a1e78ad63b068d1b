"""Kills at every place where worker or manager waits."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults import load
from tests.faults.deployment import open_deployment
from tests.faults.label_discovery import discover, ends, find_unpassed
from tests.faults.rounds import Round, hold_round
from tests.faults.worker_main import BRANCHING_ROLES

pytestmark = [pytest.mark.redis, pytest.mark.long, pytest.mark.timeout(420)]

KINDS = {**load.KINDS, "slow": 80}
"""Enough that takes long for some of it to be in hand whenever a process is sent home."""
MOST_REPEATS = 3
FEW = 12
"""That many places are chosen by the seed; `make faults` takes them all, many times."""


async def test_a_process_may_die_wherever_worker_or_manager_waits(folder: Path, seed: int) -> None:
    async with open_deployment(folder) as harness:
        labels = await discover(harness, seed)
        plans = tuple(random.Random(seed).sample(ends(labels), FEW))
        size = Round(questions=70, kills=0, cuts=10, workers=3, plans=plans, kinds=KINDS)

        report = await hold_round(harness, size, seed, labels=())

    broken = [*report.broken]
    for number in range(1, MOST_REPEATS + 1):
        # A cut connection meets a rare place only at times: what no process passed is repeated.
        if not report.missed:
            break
        again = replace(size, plans=tuple(report.missed))
        place = folder / f"again-{number}"
        place.mkdir()
        async with open_deployment(place) as harness:
            report = await hold_round(harness, again, seed + number, labels=())
        broken += report.broken

    assert [str(place) for place in find_unpassed(labels)] == []
    assert broken == []
    assert "; ".join(f"{plan.label} {plan.phase}" for plan in report.missed) == ""


async def test_a_manager_may_die_wherever_it_waits_for_the_claim_of_a_pause(
    folder: Path, seed: int
) -> None:
    async with open_deployment(folder) as harness:
        plans = tuple(ends(await discover(harness, seed), pausing=True))
        size = Round(
            questions=40, kills=0, workers=3, plans=plans, poison=False,
            kinds={"ask": 80, "flaky": 10, "wait": 10},
            hiring={"pausing": True, "roles": BRANCHING_ROLES},
        )  # fmt: skip
        report = await hold_round(harness, size, seed, labels=())

    assert plans, "the claim is a place where a manager waits"
    assert report.broken == []
    assert "; ".join(f"{plan.label} {plan.phase}" for plan in report.missed) == ""
