from typing import Any

import pytest

from broker.connecting import connect
from broker.keys import shard_for
from broker.port import Bury, Retry
from broker.redis_broker import RedisBroker
from envelope.memory_write import Append
from tests.broker.rig import LAST_RESORT, Rig, eventually, finish, forward, question

pytestmark = pytest.mark.redis


@pytest.fixture
async def rig(cluster_url: str) -> Any:
    """A broker of one shard on a cluster: a key of another slot would be refused."""
    client: Any = connect(cluster_url)
    await client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    broker = RedisBroker(client, lease_seconds=0.05, backoff_seconds=0.001)

    async def prepared() -> bool:
        return b"cluster_state:ok" in await client.execute_command("CLUSTER", "INFO")

    await eventually(prepared)
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
    write = Append(key="rd:{0}:mem:x", values=("x",), keep=1, ttl_seconds=9)
    await rig.settle(delivery, finish(remember=[write], forget="history"))
    await rig.settle(await rig.take(), Bury("failed", "no"))

    assert await rig.broker.reply(question("m2")) == LAST_RESORT
    assert await rig.due_reply(question("m3")) == LAST_RESORT
    assert not await rig.broker.cancel(question("m1"), forget=True)
    await rig.broker.leave("search", "w1")
    assert len(await rig.results()) == 2
    assert shard_for(question(), 1) == 0
