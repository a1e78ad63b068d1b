"""A role that operators paused takes nothing until they resume it, and nothing is lost."""

import asyncio

from broker.values import JournalEntry
from envelope.role import Role
from gateway.desk import Desk, Message
from tests.support.waiting import wait_until, within
from tests.support.worker_harness import WorkerHarness
from worker.health import LONGEST_SILENCE_SECONDS, WorkerHealth
from worker.process import WorkerProcess

QUESTION = Message("How do I add a rule?", "c1", "m1")
SEARCH = Role.SEARCH.value


async def pause(process: WorkerProcess, *roles: str) -> None:
    """Pause roles and wait until they have no read open."""
    process.pause(roles)

    async def is_paused() -> bool:
        return set(process.paused_roles) == set(roles)

    await wait_until(is_paused)


async def journal_of(harness: WorkerHarness, desk: Desk) -> list[JournalEntry]:
    return list(await harness.broker.replies.read_journal(desk.question(QUESTION)))


async def test_a_question_waits_in_front_of_a_paused_role_and_goes_on_when_it_is_resumed(
    harness: WorkerHarness,
) -> None:
    process, desk = harness.process(), harness.desk()

    async def waits_for_search() -> bool:
        [search] = await harness.broker.admin.read_status([SEARCH])
        return (search.depth, search.in_flight) == (1, 0)

    async with process.running():
        await pause(process, SEARCH)
        await desk.submit(QUESTION)
        await wait_until(waits_for_search)
        # Another question passes the other roles: they take entries, and the paused one does not.
        reply = await desk.ask(Message("help", "c2", "m2", "help"))
        assert await waits_for_search()
        process.pause(())
        async with within():
            answered = await desk.ask(QUESTION)

    assert (reply["outcome"], answered["outcome"]) == ("answered", "answered")
    assert [e.kind for e in await journal_of(harness, desk)].count("finished") == 1


async def test_an_entry_that_runs_when_its_role_is_paused_is_finished(
    harness: WorkerHarness,
) -> None:
    begun, gate = asyncio.Event(), asyncio.Event()

    async def wait() -> dict[str, object]:
        begun.set()
        await gate.wait()
        return {}

    harness.script.next(Role.SEARCH, lambda _reads: wait())
    process, desk = harness.process(), harness.desk()

    async with process.running(), within():
        await desk.submit(QUESTION)
        await begun.wait()
        process.pause([SEARCH])
        gate.set()
        reply = await desk.ask(QUESTION)

    assert reply["outcome"] == "answered"


async def test_a_paused_worker_is_ready(harness: WorkerHarness) -> None:
    process = harness.process()

    async with process.running():
        await pause(process, SEARCH)
        for worker in process.workers:
            if worker.role == SEARCH:
                worker.last_read -= LONGEST_SILENCE_SECONDS + 1

        assert WorkerHealth(process, lambda: True).unready() == ""
