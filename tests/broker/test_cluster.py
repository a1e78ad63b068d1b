from typing import Any

import pytest

from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from broker.values import BranchSend, Bury, FrameSend, Retry, ReturnResult, ScatterBranches
from envelope.memory_access import Append
from tests.support.broker_harness import (
    LAST_RESORT,
    BrokerHarness,
    finish,
    forward,
    question,
)
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.redis, pytest.mark.slow]  # a cluster takes two seconds to start


@pytest.fixture(params=[1, 3])
async def harness(request: pytest.FixtureRequest, cluster_url: str) -> Any:
    """A broker on a cluster, which refuses keys of several slots in one command."""
    client: Any = connect(cluster_url)
    if b"cluster_slots_assigned:0" in await client.execute_command("CLUSTER", "INFO"):
        await client.execute_command("CLUSTER", "ADDSLOTS", *range(16_384))
    broker = RedisBroker(client, shards=request.param, lease_seconds=0.05, backoff_seconds=0.001)

    async def is_prepared() -> bool:
        return b"cluster_state:ok" in await client.execute_command("CLUSTER", "INFO")

    await wait_until(is_prepared)
    await client.flushall()
    await broker.prepare(["manager", "search"])
    yield BrokerHarness(broker, client, RedisBroker)
    await client.aclose()


async def test_every_script_stays_in_the_slot_of_its_shard(harness: BrokerHarness) -> None:
    await harness.submit(question("m1"), result_list="chat")
    await harness.submit(question("m2"), result_list="chat")
    await harness.submit(question("m3"), deadline_seconds=0.4, result_list="chat")
    await harness.settle(await harness.take(), forward())
    held = await harness.take("search")
    assert await harness.broker.consumer.renew([held]) == []
    await harness.settle(held, Retry(b"again", "away"))

    async def back() -> Any:
        await harness.broker.maintenance.scheduler.send_due()
        return await harness.take_all("search")

    (delivery,) = await wait_until(back)
    write = Append(key=f"rd:{{{delivery.shard}}}:mem:x", values=("x",), keep=1, ttl_seconds=9)
    await harness.settle(delivery, finish(remember=[write], forget="history"))
    await harness.settle(await harness.take(), Bury("failed", "no"))

    assert await harness.broker.replies.read_reply(question("m2")) == LAST_RESORT
    assert await harness.due_reply(question("m3")) == LAST_RESORT
    assert not await harness.broker.producer.cancel(question("m1"), forget=True)
    await _branch(harness)
    await harness.broker.consumer.leave("search", "w1")
    assert len(await harness.results(shard=delivery.shard)) == 2
    chat = harness.broker.result_list("chat", "w1")
    assert len(await chat.take(slots=9, block_seconds=0.0)) == 2


async def _branch(harness: BrokerHarness) -> None:
    """Scatter, return one of two branches, and let the join end at its deadline."""
    await harness.submit(question("m4"))
    sends = tuple(BranchSend("search", b"frame", path=path) for path in ("t1", "t2", "t3"))
    gather = FrameSend("manager", b"goes on")
    (*_, entry) = await harness.take_all()
    await harness.settle(entry, ScatterBranches("#0", gather, sends, 3, 2, 0.05))
    first, second = await harness.take_all("search")
    first.branch, second.branch = "t1", "t2"
    await harness.settle(first, ReturnResult({}, True, ("manager", "search")))
    assert await harness.broker.consumer.renew([second]) == []

    async def look() -> Any:
        await harness.broker.maintenance.scheduler.send_due()
        return await harness.take_all()

    (goes_on,) = await wait_until(look)
    assert goes_on.gathered == b'{"t1":{}}'
    assert len(await harness.broker.consumer.renew([second])) == 1
    await harness.settle(goes_on, finish())


async def test_conversations_are_forgotten_in_whichever_slot_they_are(
    harness: BrokerHarness,
) -> None:
    word = b"canary-of-words"
    asked = [question(conversation=f"c{number}") for number in range(8)]
    for message in asked:
        await harness.submit(message, frame=word, result_list="chat")
    await harness.broker.producer.cancel(asked[0])

    ended = [(await harness.broker.eraser.forget(message)).ended for message in asked]

    assert ended == [0, 1, 1, 1, 1, 1, 1, 1]
    dumps = [await harness.client.dump(key) for key in await harness.client.keys("*")]
    assert not any(word in dump for dump in dumps)
    await harness.broker.maintenance.rescuer.sweep()
    await harness.broker.maintenance.upkeep.tidy()
