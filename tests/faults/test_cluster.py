"""Every operation on a cluster of three masters, whose shards lie on different nodes."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker.errors import BrokerUnavailableError, UnsuitableServerError
from broker.keys import question_keys, shard_for
from broker.maintenance.snapshot import RedisSnapshot
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from broker.values import Bury, Retry
from envelope.memory_access import Append
from envelope.question import Question
from memory.conversation import RedisMemory
from tests.faults.cluster import Cluster
from tests.support.broker_harness import (
    LAST_RESORT,
    ROLES,
    BrokerHarness,
    finish,
    forward,
    question,
)
from tests.support.waiting import wait_until, within

pytestmark = [pytest.mark.redis, pytest.mark.slow]

SHARDS = 8


@pytest.fixture
async def harness(cluster: Cluster) -> AsyncIterator[BrokerHarness]:
    client: Any = connect(cluster.url)
    await client.flushall()
    broker = RedisBroker(client, shards=SHARDS, lease_seconds=0.05, backoff_seconds=0.001)
    await broker.prepare(ROLES)
    yield BrokerHarness(broker, client, RedisBroker)
    await client.aclose()


def on_every_shard() -> list[Question]:
    """A question of each shard."""
    found: dict[int, Question] = {}
    for number in range(1000):
        asked = question(conversation=f"c{number}")
        found.setdefault(shard_for(asked, SHARDS), asked)
    assert len(found) == SHARDS
    return list(found.values())


async def test_the_shards_lie_on_all_three_masters(
    cluster: Cluster, harness: BrokerHarness
) -> None:
    keys = [question_keys(asked, shard_for(asked, SHARDS)).record for asked in on_every_shard()]

    assert len({(await cluster.master_of(key)).port for key in keys}) == 3


async def test_a_question_of_every_shard_goes_its_way(harness: BrokerHarness) -> None:
    asked = on_every_shard()
    for each in asked:
        await harness.submit(each, result_list="chat")

    async def all_ended() -> bool:
        for delivery in await harness.broker.consumer.take(
            "manager", "m", slots=99, block_seconds=0.2
        ):
            assert await harness.settle(delivery, forward())
        held = await harness.broker.consumer.take("search", "s", slots=99, block_seconds=0.2)
        assert await harness.broker.consumer.renew(held) == []
        write = [
            Append(key=f"rd:{{{each.shard}}}:mem:x", values=("x",), keep=1, ttl_seconds=9)
            for each in held
        ]
        settled = [
            (each, finish(each.question.conversation_id, remember=[memory]))
            for each, memory in zip(held, write, strict=True)
        ]
        assert all(await harness.broker.settle(settled))
        return None not in [await harness.broker.replies.read_reply(each) for each in asked]

    assert await wait_until(all_ended)
    for each in asked:
        reply = await harness.broker.replies.await_reply(each)
        assert reply is not None
        assert reply["text"] == each.conversation_id
    assert len(await harness.broker.admin.find_questions("m1")) == SHARDS
    (status,) = await harness.broker.admin.read_status(["search"])
    assert (status.depth, status.in_flight) == (0, 0)
    chat = harness.broker.result_list("chat", "w1")
    results = await chat.take(slots=9, block_seconds=1.0)
    await chat.mark_delivered(results)
    assert len(results) == SHARDS


async def test_every_kind_of_ending_works_on_every_shard(harness: BrokerHarness) -> None:
    asked = on_every_shard()
    for each in asked:
        await harness.submit(each, deadline_seconds=20.0)
        await harness.submit(each.model_copy(update={"message_id": "m2"}), deadline_seconds=0.05)
    for held in await harness.broker.consumer.take("manager", "w1", slots=99, block_seconds=1.0):
        assert await harness.settle(held, Retry(b"again", "away"))

    async def back() -> bool:
        await harness.broker.maintenance.scheduler.send_due()
        taken = await harness.broker.consumer.take("manager", "w1", slots=99, block_seconds=0.1)
        await harness.broker.settle([(delivery, Bury("failed", "no")) for delivery in taken])
        return None not in [await harness.broker.replies.read_reply(each) for each in asked]

    assert await wait_until(back)
    assert len(await harness.broker.admin.list_dead_letters()) == SHARDS
    for each in asked:
        late = each.model_copy(update={"message_id": "m2"})
        assert await harness.due_reply(late) == LAST_RESORT
        assert not await harness.broker.producer.cancel(late, forget=True)


@pytest.mark.timeout(240)
async def test_waiting_wakes_whichever_node_has_something(harness: BrokerHarness) -> None:
    for each in on_every_shard():
        async with within(), asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(take_entry(harness))
            await wait_until(lambda: is_blocked(harness))
            await harness.submit(each)
            answer = tasks.create_task(harness.broker.replies.await_reply(each, block_seconds=50.0))
            (found,) = await waiting
            assert await harness.settle(found, finish())

        assert found.question == each
        assert answer.result() == {"outcome": "answered", "text": "found it"}


async def take_entry(harness: BrokerHarness) -> Any:
    return await wait_until(
        lambda: harness.broker.consumer.take("manager", "w1", slots=9, block_seconds=8.0)
    )


async def is_blocked(harness: BrokerHarness) -> bool:
    answers = [await node.info("clients") for node in await harness.client.nodes()]
    return sum(int(info["blocked_clients"]) for info in answers) >= SHARDS


async def test_a_process_that_never_prepared_the_server_receives_wakeups_of_all_slots(
    harness: BrokerHarness,
) -> None:
    scheduler = RedisBroker(harness.client, shards=SHARDS).maintenance.scheduler

    assert await scheduler.wait_for_wakeup(block_seconds=0.05) is None


async def test_one_node_that_is_away_keeps_no_other_shard_from_working(
    cluster: Cluster, harness: BrokerHarness
) -> None:
    for each in on_every_shard():
        await harness.submit(each)
    held = await harness.broker.consumer.take("manager", "w1", slots=99, block_seconds=2.0)
    killed = await cluster.master_of("rd:{0}:open")
    killed.kill()
    settled = await harness.broker.settle_and_take([(each, finish()) for each in held], ())
    killed.start()
    await cluster.healthy()

    away = {held[place].shard for place in settled.away}
    kept = {each.shard for each, fine in zip(held, settled.kept, strict=True) if fine}
    assert 0 in away
    assert away | kept == set(range(SHARDS))
    assert not away & kept
    assert len(kept) >= SHARDS // 2


async def test_scripts_are_known_to_every_node(harness: BrokerHarness) -> None:
    for each in on_every_shard():
        await harness.client.script_flush()
        await harness.submit(each)

    assert (
        len(await harness.broker.consumer.take("manager", "w1", slots=99, block_seconds=2.0))
        == SHARDS
    )


async def test_a_group_that_is_gone_on_one_node_is_made_again(harness: BrokerHarness) -> None:
    asked = on_every_shard()
    for each in asked:
        await harness.submit(each)
    for shard in range(0, SHARDS, 3):
        await harness.client.xgroup_destroy(f"rd:{{{shard}}}:stream:manager", "workers")

    async def all_taken() -> bool:
        for delivery in await harness.broker.consumer.take(
            "manager", "w1", slots=99, block_seconds=0.2
        ):
            await harness.settle(delivery, finish())
        return None not in [await harness.broker.replies.read_reply(each) for each in asked]

    assert await wait_until(all_taken)


async def test_the_memory_of_every_shard_is_found(harness: BrokerHarness) -> None:
    memory = RedisMemory(harness.client, shards=SHARDS)

    for each in on_every_shard():
        assert (await memory.recall(each)).history == ()


async def test_one_node_of_many_is_no_server_to_work_with(cluster: Cluster) -> None:
    client = connect(cluster.nodes[0].url)

    with pytest.raises(UnsuitableServerError, match=r"of 3 masters; use redis\+cluster://"):
        await RedisBroker(client).prepare(ROLES)
    await client.aclose()


async def test_one_node_that_evicts_is_one_too_many(
    cluster: Cluster, harness: BrokerHarness
) -> None:
    one = await cluster.master_of("rd:{0}:open")
    await one.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(UnsuitableServerError, match="noeviction"):
            await harness.broker.prepare(ROLES)
    finally:
        await one.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")


async def test_another_number_of_shards_is_refused(harness: BrokerHarness) -> None:
    with pytest.raises(UnsuitableServerError, match="fixed at the first start"):
        await RedisBroker(harness.client, shards=SHARDS + 1).prepare(ROLES)


async def test_a_cluster_that_is_away_is_reported_by_one_error() -> None:
    broker = RedisBroker(connect("redis+cluster://127.0.0.1:1"), shards=3)

    for attempt in (
        broker.prepare(ROLES),
        broker.maintenance.scheduler.send_due(),
        broker.replies.read_reply(question()),
        broker.replies.await_reply(question(), block_seconds=1.0),
    ):
        with pytest.raises(BrokerUnavailableError, match="does not respond"):
            await attempt
    await broker.close()


async def test_a_backup_is_of_one_moment_and_comes_back_on_a_cluster(
    cluster: Cluster, harness: BrokerHarness
) -> None:
    for number in range(20):
        await harness.submit(question(f"q{number}", conversation=f"c{number}"))
    client = harness.client
    await client.set("rd:person:acme/docs:ada", "de", ex=3600)
    before = {name: await client.dump(name) for name in await list_names(client)}
    pairs = [(f"rd:rate:{{{number}}}:first", f"rd:rate:{{{number}}}:second") for number in range(9)]
    stop = asyncio.Event()

    async def write() -> None:
        """Write pairs one after the other: a copy of one moment never has the second alone."""
        at = 0
        while not stop.is_set():
            at += 1
            for pair in pairs:
                for name in pair:
                    await client.set(name, str(at))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(write())
        await wait_until(lambda: client.exists(pairs[-1][1]))
        copied = [saved_key async for saved_key in RedisSnapshot(client).read()]
        stop.set()

    saved = {saved_key.name: saved_key.value for saved_key in copied}
    assert {name: saved[name] for name in before} == before
    await RedisSnapshot(client).delete_all()
    assert await RedisSnapshot(client).is_empty()
    assert await RedisSnapshot(client).write(copied) == len(copied)
    assert {name: await client.dump(name) for name in await list_names(client)} == saved
    assert 3500 < await client.ttl("rd:person:acme/docs:ada") <= 3600
    for pair in pairs:
        first, second = [int(await client.get(name)) for name in pair]
        assert first - second in (0, 1)
    assert len({(await cluster.master_of(name.decode())).port for name in saved}) == 3


async def list_names(client: Any) -> list[bytes]:
    """Return the names of all keys of a cluster."""
    found: list[bytes] = []
    for node in await client.nodes():
        found += [name async for name in node.scan_iter("rd:*")]
    return found
