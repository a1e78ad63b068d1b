"""Shutdown: what runs may finish in the grace period; what is late is handed back and runs once."""

import asyncio
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from broker.background_jobs import cancel_until_done
from broker.errors import BrokerUnavailableError
from broker.ports import Consumer
from broker.redis_broker import RedisBroker
from broker.values import ConsumerDemand, Delivery, JournalEntry, Settled, Settlement
from envelope.role import Role
from gateway.desk import Desk, Message
from tests.support.waiting import wait_until, within
from tests.support.worker_harness import WRITES, WorkerHarness
from worker.process import WorkerProcess
from worker.shutdown import GracePeriod, leave, stop_on_signals
from worker.worker import Worker

QUESTION = Message("How do I add a rule?", "c1", "m1")
NO_GRACE = 0.05
LONG_LEASE = 60.0
"""Longer than the question may take: nothing waits for the end of a lease."""


@dataclass
class HeldAgent:
    """The script of an agent that waits at a gate in its first run."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    runs: int = 0
    cancelled: int = 0

    def __call__(self, _reads: object) -> Any:
        self.runs += 1
        return self._wait() if self.runs == 1 else {}

    async def _wait(self) -> dict[str, object]:
        self.begun.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return {}


@pytest.fixture
def held(harness: WorkerHarness) -> HeldAgent:
    agent = HeldAgent()
    harness.script.next(Role.SEARCH, agent, agent)
    return agent


async def work_until(process: WorkerProcess, stop: asyncio.Event) -> None:
    async with process.running():
        await stop.wait()


async def hold(desk: Desk, held: HeldAgent) -> None:
    """Ask the question and wait until its agent is held."""
    await desk.submit(QUESTION)
    async with within():
        await held.begun.wait()


async def journal_of(harness: WorkerHarness, desk: Desk) -> list[JournalEntry]:
    return list(await harness.broker.replies.read_journal(desk.question(QUESTION)))


def runs_of(journal: list[JournalEntry]) -> list[object]:
    return [entry.fields["role"] for entry in journal if entry.kind == "agent_run"]


async def count_left_in_streams(harness: WorkerHarness) -> int:
    status = await harness.broker.admin.read_status([role.value for role in Role])
    return sum(role.depth for role in status)


async def test_a_hop_that_ends_in_the_grace_period_is_settled_by_the_process_that_stops(
    harness: WorkerHarness, held: HeldAgent
) -> None:
    desk = harness.desk()
    process = harness.process(grace_seconds=20.0)
    stop = asyncio.Event()

    async def takes_nothing_more() -> bool:
        return all(worker.free_slots == 0 for worker in process.workers)

    async with within(), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(work_until(process, stop))
        await hold(desk, held)
        stop.set()
        await wait_until(takes_nothing_more)
        assert not running.done()
        held.gate.set()

    assert "search" in runs_of(await journal_of(harness, desk))
    async with harness.open():
        reply = await desk.outcome(desk.question(QUESTION))
    assert (reply["outcome"], held.runs, held.cancelled) == ("answered", 1, 0)
    assert runs_of(await journal_of(harness, desk)).count("search") == 1


async def test_a_process_that_waits_for_runs_at_its_end_reports_it(
    harness: WorkerHarness, held: HeldAgent
) -> None:
    stop, reported = asyncio.Event(), asyncio.Event()
    process = harness.process(grace_seconds=20.0, report_waiting=reported.set)

    async with within(), asyncio.TaskGroup() as tasks:
        tasks.create_task(work_until(process, stop))
        await hold(harness.desk(), held)
        assert not reported.is_set()
        stop.set()
        await reported.wait()
        held.gate.set()

    assert (held.runs, held.cancelled) == (1, 0)


async def test_a_hop_that_exceeds_the_grace_period_is_returned_and_runs_again(
    harness: WorkerHarness, held: HeldAgent
) -> None:
    await harness.broker.close()
    harness.lease_seconds = LONG_LEASE
    harness.broker = harness.make_broker()
    desk = harness.desk()
    stop = asyncio.Event()
    with capture_logs() as logged:
        async with within(), asyncio.TaskGroup() as tasks:
            tasks.create_task(work_until(harness.process(grace_seconds=NO_GRACE), stop))
            await hold(desk, held)
            stop.set()

    late = [line for line in logged if line["event"] == "handlers_cancelled_at_shutdown"]
    assert [line["handlers"] for line in late] == [1]
    assert (held.runs, held.cancelled) == (1, 1)
    before = await journal_of(harness, desk)
    assert "search" not in runs_of(before)
    assert before[-1].fields["target"] == "search"

    async with harness.open():
        reply = await desk.outcome(desk.question(QUESTION))

    after = await journal_of(harness, desk)
    assert (reply["outcome"], held.runs) == ("answered", 2)
    assert after[: len(before)] == before
    every = runs_of(after)
    assert sorted(map(str, every)) == sorted(set(map(str, every)))
    assert {"retried", "dead_lettered"}.isdisjoint(entry.kind for entry in after)
    assert [entry.kind for entry in after].count("finished") == 1
    assert await count_left_in_streams(harness) == 0
    assert set(every) < {role.value for role in WRITES}


class BrokerThatGoesAway(RedisBroker):
    """A broker whose settlements of the search agent wait at a gate, and fail behind it."""

    sent: asyncio.Event
    gate: asyncio.Event

    async def settle_and_take(
        self, settlements: Sequence[tuple[Delivery, Settlement]], wants: Sequence[ConsumerDemand]
    ) -> Settled:
        if any(delivery.role == "search" for delivery, _ in settlements):
            self.sent.set()
            await self.gate.wait()
            raise BrokerUnavailableError("connection refused")
        return await super().settle_and_take(settlements, wants)


async def test_a_settlement_that_fails_after_the_grace_period_is_left_to_the_next_process(
    harness: WorkerHarness,
) -> None:
    usual, stop = harness.broker, asyncio.Event()
    broker = BrokerThatGoesAway(harness.client, lease_seconds=LONG_LEASE)
    broker.sent, broker.gate = asyncio.Event(), asyncio.Event()
    harness.broker = broker
    process = harness.process(grace_seconds=NO_GRACE)

    async with within(), asyncio.TaskGroup() as tasks:
        tasks.create_task(work_until(process, stop))
        await harness.desk().submit(QUESTION)
        await broker.sent.wait()
        stop.set()
        await wait_until(lambda: not any(len(worker.runs) for worker in process.workers))
        broker.gate.set()

    harness.broker = usual
    async with harness.open() as desk:
        reply = await desk.outcome(desk.question(QUESTION))
    assert reply["outcome"] == "answered"
    assert runs_of(await journal_of(harness, desk)).count("search") == 1


async def test_a_settlement_that_is_called_off_before_its_next_attempt_begins_keeps_no_process(
    harness: WorkerHarness,
) -> None:
    stop = asyncio.Event()

    class CallingOff(RedisBroker):
        async def settle_and_take(
            self,
            settlements: Sequence[tuple[Delivery, Settlement]],
            wants: Sequence[ConsumerDemand],
        ) -> Settled:
            if any(delivery.role == "search" for delivery, _ in settlements):
                for worker in process.workers:
                    # Comes before the task that the failed settlement creates.
                    asyncio.get_running_loop().call_soon(worker.runs.call_off)
                stop.set()
                raise BrokerUnavailableError("connection refused")
            return await super().settle_and_take(settlements, wants)

    harness.broker = CallingOff(harness.client, lease_seconds=LONG_LEASE)
    process = harness.process(grace_seconds=NO_GRACE)
    async with within(), asyncio.TaskGroup() as tasks:
        tasks.create_task(work_until(process, stop))
        await harness.desk().submit(QUESTION)

    assert not any(len(worker.runs) for worker in process.workers)


class LeavingBroker:
    """The part of a broker that ends consumers; Redis is away for some of them."""

    def __init__(self, *, away: set[str]) -> None:
        self._away = away
        self.left: list[str] = []

    async def leave(self, role: str, _consumer: str) -> None:
        if role in self._away:
            raise BrokerUnavailableError("connection refused")
        self.left.append(role)


@dataclass
class NamedWorker:
    """The names that a consumer is removed by."""

    role: str
    consumer: str = "w1"


async def test_a_consumer_that_cannot_be_removed_is_named_and_keeps_no_other() -> None:
    broker = LeavingBroker(away={"lang"})
    workers = [NamedWorker(role) for role in ("manager", "lang", "search")]

    with capture_logs() as logged:
        await leave(cast("Consumer", broker), cast("list[Worker]", workers), GracePeriod())

    assert broker.left == ["manager", "search"]
    assert [(line["event"], line["role"]) for line in logged] == [("consumer_not_removed", "lang")]


async def test_consumers_that_redis_never_removes_keep_no_process_after_its_grace_period() -> None:
    class Silent(LeavingBroker):
        async def leave(self, role: str, _consumer: str) -> None:
            await asyncio.Event().wait()

    workers = cast("list[Worker]", [NamedWorker("manager"), NamedWorker("lang")])
    with capture_logs() as logged:
        async with within():
            await leave(cast("Consumer", Silent(away=set())), workers, GracePeriod(NO_GRACE))

    assert [(line["role"], line["error"]) for line in logged] == [
        ("manager", "the grace period is over"),
        ("lang", "the grace period is over"),
    ]


async def test_runs_leave_a_part_of_the_grace_period_to_the_return_of_their_entries() -> None:
    long, short = GracePeriod(100.0), GracePeriod(10.0)

    assert 90.0 < long.left_for_runs() <= 95.0
    assert 4.0 < short.left_for_runs() <= 8.0


async def test_a_task_that_loses_its_first_cancellation_is_cancelled_again() -> None:
    cancelled = 0
    begun = asyncio.Event()

    async def lose_the_first() -> None:
        nonlocal cancelled
        while True:
            try:
                begun.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled += 1
                if cancelled > 1:
                    raise

    async with within(), asyncio.TaskGroup() as tasks:
        task = tasks.create_task(lose_the_first())
        await begun.wait()
        await cancel_until_done([task])

    assert (task.cancelled(), cancelled) == (True, 2)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_asks_the_process_to_stop_and_nothing_is_left_of_it(
    number: signal.Signals,
) -> None:
    stop = asyncio.Event()

    async with stop_on_signals(stop):
        os.kill(os.getpid(), number)
        async with within():
            await stop.wait()

    assert not asyncio.get_running_loop().remove_signal_handler(number)
