import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import pytest

from broker.ports import Broker
from broker.values import Duplicate
from gateway.desk import Desk, Message
from gateway.errors import BusyError
from gateway.http.admission_queue import ANYBODY, AdmissionQueue, Party, Room
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness


@dataclass
class Front:
    """A desk with room for one question of each tenant's shard, and who comes to it."""

    broker: Broker
    desk: Desk
    patience: AdmissionQueue
    tasks: asyncio.TaskGroup
    admitted: list[str] = field(default_factory=list)

    async def ask(self, name: str, party: Party = ANYBODY) -> None:
        await self.patience.submit(self.desk, make_message(name), party)
        self.admitted.append(name)

    async def come(self, name: str, party: Party = ANYBODY) -> Callable[[], Awaitable[None]]:
        """Have somebody join the queue; return how they go away."""
        before = self.patience.waiting
        task = self.tasks.create_task(self.ask(name, party))
        await wait_until(lambda: self.patience.waiting > before)

        async def go() -> None:
            while not task.done():
                # Asked again where it had no effect: a client may lose a cancellation.
                task.cancel()
                await asyncio.wait([task], timeout=0.05)

        return go

    async def end(self, name: str) -> None:
        assert await self.broker.producer.cancel(self.desk.question(make_message(name)))

    def has_admitted_more_than(self, count: int) -> bool:
        return len(self.admitted) > count


def make_message(name: str) -> Message:
    return Message("How?", f"c-{name}", name)


@asynccontextmanager
async def full_desk(harness: WorkerHarness, *, most: int = 100) -> AsyncIterator[Front]:
    """Stand before a desk that a question fills."""
    broker = harness.make_broker(quota=1, retry_after_seconds=0.05)
    desk = Desk(
        broker.producer,
        broker.replies,
        tenant="acme",
        assistant="docs",
        channel="http",
        deadline_seconds=30.0,
        words=lambda _key, language: language,
    )
    patience = AdmissionQueue(asyncio.Event(), most=most, most_of_visitor=3, front=1)
    try:
        async with asyncio.TaskGroup() as tasks:
            front = Front(broker, desk, patience, tasks)
            await front.ask("first")
            yield front
    finally:
        await broker.close()


async def test_before_a_full_desk_it_is_first_come_first_served(harness: WorkerHarness) -> None:
    async with full_desk(harness) as front:
        for name in ("a", "b", "c"):
            await front.come(name)

        for name in ("first", "a", "b"):
            admitted = len(front.admitted)
            await front.end(name)
            await wait_until(partial(front.has_admitted_more_than, admitted))

    assert front.admitted == ["first", "a", "b", "c"]
    assert front.patience.waiting == 0


async def test_a_client_that_gives_up_moves_the_next_client_to_the_front(
    harness: WorkerHarness,
) -> None:
    async with full_desk(harness) as front:
        first_goes = await front.come("a")
        await front.come("b")
        last_goes = await front.come("c")

        await first_goes()
        await last_goes()
        await front.end("first")
        await wait_until(lambda: front.admitted == ["first", "b"])

    assert front.patience.waiting == 0


async def test_nobody_passes_those_who_wait_but_who_was_accepted_before(
    harness: WorkerHarness,
) -> None:
    async with full_desk(harness) as front:
        goes = await front.come("a")

        with pytest.raises(BusyError):
            await front.patience.once(front.desk, make_message("new"))
        again = await front.patience.once(front.desk, make_message("first"))
        assert isinstance(again, Duplicate)
        await goes()


async def test_too_long_a_queue_sends_people_away(harness: WorkerHarness) -> None:
    async with full_desk(harness, most=1) as front:
        goes = await front.come("a")

        with pytest.raises(BusyError):
            await front.patience.submit(front.desk, make_message("new"))
        await goes()


async def test_keys_come_to_the_front_by_turns_whoever_has_a_crowd(harness: WorkerHarness) -> None:
    shop, other = Party("shop"), Party("other")
    async with full_desk(harness) as front:
        for name, party in (("s1", shop), ("s2", shop), ("s3", shop), ("o1", other)):
            await front.come(name, party)

        for name in ("first", "s1", "s2", "o1"):
            admitted = len(front.admitted)
            await front.end(name)
            await wait_until(partial(front.has_admitted_more_than, admitted))

    assert front.admitted == ["first", "s1", "s2", "o1", "s3"]


async def test_one_visitor_fills_no_queue(harness: WorkerHarness) -> None:
    crowd, other = Party("shop", "crowd"), Party("shop", "other")
    async with full_desk(harness) as front:
        gone = [await front.come(f"s{number}", crowd) for number in range(3)]

        with pytest.raises(BusyError):
            await front.patience.submit(front.desk, make_message("new"), crowd)
        gone.append(await front.come("o1", other))
        for goes in gone:
            await goes()

    assert front.patience.waiting == 0


async def test_a_tenant_with_a_thousand_waiters_leaves_room_for_another(
    harness: WorkerHarness,
) -> None:
    async with full_desk(harness, most=1_000) as front:
        other = Desk(
            front.broker.producer,
            front.broker.replies,
            tenant="other",
            assistant="docs",
            channel="http",
            deadline_seconds=30.0,
            words=lambda _key, language: language,
        )
        crowd = [
            front.tasks.create_task(attempt(front.patience, front.desk, f"s{number}"))
            for number in range(1_000)
        ]
        await wait_until(
            lambda: front.patience.waiting + count_ended(crowd) == 1_000, patience_seconds=60.0
        )
        before = front.patience.waiting

        late = front.tasks.create_task(attempt(front.patience, other, "late"))
        await wait_until(lambda: front.patience.waiting > before)
        left = {*crowd, late}
        while left:
            # Asked again where it had no effect: a client may lose a cancellation.
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=0.05)

    assert 300 < before < 700
    assert front.patience.waiting == 0


async def attempt(patience: AdmissionQueue, desk: Desk, name: str) -> None:
    with suppress(BusyError):
        await patience.submit(desk, make_message(name))


def count_ended(tasks: list["asyncio.Task[None]"]) -> int:
    return sum(task.done() for task in tasks)


def test_however_many_tenants_crowd_the_room_the_next_finds_a_place() -> None:
    room, places = Room(most=1_000, most_of_visitor=20), ExitStack()
    held = []
    with places:
        for number in range(8):
            tenant, count = f"t{number}", 0
            while room.has_place(tenant, Party("one")) or room.has_place(tenant, Party("two")):
                key = "one" if room.has_place(tenant, Party("one")) else "two"
                places.enter_context(room.place(tenant, Party(key)))
                count += 1
            held.append(count)

        assert held == sorted(held, reverse=True)
        assert held[0] <= 500
        assert room.held < 1_000
        assert room.has_place("new", Party("one"))
    assert room.held == 0
