"""Processes that stop past their lease and go on, and one that blocks but lives."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.faults.deployment import Deployment, open_deployment
from tests.faults.evidence import gather_evidence
from tests.faults.ledger import read_notes
from tests.faults.oracle import findings

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]

LEASE_SECONDS = 0.5


async def broken(harness: Deployment, stopped: int) -> list[str]:
    """Return what the oracle finds; what another handler still works on is no finding."""
    evidence = await gather_evidence(harness.client, harness.ledger.path, faulty=[stopped])
    return [str(finding) for finding in findings(evidence) if finding.part not in ("left", "late")]


async def test_the_result_of_a_worker_stopped_past_its_lease_is_refused_and_counted(
    folder: Path,
) -> None:
    async with open_deployment(folder, lease_seconds=LEASE_SECONDS) as harness:
        workers, client = harness.workers, harness.make_client()
        stopped = await workers.hire(takes_seconds=LEASE_SECONDS)
        async with asyncio.TaskGroup() as tasks:
            asked = tasks.create_task(client.ask("block 1", conversation="c1"))
            await harness.wait_for_note("started", pid=stopped, role="search")
            workers.stop(stopped)
            await workers.hire()
            reply = await asked
            workers.go_on(stopped)
            # Its loop was blocked: it submits its result before it can learn of the loss.
            await harness.wait_for_note("refused", pid=stopped, role="search")
            await harness.wait_for_note("lost", pid=stopped, role="search")

        assert reply["outcome"] == "answered"
        assert await broken(harness, stopped) == []
        await client.close()


async def test_the_handler_of_an_entry_lost_in_a_pause_is_cancelled_and_counted(
    folder: Path,
) -> None:
    async with open_deployment(folder, lease_seconds=LEASE_SECONDS) as harness:
        workers, client = harness.workers, harness.make_client()
        stopped = await workers.hire()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.ask("slow 1", conversation="c1"))
            run: dict[str, Any] = {"role": "search", "name": "slow-1"}
            await harness.wait_for_note("started", pid=stopped, **run)
            workers.stop(stopped)
            other = await workers.hire()
            await harness.wait_for_note("started", pid=other, **run)
            workers.go_on(stopped)
            await harness.wait_for_note("cancelled", pid=stopped, **run)
            await harness.wait_for_note("lost", pid=stopped, role="search")
            await client.cancel("slow 1", conversation="c1")

        assert await broken(harness, stopped) == []
        await client.close()


async def test_a_handler_that_blocks_its_loop_for_ten_leases_is_started_once(folder: Path) -> None:
    async with open_deployment(folder, lease_seconds=LEASE_SECONDS) as harness:
        client = harness.make_client()
        for _ in range(2):
            await harness.workers.hire(takes_seconds=10 * LEASE_SECONDS)

        reply = await client.ask("block 1", conversation="c1")

        starts = [
            line
            for line in read_notes(harness.ledger.path)
            if line.kind == "started" and line["role"] == "search"
        ]
        assert reply["outcome"] == "answered"
        assert len(starts) == 1
        await client.close()
