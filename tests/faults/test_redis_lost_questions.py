"""What Redis had not written down when it died is gone: whoever asked for it is notified, once."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from broker.values import Accepted
from gateway.desk import Desk, Message
from tests.faults.servers import Server
from tests.support.broker_harness import ROLES, BrokerHarness, finish, forward
from tests.support.waiting import wait_until, within

pytestmark = [pytest.mark.redis, pytest.mark.slow]

DEADLINE_SECONDS = 60.0
"""Well before the deadline, also on a busy machine."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path) as made:
        yield made


@pytest.fixture
async def harness(server: Server) -> AsyncIterator[BrokerHarness]:
    client: Any = connect(server.url)
    broker = RedisBroker(client)
    await broker.prepare(ROLES)
    yield BrokerHarness(broker, client, RedisBroker)
    await client.aclose()


@pytest.fixture
def desk(harness: BrokerHarness) -> Desk:
    return Desk(
        harness.broker.producer, harness.broker.replies,
        tenant="acme", assistant="desk", channel="test",
        deadline_seconds=DEADLINE_SECONDS, words=lambda key, language: f"{key}/{language}",
    )  # fmt: skip


def message(name: str) -> Message:
    return Message("How do I add a rule?", f"c-{name}", name)


async def measure_written(server: Server, harness: BrokerHarness) -> int:
    """Return how much is written down, in bytes, once all that was answered is.

    While its disk is busy Redis answers first, and writes up to two seconds later.
    """

    async def all_is() -> bool:
        info = await harness.client.info("persistence")
        return int(info["aof_buffer_length"]) == 0

    await wait_until(all_is)
    return server.written()


async def kill_and_truncate(server: Server, harness: BrokerHarness, size: int) -> None:
    """Let the machine lose its power: only the first `size` bytes had reached the disk."""
    server.kill()
    server.forget_after(size)
    await asyncio.to_thread(server.start)
    await wait_until(harness.client.ping)


async def test_a_flush_is_reported_to_everybody_who_waits(
    harness: BrokerHarness, desk: Desk
) -> None:
    async with within(), asyncio.TaskGroup() as tasks:
        asking = [tasks.create_task(desk.ask(message(f"m{number}"))) for number in range(20)]
        await wait_until(lambda: _open(harness, 20))
        await harness.client.flushall()

    for number, task in enumerate(asking):
        reply = task.result()
        assert (reply["outcome"], reply["termination_reason"]) == ("failed", "lost")
        assert (reply["message_id"], reply["text"]) == (f"m{number}", "apology/en")


async def test_whoever_follows_a_lost_question_sees_its_end(
    harness: BrokerHarness, desk: Desk
) -> None:
    await desk.submit(message("m1"))
    seen: list[str] = []
    async with within():
        async for entry in desk.follow(desk.question(message("m1"))):
            seen.append(entry.kind)
            if entry.kind == "accepted":
                await harness.client.flushall()

    assert seen == ["accepted", "finished"]


async def test_a_message_accepted_just_before_the_outage_is_reported_and_can_be_asked_again(
    server: Server, harness: BrokerHarness, desk: Desk
) -> None:
    await desk.submit(message("kept"))
    size = await measure_written(server, harness)
    await desk.submit(message("gone"))
    await kill_and_truncate(server, harness, size)

    async with within():
        gone = await desk.outcome(desk.question(message("gone")))

    assert gone["termination_reason"] == "lost"
    (kept,) = await take_entry(harness)
    assert kept.question.message_id == "kept"
    assert await harness.settle(kept, finish())
    assert (await desk.outcome(kept.question))["text"] == "found it"
    assert await desk.submit(message("gone")) == Accepted()


async def test_work_done_just_before_the_outage_is_repeated_and_ends_once(
    server: Server, harness: BrokerHarness, desk: Desk
) -> None:
    await desk.submit(message("m1"))
    size = await measure_written(server, harness)
    (first,) = await take_entry(harness)
    assert await harness.settle(first, forward())
    (last,) = await take_entry(harness, "search")
    await kill_and_truncate(server, harness, size)

    # What the forgotten hop had led to changes nothing any more.
    assert not await harness.settle(last, finish("by who was forgotten"))
    (again,) = await take_entry(harness, consumer="w2")
    assert not await harness.settle(first, finish("by the old owner"))
    assert await harness.settle(again, finish())

    assert await harness.kinds(again.question) == ["accepted", "finished"]
    assert (await desk.outcome(again.question))["text"] == "found it"


async def _open(harness: BrokerHarness, number: int) -> bool:
    return int(await harness.client.zcard("rd:{0}:deadlines")) == number


async def take_entry(harness: BrokerHarness, role: str = "manager", consumer: str = "w1") -> Any:
    return await wait_until(
        lambda: harness.broker.consumer.take(role, consumer, slots=9, block_seconds=0.2)
    )
