"""A swarm of a hundred: some raise, some hang, and processes that hold some are killed."""

import asyncio
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envelope.role import Role
from tests.faults.deployment import Deployment, open_deployment
from tests.faults.ledger import Noted, read_notes
from tests.faults.scripted_agents import SwarmScript
from tests.faults.worker_main import BRANCHING_ROLES
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(120)]

KILLED = 5
SCRIPT = SwarmScript(
    workers=100,
    parallel=100,
    retries=1,
    raising=("w50", "w51", "w52", "w53", "w54"),
    hanging=("w60", "w61", "w62"),
    takes_seconds=0.05,
    join_seconds=12.0,
)
HOLDING = replace(SCRIPT, holds=True)
WORK = (Role.WORK.value,)
OTHERS = tuple(role for role in BRANCHING_ROLES if role not in WORK)


def read_work(harness: Deployment, kind: str) -> list[Noted]:
    return [note for note in read_notes(harness.ledger.path) if note.kind == kind]


async def kill_holders(harness: Deployment) -> set[str]:
    """Let processes take one worker each, kill them, and return the workers that they held."""
    holders = [await harness.workers.hire(swarm=HOLDING, roles=WORK, slots=1) for _ in range(5)]
    await wait_until(lambda: len(read_work(harness, "work begun")) == KILLED, patience_seconds=20)
    held = {item["worker"] for item in read_work(harness, "work begun")}
    for pid in holders:
        harness.workers.kill(pid)
    await harness.workers.until(lambda: not harness.workers.alive.keys() & set(holders))
    assert {harness.workers.died[pid] for pid in holders} == {9}
    return held


async def test_no_healthy_worker_runs_again_and_nobody_is_paid_after_the_end(folder: Path) -> None:
    async with open_deployment(folder) as harness:
        client = harness.make_client(deadline_seconds=60.0)
        await harness.workers.hire(swarm=SCRIPT, roles=OTHERS)
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(client.ask("ask 1", conversation="c1"))
            held = await kill_holders(harness)
            for _ in range(2):
                await harness.workers.hire(swarm=SCRIPT, roles=WORK, slots=64)
        reply: Any = asking.result()
        end = next(item.at for item in read_work(harness, "reported"))
        begun = Counter(item["worker"] for item in read_work(harness, "work begun"))
        done = Counter(item["worker"] for item in read_work(harness, "work done"))
        paid = read_work(harness, "billed")
        await client.close()

    states = {task["task_id"]: task["state"] for task in reply["tasks"]}
    failing = {*SCRIPT.raising, *SCRIPT.hanging}
    healthy = states.keys() - failing - held
    assert len(held) == KILLED
    assert not held & failing
    assert reply["outcome"] == "answered"
    assert len(healthy) == 87
    assert {begun[name] for name in healthy} == {1}
    assert {begun[name] for name in held} == {2}, "another process has taken it over"
    assert done == Counter(healthy | held)
    assert {name for name, state in states.items() if state == "completed"} == healthy | held
    assert {states[name] for name in SCRIPT.raising} == {"failed"}
    attempts = {task["task_id"]: task["attempts"] for task in reply["tasks"]}
    assert {attempts[name] for name in SCRIPT.raising} == {2}, "again while others hung"
    assert {states[name] for name in SCRIPT.hanging} == {"skipped"}, "their time was over"
    assert "Answered parts of the question: 92 of 100" in reply["text"]
    missing = re.findall(r"(Value of part\d+) \(could not be looked up", reply["text"])
    assert missing == [f"Value of part{name[1:]}" for name in sorted(failing)]
    assert max(item.at for item in paid) < end
