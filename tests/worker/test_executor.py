"""Runs share runners: what waits lets others go on, what is called off takes nobody with it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fakeredis import FakeAsyncRedis

from broker.lease_renewer import LeaseRenewal
from broker.redis_broker import RedisBroker
from broker.values import Delivery, LeaseLost
from envelope.question import Question
from tests.support.waiting import wait_until, within, yield_to_tasks
from worker.executor import Execution, Executor, Runners


class Held(LeaseRenewal):
    """Leases that only remember who holds one."""

    def __init__(self) -> None:
        super().__init__(lambda: RedisBroker(FakeAsyncRedis()))
        self.entries: list[str] = []

    def hold(self, delivery: Delivery) -> None:
        self.entries.append(delivery.entry_id)

    def release(self, delivery: Delivery) -> None:
        self.entries.remove(delivery.entry_id)


class Stage:
    """Works on each run as scripted: until its gate opens, or at once where it has none."""

    def __init__(self, slots: int = 4) -> None:
        self.leases = Held()
        self.gates: dict[str, asyncio.Event] = {}
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.called_off: list[str] = []
        self.tasks: set[asyncio.Task[object] | None] = set()
        self.runners = Runners()
        self.runs = Executor(self._work, slots=slots, leases=self.leases, runners=self.runners)

    async def _work(self, run: Execution) -> None:
        name = run.delivery.entry_id
        self.begun.append(name)
        self.tasks.add(asyncio.current_task())
        try:
            if name in self.gates:
                async with within():
                    await self.gates[name].wait()
        except asyncio.CancelledError:
            self.called_off.append(name)
            raise
        self.ended.append(name)
        self.runs.end(run)

    def wait_at_gates(self, *names: str) -> None:
        self.gates |= {name: asyncio.Event() for name in names}

    async def has_begun(self, *names: str) -> None:
        async def look() -> bool:
            return self.begun == list(names)

        await wait_until(look)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with within(), asyncio.TaskGroup() as group:
            self.runners.work_in(group)
            yield


def delivery(name: str) -> Delivery:
    question = Question(tenant="t", assistant="a", conversation_id="c", message_id=name)
    return Delivery(
        entry_id=name,
        role="search",
        shard=0,
        consumer="w",
        count=1,
        question=question,
        frame=b"",
        remaining_seconds=60.0,
    )


async def test_handlers_that_never_wait_share_one_task() -> None:
    stage = Stage(slots=64)
    async with stage.open():
        for number in range(50):
            stage.runs.start(delivery(f"{number}"))
        await stage.runs.empty()

    assert stage.ended == [f"{number}" for number in range(50)]
    assert len(stage.tasks) == 1
    assert stage.leases.entries == []


async def test_a_runner_goes_on_with_the_entry_that_its_run_brought_for_another_role() -> None:
    stage = Stage()

    async def bring(run: Execution) -> None:
        stage.tasks.add(asyncio.current_task())
        stage.runs.start(delivery("next"))
        other.end(run)

    other = Executor(bring, slots=1, leases=Held(), runners=stage.runners)
    async with stage.open():
        other.start(delivery("first"))
        await other.empty()
        await stage.runs.empty()

    assert stage.ended == ["next"]
    assert len(stage.tasks) == 1


async def test_handlers_that_wait_run_beside_each_other_up_to_the_slots() -> None:
    stage = Stage(slots=3)
    names = [f"{number}" for number in range(5)]
    stage.wait_at_gates(*names)
    async with stage.open():
        for name in names:
            stage.runs.start(delivery(name))
        await stage.has_begun("0", "1", "2")
        assert stage.runs.free_slots == 0

        stage.gates["1"].set()
        await stage.has_begun("0", "1", "2", "3")

        for name in names:
            stage.gates[name].set()
        await stage.runs.empty()
    assert sorted(stage.ended) == names


async def test_a_slot_that_becomes_free_is_announced() -> None:
    stage = Stage(slots=1)
    stage.wait_at_gates("0")
    async with stage.open(), asyncio.TaskGroup() as others:
        stage.runs.start(delivery("0"))
        waiting = others.create_task(stage.runs.free())
        await stage.has_begun("0")
        assert not waiting.done()
        stage.gates["0"].set()


async def test_a_cancelled_run_does_not_cancel_others() -> None:
    stage = Stage()
    stage.wait_at_gates("lost")
    async with stage.open():
        stage.runs.start(delivery("lost"))
        await stage.has_begun("lost")

        assert stage.runs.cancel_lost(LeaseLost("search", 0, "lost", 1))
        # It is not notified yet when the next comes.
        stage.runs.start(delivery("next"))
        await stage.runs.empty()

    assert stage.called_off == ["lost"]
    assert stage.ended == ["next"]
    assert stage.leases.entries == []


async def test_a_runner_continues_with_queued_runs_after_a_cancellation() -> None:
    stage = Stage(slots=1)
    stage.wait_at_gates("lost", "next")
    async with stage.open():
        stage.runs.start(delivery("lost"))
        stage.runs.start(delivery("next"))
        await stage.has_begun("lost")
        stage.runs.cancel_lost(LeaseLost("search", 0, "lost", 1))

        await stage.has_begun("lost", "next")
        # A time limit inside the next run still measures that run alone.
        stage.gates["next"].set()
        await stage.runs.empty()
    assert stage.ended == ["next"]


async def test_a_queued_run_that_is_cancelled_never_starts() -> None:
    stage = Stage(slots=1)
    stage.wait_at_gates("first")
    async with stage.open():
        stage.runs.start(delivery("first"))
        stage.runs.start(delivery("lost"))
        await stage.has_begun("first")
        assert stage.runs.cancel_lost(LeaseLost("search", 0, "lost", 1))
        assert stage.leases.entries == ["first"]
        stage.gates["first"].set()
        await stage.runs.empty()
    assert stage.begun == ["first"]


async def test_an_entry_that_is_worked_on_is_not_begun_again() -> None:
    stage = Stage()
    stage.wait_at_gates("0")
    async with stage.open():
        assert stage.runs.start(delivery("0"))
        assert not stage.runs.start(delivery("0"))
        await stage.has_begun("0")
        stage.gates["0"].set()
        await stage.runs.empty()
    assert stage.begun == ["0"]


async def test_an_entry_that_is_being_settled_is_not_called_off() -> None:
    stage = Stage()
    stage.wait_at_gates("0")
    async with stage.open():
        stage.runs.start(delivery("0"))
        await stage.has_begun("0")
        next(iter(stage.runs.by_key.values())).settling = True
        assert not stage.runs.cancel_lost(LeaseLost("search", 0, "0", 1))
        stage.gates["0"].set()
        await stage.runs.empty()
    assert stage.ended == ["0"]


async def test_at_the_end_everything_can_be_called_off_at_once() -> None:
    stage = Stage(slots=2)
    names = ["0", "1", "2"]
    stage.wait_at_gates(*names)
    async with stage.open():
        for name in names:
            stage.runs.start(delivery(name))
        await stage.has_begun("0", "1")
        assert stage.runs.call_off() == 3
        await stage.runs.empty()
    assert stage.called_off == ["0", "1"]
    assert stage.ended == []
    assert stage.leases.entries == []


async def test_an_unexpected_error_in_a_run_ends_the_group_and_its_lease() -> None:
    leases = Held()

    async def breaks(_run: Execution) -> None:
        raise ValueError("no run was meant to raise")

    runners = Runners()
    runs = Executor(breaks, slots=1, leases=leases, runners=runners)

    async def one_run() -> None:
        async with asyncio.TaskGroup() as group:
            runners.work_in(group)
            runs.start(delivery("0"))
            await runs.empty()

    with pytest.raises(ExceptionGroup) as raised:
        await one_run()
    assert raised.value.subgroup(ValueError) is not None
    assert leases.entries == []


async def test_runs_need_a_group_to_work_in() -> None:
    runs = Executor(lambda _run: yield_to_tasks(), slots=1, leases=Held(), runners=Runners())
    with pytest.raises(RuntimeError, match="call `work_in` before"):
        runs.start(delivery("0"))


async def test_a_runner_ends_with_its_group_although_its_run_was_called_off_too() -> None:
    stage = Stage(slots=1)
    stage.wait_at_gates("lost", "next")

    async def breaks_down() -> None:
        async with stage.open():
            stage.runs.start(delivery("lost"))
            stage.runs.start(delivery("next"))
            await stage.has_begun("lost")
            stage.runs.cancel_lost(LeaseLost("search", 0, "lost", 1))
            raise ValueError("the process breaks down")

    with pytest.raises(ExceptionGroup):
        await breaks_down()
    assert stage.begun == ["lost"]
