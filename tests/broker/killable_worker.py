"""A worker process that is meant to be killed at any moment."""

import asyncio
import os

from broker.maintenance.lease_renewer import LeaseRenewal
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from broker.values import Delivery, Finish, Forward, FrameSend, JournalEntry, Settlement
from envelope.memory_access import Increment
from envelope.outcome import Outcome

HOPS = 6
LEASE_SECONDS = 0.3
ANSWERED = "rd:{0}:mem:answered"
PROGRESS = "test:progress"


def broker_of(url: str) -> RedisBroker:
    return RedisBroker(connect(url), lease_seconds=LEASE_SECONDS)


def settlement(delivery: Delivery) -> Settlement:
    """Pass the number in the frame on, one higher, until the last hop."""
    hop = int(delivery.frame)
    note = (JournalEntry("hop", {"number": hop}),)
    if hop == HOPS:
        count = Increment(key=ANSWERED, fields={"answers": 1.0}, ttl_seconds=600)
        return Finish(Outcome.ANSWERED, {"outcome": "answered"}, journal=note, remember=(count,))
    role = "search" if delivery.role == "manager" else "manager"
    return Forward((FrameSend(role, b"%d" % (hop + 1)),), journal=note)


async def work(url: str, role: str) -> None:
    broker, progress = broker_of(url), connect(url)
    renewal = LeaseRenewal(lambda: broker_of(url), lease_seconds=LEASE_SECONDS)
    renewal.start(lambda _lost: None)
    consumer = f"w{os.getpid()}"
    while True:
        taken = [
            *await broker.consumer.take(role, consumer, slots=4, block_seconds=0.05),
        ]
        for delivery in taken:
            renewal.hold(delivery)
        for delivery in taken:
            await broker.settle([(delivery, settlement(delivery))])
            renewal.release(delivery)
            await progress.incr(PROGRESS)


def main(url: str, role: str) -> None:
    asyncio.run(work(url, role))
