"""What the client of a process submits is worked on by the process itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from broker.keys import stream_key
from envelope.role import Role
from gateway.desk import Desk, Message
from tests.support.local_consumer import submission
from tests.support.waiting import wait_until, within
from tests.support.worker_harness import WorkerHarness
from worker.worker import Worker

LOST_MS = 30_000
"""What was delivered so long ago is not on its way any more."""
REQUEST: ContextVar[str] = ContextVar("request", default="nobody's")


async def test_a_conversation_goes_on_where_it_was(harness: WorkerHarness) -> None:
    async with harness.open() as desk:
        await desk.ask(Message("How do I add a rule?", "c1", "m1"))
        await desk.ask(Message("And how do I delete one?", "c1", "m2"))

    _, second = harness.script.seen[Role.LANG]
    assert [turn["text"] for turn in second["history"]] == [
        "How do I add a rule?",
        "Open Routing [1].",
    ]


async def test_a_worker_works_in_no_context_of_the_channel_that_calls_it(
    harness: WorkerHarness,
) -> None:
    seen: list[str] = []

    async def noting(_reads: object) -> dict[str, Any]:
        seen.append(REQUEST.get())
        return {}

    harness.script.next(Role.LANG, noting)

    async with harness.open() as desk:
        REQUEST.set("the first one's")
        await desk.ask(Message("How do I add a rule?", "c1", "m1"))

    assert seen == ["nobody's"]


@asynccontextmanager
async def losing_a_delivery(
    harness: WorkerHarness,
) -> AsyncIterator[tuple[Worker, Desk, str]]:
    """A question whose first entry was assigned to a manager, but never arrived there."""
    # A sweep would return the entry otherwise.
    harness.lease_seconds = 60.0
    harness.broker = harness.make_broker()
    process, desk = harness.process(), harness.desk()
    await harness.broker.prepare([role.value for role in Role])
    manager = process.workers[0]
    stream = stream_key(manager.role, 0)
    async with within(), asyncio.TaskGroup() as tasks:
        reply = tasks.create_task(desk.ask(Message("How?", "c1", "m1")))

        async def find_owned() -> Any:
            return await harness.client.xreadgroup("workers", manager.consumer, {stream: ">"})

        [[_, [(entry_id, _)]]] = await wait_until(find_owned)
        await harness.client.xclaim(
            stream, "workers", manager.consumer, 0, [entry_id], idle=LOST_MS, justid=True
        )
        async with process.running():
            yield manager, desk, entry_id
            assert (await reply)["outcome"] == "answered"


async def ask_another(harness: WorkerHarness, desk: Desk) -> None:
    """Submit another question, which ends the read that a manager may wait in."""
    other = harness.make_broker()
    await other.producer.submit(submission(desk.question(Message("Else?", "c2", "m1"))))
    await other.close()


async def test_a_worker_recovers_entries_of_lost_deliveries(harness: WorkerHarness) -> None:
    async with losing_a_delivery(harness) as (manager, desk, _):
        manager.schedule_recovery()
        await ask_another(harness, desk)


async def test_recovery_waits_for_calls_that_may_still_deliver_entries(
    harness: WorkerHarness,
) -> None:
    async with losing_a_delivery(harness) as (manager, desk, entry_id):

        async def takes() -> bool:
            return manager.free_slots > 0

        async def recovers() -> bool:
            return manager.free_slots == 0

        await wait_until(takes)
        with manager.awaiting():
            manager.schedule_recovery()
            await ask_another(harness, desk)
            await wait_until(recovers)
            stream = stream_key(manager.role, 0)
            assert await harness.client.xpending_range(stream, "workers", entry_id, entry_id, 1)
