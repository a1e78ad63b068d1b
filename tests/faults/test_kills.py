"""Workers and managers that are killed at random moments, and the oracle's word on it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.faults.deployment import open_deployment
from tests.faults.rounds import Round, hold_round
from tests.faults.swarms import SWARMS, WORKERS, hold_swarms
from tests.faults.worker_main import BRANCHING_ROLES

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]
BRANCHING = {"branching": True, "roles": BRANCHING_ROLES}
PAUSING = {"pausing": True, "roles": BRANCHING_ROLES}
EVERYTHING = {
    "ask": 60, "again": 10, "unclear": 5, "outside": 5, "flaky": 8, "wait": 8, "forget": 2,
}  # fmt: skip
APPROVALS = {"ask": 80, "flaky": 10, "wait": 10}
CONVERSATIONS = {"ask": 4, "cancel": 4, "forget": 2}


def ask_and_kill(kills: int, **changes: Any) -> Round:
    return Round(kills=kills, **{"questions": 4 * kills, **changes})


@pytest.mark.parametrize(
    ("size", "least"),
    [
        (ask_and_kill(10, questions=60),
         {"messages accepted": 60, "redelivered": 1, "handed over": 1}),
        pytest.param(ask_and_kill(40, questions=240), {"messages accepted": 240},
                     marks=pytest.mark.long),
        (ask_and_kill(10, pauses=1, kinds=EVERYTHING, poison=False, hiring=BRANCHING),
         {"messages accepted": 40}),
        # More than the questions: there were approvals, each of which was given twice at once.
        (ask_and_kill(10, pauses=1, kinds=APPROVALS, poison=False, hiring=PAUSING),
         {"messages accepted": 41}),
        (ask_and_kill(8, questions=56, workers=6, kinds=CONVERSATIONS, merge_share=0.3),
         {"reported superseded": 9}),
        pytest.param(
            ask_and_kill(20, questions=140, workers=6, kinds=CONVERSATIONS, merge_share=0.3),
            {"reported superseded": 21}, marks=pytest.mark.long),
    ],
    ids=["questions", "more", "branches", "approvals", "conversations", "more conversations"],
)  # fmt: skip
async def test_nothing_is_lost_or_doubled_while_processes_are_killed(
    folder: Path, seed: int, size: Round, least: Mapping[str, int]
) -> None:
    async with open_deployment(folder) as harness:
        report = await hold_round(harness, size, seed, labels=())

    assert report.broken == []
    for what, count in {"processes killed": size.kills, **least}.items():
        assert report.counts[what] >= count, what


@pytest.mark.parametrize(
    ("takes_seconds", "kill_every_seconds", "leaves"),
    [(0.4, 1.5, False), (0.4, 1.5, True), pytest.param(3.0, 5.0, False, marks=pytest.mark.long)],
    ids=["until all are done", "left by the person", "longer"],
)
async def test_no_worker_of_a_swarm_is_lost_counted_twice_or_late_while_its_pods_are_killed(
    folder: Path, seed: int, takes_seconds: float, kill_every_seconds: float, leaves: bool
) -> None:
    async with open_deployment(folder) as harness:
        held = await hold_swarms(
            harness,
            seed,
            kill_every_seconds=kill_every_seconds,
            takes_seconds=takes_seconds,
            leaves=leaves,
        )

    assert held.report.findings == ()
    assert held.report.counts["messages accepted"] == SWARMS
    assert held.report.counts["processes killed"] >= 3
    assert held.left > 0 if leaves else set(held.completed) == {WORKERS}
