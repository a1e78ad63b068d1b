"""Finds the labels that a house passes on good and bad days."""

import asyncio
from collections.abc import Iterable

from tests.faults.house import House
from tests.faults.labels import Plan
from tests.faults.ledger import noted
from tests.faults.places import Place, places
from tests.faults.rounds import Round, held
from tests.faults.staff import ALL_ROLES
from tests.faults.trouble import PHASES

ELSEWHERE = {
    "worker/depths.py": "answers who scrapes, and holds no entry",
    "worker/readiness.py": "beats for the probes, and holds no entry",
    "worker/quarantine.py": "runs in a process of its own, with tests of its own",
}
"""Files whose waiting places this suite leaves to others, and why."""


async def discovered(house: House, seed: int) -> dict[str, bool]:
    """Return each label, and whether it is ever the innermost of its chain."""
    hiring = {"discovers": True, "places": 2}
    busy = Round(questions=70, kills=4, pauses=1, cuts=30, workers=3, hiring=hiring)
    await held(house, busy, seed, labels=())
    await _one_is_sent_home(house)
    lines = [line for line in noted(house.ledger.path) if line.kind == "label"]
    innermost = {line["label"] for line in lines if line["innermost"]}
    return {line["label"]: line["label"] in innermost for line in lines}


def ends(labels: dict[str, bool]) -> list[Plan]:
    """Return a plan for each way to die at each label, in a fixed order."""
    inner = sorted(label for label, innermost in labels.items() if innermost)
    return [Plan(label, phase) for label in inner for phase in PHASES]


def unpassed(labels: Iterable[str]) -> list[Place]:
    """Return the places of worker and manager that no label names."""
    known = list(labels)
    return [
        place
        for place in places()
        if place.file not in ELSEWHERE and not any(place.has(label) for label in known)
    ]


async def _one_is_sent_home(house: House) -> None:
    """Let a process end with work in hand that will not end in time."""
    door, pid = house.door(), await house.workers.hire(discovers=True, grace_seconds=0.05)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(door.ask("slow 1000", conversation="c1000"))
        await house.noted("started", pid=pid, role="search")
        house.workers.end(pid)
        await house.workers.until(lambda: pid in house.workers.died)
        await door.cancel("slow 1000", conversation="c1000")
    await door.close()
    # What it handed back was cancelled, but would keep the next one busy for a minute.
    await house.client.flushall()
    await house.broker.prepare([role.value for role in ALL_ROLES])
