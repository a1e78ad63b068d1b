import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis, FakeServer

from broker.errors import BrokerUnavailableError
from broker.lease_renewer import LeaseRenewal
from broker.ports import Consumer
from broker.redis_broker import RedisBroker
from broker.values import Delivery, LeaseLost
from tests.support.broker_harness import (
    LAST_RESORT,
    ROLES,
    SHORT_LEASE,
    BrokerHarness,
    finish,
    question,
)
from tests.support.waiting import wait_until

PATIENCE_SECONDS = 60.0


class CountingConsumer:
    """Counts renewals, and is unavailable for the first `failures` of them."""

    def __init__(self, consumer: Consumer, *, failures: int, enough: int) -> None:
        self.enough = threading.Event()
        self._consumer = consumer
        self._failures = failures
        self._renewals_left = enough

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)

    async def renew(self, held: Sequence[Delivery]) -> Sequence[LeaseLost]:
        if self._failures:
            self._failures -= 1
            raise BrokerUnavailableError("Redis does not answer: it is away")
        lost = await self._consumer.renew(held)
        self._renewals_left -= 1
        if self._renewals_left <= 0:
            self.enough.set()
        return lost


class CountingBroker(RedisBroker):
    """A broker whose consumer counts."""

    def __init__(
        self, server: FakeServer, *, failures: int = 0, enough: int = 10, lease: float = SHORT_LEASE
    ) -> None:
        super().__init__(FakeAsyncRedis(server=server, protocol=2), lease_seconds=lease)
        consumer: Any = CountingConsumer(self.consumer, failures=failures, enough=enough)
        self.consumer = consumer
        self.lease = lease
        self.enough = consumer.enough


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
async def harness(server: FakeServer) -> BrokerHarness:
    client = FakeAsyncRedis(server=server, protocol=2)
    broker = RedisBroker(client, lease_seconds=SHORT_LEASE)
    await broker.prepare(ROLES)
    return BrokerHarness(broker, client, RedisBroker)


@contextmanager
def renewing(broker: CountingBroker, lost: list[LeaseLost]) -> Iterator[LeaseRenewal]:
    renewal = LeaseRenewal(lambda: broker, lease_seconds=broker.lease)
    renewal.start(lost.append)
    try:
        yield renewal
    finally:
        renewal.stop()
        assert not renewal.alive


@pytest.mark.slow
async def test_a_handler_that_blocks_its_loop_keeps_its_entry(
    harness: BrokerHarness, server: FakeServer
) -> None:
    lost: list[LeaseLost] = []
    broker = CountingBroker(server, enough=12, lease=0.3)  # one that a busy machine keeps
    await harness.submit()
    held = await harness.take()

    with renewing(broker, lost) as renewal:
        renewal.hold(held)
        # Nothing else runs on this loop meanwhile: 12 renewals are 4 leases.
        assert broker.enough.wait(PATIENCE_SECONDS)
        stolen = await harness.take_all(consumer="w2")

    assert (stolen, lost) == ([], [])
    assert await harness.settle(held, finish())


async def test_a_released_lease_is_no_longer_renewed(
    harness: BrokerHarness, server: FakeServer
) -> None:
    lost: list[LeaseLost] = []
    await harness.submit()
    held = await harness.take()

    with renewing(CountingBroker(server), lost) as renewal:
        renewal.hold(held)
        renewal.release(held)
        renewal.release(held)
        again = await harness.reclaim()

    assert again.starts == 2
    assert lost == []


async def test_a_loss_is_reported_once(harness: BrokerHarness, server: FakeServer) -> None:
    lost: list[LeaseLost] = []
    await harness.submit()
    held = await harness.take()
    await harness.reclaim()
    broker = CountingBroker(server, enough=5)

    with renewing(broker, lost) as renewal:
        renewal.hold(held)

        async def has_been_notified() -> bool:
            return bool(lost)

        await wait_until(has_been_notified)

    assert lost == [LeaseLost("manager", 0, held.entry_id, 1)]


async def test_one_renewal_anywhere_is_enough_for_deadlines(
    harness: BrokerHarness, server: FakeServer
) -> None:
    await harness.submit(deadline_seconds=0.05)

    with renewing(CountingBroker(server), []):

        async def has_thread_ended() -> object:
            return await harness.broker.replies.read_reply(question())

        assert await wait_until(has_thread_ended) == LAST_RESORT


@pytest.mark.slow
async def test_a_redis_that_was_away_is_renewed_again(
    harness: BrokerHarness, server: FakeServer
) -> None:
    broker = CountingBroker(server, failures=2, enough=1)
    await harness.submit()

    with renewing(broker, []) as renewal:
        renewal.hold(await harness.take())

        assert broker.enough.wait(PATIENCE_SECONDS)
        assert renewal.alive


async def test_a_renewal_can_be_started_again(harness: BrokerHarness, server: FakeServer) -> None:
    renewal = LeaseRenewal(lambda: CountingBroker(server), lease_seconds=SHORT_LEASE)

    for _ in range(2):
        renewal.start(lambda _lost: None)
        assert renewal.alive
        renewal.stop()
        renewal.stop()

    assert not renewal.alive
