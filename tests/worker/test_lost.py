"""What is no failure: an entry that is gone because it is settled, a Redis that was away."""

import asyncio
from collections.abc import Sequence
from typing import Any

from broker.redis_broker import RedisBroker
from broker.values import ConsumerDemand, Delivery, LeaseLost, Settled, Settlement
from envelope.envelope import Envelope
from envelope.role import Role
from gateway.desk import Message
from manager.manager import ManagerAgent
from memory.errors import MemoryUnavailableError, QuestionEndedError
from tests.support.waiting import wait_until, within
from tests.support.worker_harness import WorkerHarness
from worker.port import SilentMeter


class LateAnswers(RedisBroker):
    """A broker whose first answer to a settlement is held until the gate opens."""

    settled: "asyncio.Queue[Delivery]"
    gate: asyncio.Event

    async def settle_and_take(
        self, settlements: Sequence[tuple[Delivery, Settlement]], wants: Sequence[ConsumerDemand]
    ) -> Settled:
        answer = await super().settle_and_take(settlements, wants)
        if not self.gate.is_set():
            self.settled.put_nowait(settlements[0][0])
            await self.gate.wait()
        return answer


async def test_an_entry_that_is_gone_because_it_is_settled_is_not_lost(
    harness: WorkerHarness,
) -> None:
    broker: Any = LateAnswers(harness.client, lease_seconds=60.0)
    broker.settled, broker.gate = asyncio.Queue(), asyncio.Event()
    harness.broker = broker

    process = harness.process()
    async with process.running(), asyncio.TaskGroup() as tasks:
        reply = tasks.create_task(harness.desk().ask(Message("How?", "c1", "m1")))
        entry = await broker.settled.get()
        worker = next(worker for worker in process.workers if worker.role == entry.role)
        worker.cancel_lost(LeaseLost(entry.role, entry.shard, entry.entry_id, entry.count))
        broker.gate.set()

        # What was prefetched by that settlement goes on at once, not after its lease.
        async with within():
            assert (await reply)["outcome"] == "answered"


async def test_an_agent_whose_memory_is_away_runs_again_without_spending_an_attempt(
    harness: WorkerHarness,
) -> None:
    harness.script.next(Role.SEARCH, *(MemoryUnavailableError("away") for _ in range(4)))

    async with harness.open() as desk:
        message = Message("How?", "c1", "m1")
        reply = await desk.ask(message)

        kinds = [
            event.kind
            for event in await harness.broker.replies.read_journal(desk.question(message))
        ]
    assert reply["outcome"] == "answered"
    assert len(harness.script.seen[Role.SEARCH]) == 5
    assert "retried" not in kinds


async def test_an_agent_that_is_notified_of_its_questions_end_has_not_failed(
    harness: WorkerHarness,
) -> None:
    message = Message("How?", "c1", "m1")
    question = harness.desk().question(message)

    async def await_end(_reads: object) -> Exception:
        await harness.broker.producer.cancel(question)
        return QuestionEndedError("ended")

    harness.script.next(Role.SEARCH, await_end)
    meter = Failures()

    async with harness.open(meter=meter) as desk:
        reply = await desk.ask(message)
        await wait_until(lambda: _nothing_waits(harness, Role.SEARCH.value))

    assert reply["outcome"] == "superseded"
    assert len(harness.script.seen[Role.SEARCH]) == 1
    assert meter.reported == []


class Failures(SilentMeter):
    """Notes failures."""

    def __init__(self) -> None:
        self.reported: list[tuple[str, str]] = []

    def count_failure(self, role: str, error: str) -> None:
        self.reported.append((role, error))


async def test_an_abandoned_entry_does_not_run_again_after_its_question_ended(
    harness: WorkerHarness,
) -> None:
    message = Message("How?", "c1", "m1")
    desk = harness.desk()
    question = desk.question(message)
    dead = harness.make_broker(lease_seconds=0.1)
    await desk.submit(message)
    await dead.prepare(["manager"])
    [held] = await dead.consumer.take("manager", "dead-0", slots=1, block_seconds=1.0)
    assert await harness.broker.producer.cancel(question)

    async def swept() -> bool:
        await dead.maintenance.rescuer.sweep()
        return (await harness.broker.admin.read_status(["manager"]))[0].in_flight == 0

    await wait_until(swept)
    await dead.close()
    manager = harness.manager(CountingManager)
    async with harness.process(manager=manager).running():
        await wait_until(lambda: _nothing_waits(harness))

    assert held.starts == 1
    assert isinstance(manager, CountingManager)
    assert manager.asked == 0
    kinds = [event.kind for event in await harness.broker.replies.read_journal(question)]
    assert kinds == ["accepted", "finished"]


class CountingManager(ManagerAgent):
    """Counts what it is asked to decide."""

    asked = 0

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        self.asked += 1
        return await super().handle(delivery, envelope)


async def _nothing_waits(harness: WorkerHarness, role: str = "manager") -> bool:
    [status] = await harness.broker.admin.read_status([role])
    return status.depth == 0
