"""A suspect entry runs alone in its process."""

import asyncio

from worker.isolation import Isolation


class Run:
    """One entry that enters, waits at a gate, and leaves."""

    def __init__(self, isolation: Isolation, deliveries: int) -> None:
        self._isolation = isolation
        self._deliveries = deliveries
        self.inside = asyncio.Event()
        self.gate = asyncio.Event()
        self.left = asyncio.Event()

    async def run(self) -> None:
        await self._isolation.enter(self._deliveries)
        try:
            self.inside.set()
            await self.gate.wait()
        finally:
            self._isolation.leave(self._deliveries)
            self.left.set()


async def settled() -> None:
    """Let every task go as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_entries_delivered_once_run_side_by_side() -> None:
    isolation = Isolation()
    one, two = Run(isolation, 1), Run(isolation, 1)

    async with asyncio.TaskGroup() as tasks:
        for run in (one, two):
            tasks.create_task(run.run())
        await asyncio.gather(one.inside.wait(), two.inside.wait())
        one.gate.set()
        two.gate.set()


async def test_a_suspect_waits_for_those_inside_and_holds_those_that_come() -> None:
    isolation = Isolation()
    before, suspect, after = Run(isolation, 1), Run(isolation, 2), Run(isolation, 1)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(before.run())
        await before.inside.wait()
        tasks.create_task(suspect.run())
        await settled()
        tasks.create_task(after.run())
        await settled()
        waited = suspect.inside.is_set() or after.inside.is_set()
        before.gate.set()
        await suspect.inside.wait()
        held = after.inside.is_set()
        suspect.gate.set()
        await after.inside.wait()
        after.gate.set()

    assert not waited
    assert not held


async def test_a_suspect_that_is_cancelled_while_it_waits_lets_others_run() -> None:
    isolation = Isolation()
    before, suspect, after = Run(isolation, 1), Run(isolation, 3), Run(isolation, 1)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(before.run())
        await before.inside.wait()
        waiting = tasks.create_task(suspect.run())
        await settled()
        waiting.cancel()
        tasks.create_task(after.run())
        await after.inside.wait()
        before.gate.set()
        after.gate.set()

    assert not suspect.inside.is_set()
