import asyncio
from pathlib import Path
from typing import Any

import pytest

from broker.connecting import connect
from broker.errors import BrokerUnavailableError, UnsuitableServerError
from broker.port import Accepted
from broker.redis_broker import RedisBroker
from tests.broker.rig import Rig, finish, forward, question


async def test_taking_goes_on_after_everything_was_flushed(rig: Rig) -> None:
    await rig.submit()
    lost = await rig.take()
    await rig.client.flushall()

    assert await rig.take_all() == []
    assert not await rig.settle(lost, forward())
    assert await rig.submit() == Accepted()
    assert (await rig.take()).question == question()


async def test_a_waiting_take_outlives_a_flush(rig: Rig) -> None:
    async def patient() -> Any:
        while True:
            taken = await rig.broker.take("manager", "w1", places=1, block_seconds=0.2)
            if taken:
                return taken

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(patient())
        await rig.client.ping()
        await rig.client.flushall()
        await rig.submit()

    assert waiting.result()[0].question == question()


async def test_a_destroyed_group_is_made_again_and_nothing_is_lost(rig: Rig) -> None:
    await rig.submit(question(conversation="c1"))
    held = await rig.take(consumer="w1")
    await rig.submit(question(conversation="c2"))
    await rig.client.xgroup_destroy("rd:{0}:stream:manager", "workers")

    again = await rig.take_all(consumer="w2")

    assert [entry.question.conversation_id for entry in again] == ["c1", "c2"]
    assert not await rig.settle(held, finish("old owner"))
    assert await rig.broker.settle([(entry, finish()) for entry in again]) == [True, True]


async def test_every_operation_survives_the_loss_of_the_group(rig: Rig) -> None:
    await rig.submit()
    held = await rig.take()
    await rig.client.delete("rd:{0}:stream:manager")

    assert len(await rig.broker.renew([held])) == 1
    assert await rig.broker.sweep() > 0
    await rig.broker.give_back([held])
    await rig.broker.leave("manager", "w1")
    (status,) = await rig.broker.status(["manager"])

    assert (status.depth, status.in_flight, status.consumers) == (0, 0, 0)


async def test_scripts_are_loaded_again_when_the_server_forgot_them(rig: Rig) -> None:
    await rig.submit()
    held = await rig.take()
    await rig.client.script_flush()

    assert await rig.settle(held, finish())
    await rig.client.script_flush()
    assert await rig.submit(question("m2")) == Accepted()
    await rig.client.script_flush()
    assert await rig.broker.renew([await rig.take()]) == []


async def test_a_server_that_is_away_is_told_by_one_error(tmp_path: Path) -> None:
    broker = RedisBroker(connect(f"unix://{tmp_path}/nobody.sock"))
    rig = Rig(broker, None, RedisBroker)

    for attempt in (
        rig.submit(),
        rig.take_all(),
        broker.due(),
        broker.reply(question()),
        broker.journal(question()),
        broker.status(["manager"]),
        broker.find("m1"),
        broker.dead_letters(),
        broker.cancel(question()),
        broker.prepare(["manager"]),
    ):
        with pytest.raises(BrokerUnavailableError, match="does not answer"):
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
    rig = Rig(RedisBroker(client), client, RedisBroker)
    await rig.broker.prepare(["manager", "search"])
    await rig.submit()
    held = await rig.take()
    await client.config_set("maxmemory", "1")
    try:
        with pytest.raises(BrokerUnavailableError):
            await rig.submit(question("m2"))
        settled = await rig.settle(held, finish())
    finally:
        await client.config_set("maxmemory", "0")

    assert settled
    assert await rig.submit(question("m2")) == Accepted()
    await client.aclose()


async def test_another_number_of_shards_is_refused(rig: Rig) -> None:
    with pytest.raises(UnsuitableServerError, match=r"expected 2 shards, found .* with 1"):
        await rig.make(shards=2).prepare(["manager"])


async def test_preparing_again_keeps_what_is_there(rig: Rig) -> None:
    await rig.submit()

    await rig.broker.prepare(["manager", "search"])

    assert (await rig.take()).question == question()
