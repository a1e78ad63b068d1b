from typing import Any

import pytest

from broker.connecting import connect
from broker.port import Bury, Retry
from broker.redis_broker import RedisBroker
from envelope.memory_write import Append
from tests.broker.rig import LAST_RESORT, Rig, eventually, finish, forward, question

pytestmark = [pytest.mark.redis, pytest.mark.slow]  # a cluster takes two seconds to start


@pytest.fixture(params=[1, 3])
async def rig(request: pytest.FixtureRequest, cluster_url: str) -> Any:
    """A broker on a cluster, which refuses keys of several slots in one command."""
    client: Any = connect(cluster_url)
    if b"cluster_slots_assigned:0" in await client.execute_command("CLUSTER", "INFO"):
        await client.execute_command("CLUSTER", "ADDSLOTS", *range(16_384))
    broker = RedisBroker(client, shards=request.param, lease_seconds=0.05, backoff_seconds=0.001)

    async def prepared() -> bool:
        return b"cluster_state:ok" in await client.execute_command("CLUSTER", "INFO")

    await eventually(prepared)
    await client.flushall()
    await broker.prepare(["manager", "search"])
    yield Rig(broker, client, RedisBroker)
    await client.aclose()


async def test_every_script_stays_in_the_slot_of_its_shard(rig: Rig) -> None:
    await rig.submit(question("m1"), result_list="chat")
    await rig.submit(question("m2"), result_list="chat")
    await rig.submit(question("m3"), deadline_seconds=0.05, result_list="chat")
    await rig.settle(await rig.take(), forward())
    held = await rig.take("search")
    assert await rig.broker.renew([held]) == []
    await rig.settle(held, Retry(b"again", "away"))

    async def back() -> Any:
        await rig.broker.due()
        return await rig.take_all("search")

    (delivery,) = await eventually(back)
    write = Append(key=f"rd:{{{delivery.shard}}}:mem:x", values=("x",), keep=1, ttl_seconds=9)
    await rig.settle(delivery, finish(remember=[write], forget="history"))
    await rig.settle(await rig.take(), Bury("failed", "no"))

    assert await rig.broker.reply(question("m2")) == LAST_RESORT
    assert await rig.due_reply(question("m3")) == LAST_RESORT
    assert not await rig.broker.cancel(question("m1"), forget=True)
    await rig.broker.leave("search", "w1")
    assert len(await rig.results(shard=delivery.shard)) == 2
    chat = rig.broker.result_list("chat", "w1")
    assert len(await chat.take(places=9, block_seconds=0.0)) == 2


async def test_conversations_are_forgotten_in_whichever_slot_they_are(rig: Rig) -> None:
    word = b"canary-of-words"
    asked = [question(conversation=f"c{number}") for number in range(8)]
    for one in asked:
        await rig.submit(one, frame=word, result_list="chat")
    await rig.broker.cancel(asked[0])

    ended = [(await rig.broker.forget(one)).ended for one in asked]

    assert ended == [0, 1, 1, 1, 1, 1, 1, 1]
    dumps = [await rig.client.dump(key) for key in await rig.client.keys("*")]
    assert not any(word in dump for dump in dumps)
    await rig.broker.sweep()
    await rig.broker.tidy()


async def test_every_shard_of_a_cluster_is_read(rig: Rig) -> None:
    asked = [question(conversation=f"c{number}") for number in range(12)]
    for each in asked:
        await rig.submit(each)

    async def all_ended() -> bool:
        for delivery in await rig.broker.take("manager", "w", places=9, block_seconds=0.1):
            await rig.settle(delivery, finish())
        return None not in [await rig.broker.reply(each) for each in asked]

    assert await eventually(all_ended)
    assert len(await rig.broker.find("m1")) == 12
    (status,) = await rig.broker.status(["manager"])
    assert status.depth == 0
