"""What a killed process held goes on elsewhere; a deadline comes as long as one process lives."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.faults.deployment import open_deployment
from tests.faults.evidence import gather_evidence
from tests.faults.oracle import findings, lateness
from tests.faults.worker_main import ALL_ROLES
from tests.support.waiting import wait_until
from tests.time_limits import measure_slowness

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(120)]
SLACK_SECONDS = 10.0
"""For a busy machine."""
DEADLINE_SECONDS = 2.0
WORKER, TIMEKEEPER = tuple(role.value for role in ALL_ROLES), tuple[str, ...]()
"""The roles of a process that works, and of one that only keeps time."""


async def test_the_work_of_a_killed_process_starts_elsewhere_without_traffic(folder: Path) -> None:
    async with open_deployment(folder) as harness:
        workers, client = harness.workers, harness.make_client()
        killed = await workers.hire(takes_seconds=60.0)
        async with asyncio.TaskGroup() as tasks:
            asked = tasks.create_task(client.ask("long 1", conversation="c1"))
            await harness.wait_for_note("started", pid=killed, role="search")
            other = await workers.hire()
            workers.kill(killed)
            killed_at = time.time()
            again = await harness.wait_for_note("started", pid=other, role="search")
        await client.close()

    slack_seconds = SLACK_SECONDS * measure_slowness()
    assert again.at - killed_at < workers.settings.lease_seconds + slack_seconds
    assert asked.result()["outcome"] == "answered"


async def test_a_process_that_only_keeps_time_gives_back_what_dead_workers_held(
    folder: Path,
) -> None:
    async with open_deployment(folder) as harness:
        workers, client = harness.workers, harness.make_client()
        killed = await workers.hire(takes_seconds=60.0)
        await workers.hire(roles=TIMEKEEPER)

        async def is_given_back() -> bool:
            (status,) = await harness.broker.admin.read_status(["search"])
            return (status.depth, status.in_flight) == (1, 0)

        async with asyncio.TaskGroup() as tasks:
            asked = tasks.create_task(client.ask("long 1", conversation="c1"))
            await harness.wait_for_note("started", pid=killed, role="search")
            workers.kill(killed)
            await wait_until(is_given_back)
            await workers.hire()
        await client.close()

    assert asked.result()["outcome"] == "answered"


@pytest.mark.parametrize("roles", [TIMEKEEPER, WORKER], ids=["timekeeper", "worker"])
async def test_with_one_process_left_every_message_ends_at_its_deadline_once(
    folder: Path, roles: tuple[str, ...]
) -> None:
    async with open_deployment(folder) as harness:
        workers = harness.workers
        client = harness.make_client(deadline_seconds=DEADLINE_SECONDS)
        stopped, killed = await workers.hire(), await workers.hire()
        await workers.hire(roles=roles)
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(client.ask(f"slow {n}", conversation=f"c{n}")) for n in range(6)
            ]
            for number in range(6):
                await harness.wait_for_note("started", role="search", name=f"slow-{number}")
            behind = [
                tasks.create_task(client.ask(f"ask {n}", conversation=f"c{n}")) for n in range(6)
            ]
            workers.stop(stopped)
            workers.kill(killed)
        workers.go_on(stopped)
        evidence = await gather_evidence(
            harness.client, harness.ledger.path, faulty=[stopped, killed]
        )
        await client.close()

    broken = [
        str(finding) for finding in findings(evidence) if finding.part not in ("left", "late")
    ]
    ends = [lateness(entries, DEADLINE_SECONDS) for entries in evidence.journals.values()]
    assert broken == []
    assert {task.result()["outcome"] for task in running} == {"failed"}
    assert {task.result()["outcome"] for task in behind} <= {"failed", "answered"}
    assert len(ends) == 12
    assert max(ends) < SLACK_SECONDS * measure_slowness()


async def test_the_deadline_comes_though_the_only_process_blocks_its_loop(folder: Path) -> None:
    async with open_deployment(folder) as harness:
        client = harness.make_client(deadline_seconds=1.0)
        await harness.workers.hire(takes_seconds=3.0)
        reply = await client.ask("block 1", conversation="c1")
        evidence = await gather_evidence(harness.client, harness.ledger.path)
        await client.close()

    assert reply["outcome"] == "failed"
    assert lateness(evidence.journals["block-1"], 1.0) < SLACK_SECONDS * measure_slowness()


async def test_poison_is_buried_after_three_starts_and_ends_with_an_apology(folder: Path) -> None:
    async with open_deployment(folder) as harness:
        client = harness.make_client(deadline_seconds=60.0)
        for _ in range(4):
            await harness.workers.hire()
        poison = await client.ask("poison 1", conversation="c1")
        other = await client.ask("ask 2", conversation="c2")
        letters = await harness.broker.admin.list_dead_letters()
        killed = list(harness.workers.died.values())
        await client.close()

    assert (poison["outcome"], other["outcome"]) == ("failed", "answered")
    assert [(letter.reason, letter.attempts, len(letter.deaths)) for letter in letters] == [
        ("poison", 3, 3)
    ]
    assert killed == [9, 9, 9]
