"""Sweeping: one process at a time, a bounded amount of work, and nothing overlooked."""

from typing import Any

import pytest

from broker.context import BrokerContext
from broker.leases import DeliveryLoader
from broker.maintenance.loop import LOOKS, MOVES, OrphanRescuer
from broker.settlement import BrokerLimits
from tests.support.broker_harness import ROLES, SHORT_LEASE, BrokerHarness, finish
from tests.support.waiting import wait_until

STREAM = "rd:{0}:stream:manager"
GROUP = "workers"


async def pending(harness: BrokerHarness, number: int, consumer: str = "w1") -> None:
    """Have that many entries delivered to a consumer."""
    pipeline = harness.client.pipeline(transaction=False)
    for place in range(number):
        fields = {"q": f"acme/desk/c{place}/m1", "f": "x", "d": "0", "l": "", "n": "0"}
        pipeline.xadd(STREAM, fields)
    await pipeline.execute()
    await harness.client.xreadgroup(GROUP, consumer, {STREAM: ">"}, count=number)


async def test_one_process_sweeps_at_a_time_and_the_others_stand_by(harness: BrokerHarness) -> None:
    harness.broker = harness.make(lease_seconds=160)
    other = harness.make(lease_seconds=160)

    first, stands_by, again = [
        await broker.maintenance.rescuer.sweep()
        for broker in (harness.broker, other, harness.broker)
    ]

    # Whoever stands by asks again a sixteenth of a lease or two after the sweeper's next sweep.
    assert 150 < first <= 160 < stands_by <= 181
    assert 150 < again <= 160


async def test_a_standby_sweeps_when_the_sweeper_does_not(harness: BrokerHarness) -> None:
    harness.broker, other = harness.make(lease_seconds=0.3), harness.make(lease_seconds=0.3)
    await harness.broker.maintenance.rescuer.sweep()
    await harness.submit()
    held = await harness.take()

    async def find_taken_over() -> Any:
        await other.maintenance.rescuer.sweep()
        return await harness.take_all(consumer="w2")

    (again,) = await wait_until(find_taken_over)

    assert again.starts == 2
    assert not await harness.settle(held, finish())


async def test_the_next_sweep_is_due_when_the_next_lease_ends(harness: BrokerHarness) -> None:
    harness.broker = harness.make(lease_seconds=100)
    await harness.submit()
    held = await harness.take()
    await harness.client.xclaim(STREAM, GROUP, "w1", 0, [held.entry_id], idle=40_000, justid=True)

    assert 50 < await harness.broker.maintenance.rescuer.sweep() <= 61


@pytest.mark.slow
async def test_a_sweep_looks_at_a_bounded_number_of_entries_and_goes_on_next_time(
    harness: BrokerHarness,
) -> None:
    harness.broker = harness.make(lease_seconds=60)
    await pending(harness, 2 * LOOKS + 10)
    entries = await harness.client.xrange(STREAM)
    last = entries[-1][0]
    # The answer that delivered it was lost: its consumer lives, and does not know of it.
    await harness.client.xclaim(STREAM, GROUP, "w1", 0, [last], idle=90_000, justid=True)

    waits = [await harness.broker.maintenance.rescuer.sweep() for _ in range(2)]
    overlooked = await harness.take_all(consumer="w2")
    await harness.broker.maintenance.rescuer.sweep()

    assert all(wait <= 60 / 16 for wait in waits)  # it goes on soon
    assert overlooked == []
    assert (await harness.take(consumer="w2")).starts == 2


@pytest.mark.slow
async def test_a_sweep_gives_back_a_bounded_number_and_the_rest_at_once(
    harness: BrokerHarness,
) -> None:
    harness.broker = harness.make(lease_seconds=SHORT_LEASE)
    await pending(harness, MOVES + 5)

    async def dead() -> bool:
        return bool(await harness.client.xpending_range(STREAM, GROUP, "-", "+", 1, idle=60))

    await wait_until(dead)
    wait = await harness.broker.maintenance.rescuer.sweep()
    first = (await harness.client.xpending(STREAM, GROUP))["pending"]
    await harness.broker.maintenance.rescuer.sweep()

    assert (wait < 0.01, first) == (True, 5)
    assert (await harness.client.xpending(STREAM, GROUP))["pending"] == 0


async def test_a_paused_process_is_counted_as_dead_once_despite_open_reads(
    harness: BrokerHarness,
) -> None:
    await harness.submit()
    await harness.take(consumer="paused-0")

    taken = [await harness.reclaim(consumer=f"paused-{instance}") for instance in (1, 2, 0)]
    alive = await harness.reclaim(consumer="other-0")

    assert [delivery.starts for delivery in taken] == [2, 2, 2]
    assert (alive.starts, [death.worker for death in alive.deaths]) == (2, ["paused-0"])
    assert await harness.settle(alive, finish())


async def test_an_entry_that_hangs_its_process_repeatedly_is_buried(
    harness: BrokerHarness,
) -> None:
    await harness.submit()
    await harness.take(consumer="only-0")
    for _ in range(3):
        await harness.reclaim(consumer="only-0")

    async def find_buried() -> Any:
        await harness.broker.maintenance.rescuer.sweep()
        return await harness.broker.admin.list_dead_letters()

    (letter,) = await wait_until(find_buried)

    assert (letter.attempts, len(letter.deaths)) == (3, 3)


async def test_a_sweeper_that_dies_before_burying_leaves_the_last_worker_named(
    harness: BrokerHarness,
) -> None:
    async def dies(batch: Any) -> Any:
        raise ConnectionError("killed before it buried anything")

    await harness.submit()
    await harness.take(consumer="w1")
    await harness.reclaim(consumer="w2")
    await harness.reclaim(consumer="w3")
    limits = BrokerLimits(
        ttl_ms=60_000, dead_letters=10, attempts=8, backoff_ms=100, longest_backoff_ms=1000
    )
    space = BrokerContext(harness.client, 1, limits, int(SHORT_LEASE * 1000), dict.fromkeys(ROLES))
    sweeper = OrphanRescuer(space, dies, lambda delivery, error: None, DeliveryLoader(space))

    async def dead() -> bool:
        try:
            await sweeper.sweep()
        except ConnectionError:
            return True
        return False

    async def find_buried() -> Any:
        await harness.broker.maintenance.rescuer.sweep()
        return await harness.broker.admin.list_dead_letters()

    await wait_until(dead)
    (letter,) = await wait_until(find_buried)

    assert letter.worker == "w3"
    assert [death.worker for death in letter.deaths] == ["w1", "w2", "w3"]


async def test_a_foreign_entry_does_not_stop_the_sweep(harness: BrokerHarness) -> None:
    await harness.client.xadd(STREAM, {"q": "acme/desk/c1/m1", "f": "x", "c": "many"})
    await harness.client.xreadgroup(GROUP, "w1", {STREAM: ">"}, count=1)

    async def find_buried() -> Any:
        await harness.broker.maintenance.rescuer.sweep()
        assert await harness.take_all() == []
        return await harness.broker.admin.list_dead_letters()

    (letter,) = await wait_until(find_buried)

    assert letter.reason == "malformed"
