"""Finds the labels that an app passes on good and bad days."""

import asyncio
from collections.abc import Iterable, Mapping

from tests.faults.await_points import AwaitPoint, places
from tests.faults.deployment import Deployment
from tests.faults.fault_injector import PHASES
from tests.faults.labels import Plan
from tests.faults.ledger import read_notes
from tests.faults.rounds import Round, hold_round
from tests.faults.worker_main import BRANCHING_ROLES

PAUSES = "manager/pausing/"
ELSEWHERE = {
    "worker/metrics.py": "answers who scrapes, and holds no entry",
    "worker/health.py": "beats for the probes, and holds no entry",
    "worker/drafts.py": "shows a draft and settles nothing; see tests/deploy/test_killed_drafts.py",
    "worker/isolation.py": "runs in a process of its own, with tests of its own",
}
"""Files whose waiting places this suite leaves to others, and why."""


async def discover(harness: Deployment, seed: int) -> dict[str, bool]:
    """Return each label, and whether it is ever the innermost of its chain."""
    hiring = {"discovers": True, "slots": 2}
    busy = Round(questions=70, kills=4, pauses=1, cuts=30, workers=3, hiring=hiring)
    await hold_round(harness, busy, seed, labels=())
    pausing = {**hiring, "pausing": True, "roles": BRANCHING_ROLES}
    waits = Round(questions=12, kills=0, workers=2, poison=False, kinds={"ask": 1}, hiring=pausing)
    await hold_round(harness, waits, seed, labels=())
    await _one_is_sent_home(harness)
    lines = [line for line in read_notes(harness.ledger.path) if line.kind == "label"]
    innermost = {line["label"] for line in lines if line["innermost"]}
    return {line["label"]: line["label"] in innermost for line in lines}


def ends(labels: Mapping[str, bool], *, pausing: bool = False) -> list[Plan]:
    """Return a plan for each way to die at each label, in a fixed order.

    Only workers whose questions pause pass the labels of pauses.
    """
    inner = sorted(
        label
        for label, innermost in labels.items()
        if innermost and label.startswith(PAUSES) is pausing
    )
    return [Plan(label, phase) for label in inner for phase in PHASES]


def find_unpassed(labels: Iterable[str]) -> list[AwaitPoint]:
    """Return the places of worker and manager that no label names."""
    known = list(labels)
    return [
        place
        for place in places()
        if place.file not in ELSEWHERE and not any(place.has(label) for label in known)
    ]


async def _one_is_sent_home(harness: Deployment) -> None:
    """Let a process end with work in hand that will not end in time."""
    client, pid = (
        harness.make_client(),
        await harness.workers.hire(discovers=True, grace_seconds=0.05),
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(client.ask("slow 1000", conversation="c1000"))
        await harness.wait_for_note("started", pid=pid, role="search")
        harness.workers.end(pid)
        await harness.workers.until(lambda: pid in harness.workers.died)
        await client.cancel("slow 1000", conversation="c1000")
    await client.close()
    # What it handed back was cancelled, but would keep the next one busy for a minute.
    await harness.client.flushall()
    await harness.broker.prepare(BRANCHING_ROLES)
