import asyncio
from pathlib import Path
from typing import Any

import pytest

from broker.errors import BrokerUnavailableError, UnsuitableServerError
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from broker.values import Accepted
from tests.support.broker_harness import BrokerHarness, finish, forward, question
from tests.support.waiting import within


async def test_taking_goes_on_after_everything_was_flushed(harness: BrokerHarness) -> None:
    await harness.submit()
    lost = await harness.take()
    await harness.client.flushall()

    assert await harness.take_all() == []
    assert not await harness.settle(lost, forward())
    assert await harness.submit() == Accepted()
    assert (await harness.take()).question == question()


async def test_a_waiting_take_outlives_a_flush(harness: BrokerHarness) -> None:
    async def patient() -> Any:
        while True:
            taken = await harness.broker.consumer.take("manager", "w1", slots=1, block_seconds=0.2)
            if taken:
                return taken

    async with within(), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(patient())
        await harness.client.ping()
        await harness.client.flushall()
        await harness.submit()

    assert waiting.result()[0].question == question()


async def test_a_destroyed_group_is_made_again_and_nothing_is_lost(harness: BrokerHarness) -> None:
    await harness.submit(question(conversation="c1"))
    held = await harness.take(consumer="w1")
    await harness.submit(question(conversation="c2"))
    await harness.client.xgroup_destroy("rd:{0}:stream:manager", "workers")

    again = await harness.take_all(consumer="w2")

    assert [entry.question.conversation_id for entry in again] == ["c1", "c2"]
    assert not await harness.settle(held, finish("old owner"))
    assert await harness.broker.settle([(entry, finish()) for entry in again]) == [True, True]


async def test_every_operation_survives_the_loss_of_the_group(harness: BrokerHarness) -> None:
    await harness.submit()
    held = await harness.take()
    await harness.client.delete("rd:{0}:stream:manager")

    assert len(await harness.broker.consumer.renew([held])) == 1
    assert await harness.broker.maintenance.rescuer.sweep() > 0
    await harness.broker.consumer.give_back([held])
    await harness.broker.consumer.leave("manager", "w1")
    (status,) = await harness.broker.admin.read_status(["manager"])

    assert (status.depth, status.in_flight, status.consumers) == (0, 0, 0)


async def test_scripts_are_loaded_again_when_the_server_forgot_them(harness: BrokerHarness) -> None:
    await harness.submit()
    held = await harness.take()
    await harness.client.script_flush()

    assert await harness.settle(held, finish())
    await harness.client.script_flush()
    assert await harness.submit(question("m2")) == Accepted()
    await harness.client.script_flush()
    assert await harness.broker.consumer.renew([await harness.take()]) == []


async def test_a_server_that_is_away_is_reported_by_one_error(tmp_path: Path) -> None:
    broker = RedisBroker(connect(f"unix://{tmp_path}/nobody.sock"))
    harness = BrokerHarness(broker, None, RedisBroker)

    for attempt in (
        harness.submit(),
        harness.take_all(),
        broker.maintenance.scheduler.send_due(),
        broker.replies.read_reply(question()),
        broker.replies.read_journal(question()),
        broker.admin.read_status(["manager"]),
        broker.admin.find_questions("m1"),
        broker.admin.list_dead_letters(),
        broker.producer.cancel(question()),
        broker.prepare(["manager"]),
    ):
        with pytest.raises(BrokerUnavailableError, match="does not respond"):
            await attempt
    await broker.close()


@pytest.mark.redis
async def test_a_server_that_evicts_is_refused(redis_url: str) -> None:
    client = connect(redis_url)
    await client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(UnsuitableServerError, match=r"noeviction, .*found allkeys-lru"):
            await RedisBroker(client).prepare(["manager"])
    finally:
        await client.config_set("maxmemory-policy", "noeviction")
        await client.aclose()


@pytest.mark.redis
async def test_a_server_without_memory_left_is_unavailable_and_not_broken(redis_url: str) -> None:
    client = connect(redis_url)
    await client.flushall()
    harness = BrokerHarness(RedisBroker(client), client, RedisBroker)
    await harness.broker.prepare(["manager", "search"])
    await harness.submit()
    held = await harness.take()
    await client.config_set("maxmemory", "1")
    try:
        with pytest.raises(BrokerUnavailableError):
            await harness.submit(question("m2"))
        settled = await harness.settle(held, finish())
        fault = await harness.broker.admin.find_write_fault()
    finally:
        await client.config_set("maxmemory", "0")

    assert settled
    assert fault.startswith("command not allowed when used memory > 'maxmemory'")
    assert await harness.broker.admin.find_write_fault() == ""
    assert await harness.submit(question("m2")) == Accepted()
    await client.aclose()


async def test_another_number_of_shards_is_refused(harness: BrokerHarness) -> None:
    with pytest.raises(UnsuitableServerError, match=r"SHARDS is 2, but .* with 1 shards"):
        await harness.make(shards=2).prepare(["manager"])


async def test_preparing_again_keeps_existing_data(harness: BrokerHarness) -> None:
    await harness.submit()

    await harness.broker.prepare(["manager", "search"])

    assert (await harness.take()).question == question()
