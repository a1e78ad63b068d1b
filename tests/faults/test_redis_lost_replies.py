"""Every script is run again by redis-py when its reply was lost, and does nothing a second time."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import asyncio as aioredis
from redis.asyncio.retry import Retry as Retries
from redis.backoff import NoBackoff

from broker.connecting import connect
from broker.errors import BrokerUnavailableError
from broker.port import Bury, Duplicate, Retry, Send
from broker.redis_broker import RedisBroker
from broker.scripts import CANCEL, DISCARD, DUE, LEAVE, RENEW, RETURN, SETTLE, SUBMIT
from envelope.memory_write import Increment
from tests.broker.hands import Hands
from tests.broker.rig import LAST_RESORT, ROLES, Rig, eventually, finish, forward, question
from tests.faults.proxy import Proxy

pytestmark = pytest.mark.redis

SCRIPT = "EVALSHA"
COUNT = Increment(key="rd:{0}:mem:count", fields={"answers": 1.0}, ttl_seconds=60)


@pytest.fixture
def proxy(redis_url: str) -> Iterator[Proxy]:
    with Proxy(Path(redis_url.removeprefix("unix://"))) as made:
        yield made


@pytest.fixture
async def rig(proxy: Proxy, redis_url: str) -> AsyncIterator[Rig]:
    """A broker whose client repeats blindly, behind a line that loses replies."""
    direct: Any = connect(redis_url)
    await direct.flushall()
    for script in (SUBMIT, SETTLE, DISCARD, RENEW, DUE, RETURN, LEAVE, CANCEL):
        await direct.script_load(script.text)
    repeating = aioredis.Redis.from_url(proxy.url, retry=Retries(NoBackoff(), 10), protocol=2)
    broker = RedisBroker(repeating, lease_seconds=30.0, backoff_seconds=0.001)
    await broker.prepare(ROLES)
    yield Rig(broker, direct, RedisBroker)
    await repeating.aclose()
    await direct.aclose()


@pytest.fixture
def losing(proxy: Proxy) -> Callable[[Awaitable[Any]], Awaitable[Any]]:
    """Do something whose first reply gets lost on the wire."""

    async def lost(act: Awaitable[Any]) -> Any:
        before = proxy.lost
        proxy.lose_replies(SCRIPT)
        found = await act
        assert proxy.lost == before + 1
        return found

    return lost


async def test_a_message_whose_reply_was_lost_is_one_question(rig: Rig, losing: Any) -> None:
    assert await losing(rig.submit()) == Duplicate()

    assert len(await rig.take_all()) == 1
    assert await rig.kinds() == ["accepted"]
    assert await rig.client.zcard("rd:{0}:deadlines") == 1


async def test_a_message_that_waits_for_its_turn_waits_once(rig: Rig, losing: Any) -> None:
    await rig.submit(question("m1"))
    assert await losing(rig.submit(question("m2"))) == Duplicate()

    await rig.settle(await rig.take(), finish())

    assert (await rig.take()).question == question("m2")
    assert await rig.take_all() == []


async def test_a_message_that_joins_another_joins_once(rig: Rig, losing: Any) -> None:
    await rig.submit(question("m1"), not_before_seconds=0.05)
    again = await losing(
        rig.submit(question("m2"), frame=b"joined", not_before_seconds=0.05, result_list="chat")
    )
    assert isinstance(again, Duplicate)
    assert again.reply is not None
    assert again.reply["outcome"] == "superseded"

    async def started() -> Any:
        await rig.broker.due()
        return await rig.take_all()

    (delivery,) = await eventually(started)
    assert delivery.merged == (b"joined",)
    assert len(await rig.results()) == 1


async def test_the_asker_who_tries_again_is_told_that_it_was_accepted(
    proxy: Proxy, redis_url: str
) -> None:
    client: Any = connect(redis_url)
    await client.flushall()
    ours = connect(proxy.url)
    rig = Rig(RedisBroker(ours), client, RedisBroker)
    await rig.broker.prepare(ROLES)
    proxy.lose_replies(SCRIPT)

    hands = Hands()
    with rig.broker.handing_to([hands]), pytest.raises(BrokerUnavailableError):
        await rig.submit()

    assert await rig.submit() == Duplicate()

    async def back() -> Any:
        if hands.doubts:
            await rig.broker.recover("manager", hands.consumer, [])
        return await rig.take_all()

    assert len(await eventually(back)) == 1
    assert hands.held == []
    await ours.aclose()
    await client.aclose()


async def test_an_entry_is_sent_on_once(rig: Rig, losing: Any) -> None:
    await rig.submit()

    # It is told to have been lost: what it had to change was changed the first time.
    assert not await losing(rig.settle(await rig.take(), forward()))

    assert len(await rig.take_all("search")) == 1
    assert await rig.kinds() == ["accepted", "routed"]


async def test_a_question_ends_once(rig: Rig, losing: Any) -> None:
    await rig.submit(result_list="chat")

    await losing(rig.settle(await rig.take(), finish(remember=[COUNT])))

    assert await rig.broker.reply(question()) == {"outcome": "answered", "text": "found it"}
    assert await rig.kinds() == ["accepted", "finished"]
    assert len(await rig.results()) == 1
    assert await rig.client.hget(COUNT.key, "answers") == b"1"
    assert await rig.client.hlen("rd:{0}:open") == 0


async def test_an_entry_is_retried_once(rig: Rig, losing: Any) -> None:
    await rig.submit()

    await losing(rig.settle(await rig.take(), Retry(b"again", "away")))

    assert await rig.client.zcard("rd:{0}:delayed") == 1
    assert await rig.client.hlen("rd:{0}:parked") == 1

    async def back() -> Any:
        await rig.broker.due()
        return await rig.take_all()

    (again,) = await eventually(back)
    assert (again.frame, again.failures) == (b"again", 1)


async def test_an_entry_is_buried_once(rig: Rig, losing: Any) -> None:
    await rig.submit()
    tell = Send("search", b"it was buried")

    await losing(rig.settle(await rig.take(), Bury("failed", "no", tell)))

    assert len(await rig.broker.dead_letters()) == 1
    assert len(await rig.take_all("search")) == 1


async def test_what_is_no_frame_of_ours_is_buried_once(rig: Rig, losing: Any) -> None:
    await rig.client.xadd("rd:{0}:stream:manager", {"what": "ever"})

    assert await losing(rig.take_all()) == []

    (letter,) = await rig.broker.dead_letters()
    assert letter.reason == "malformed"


async def test_an_entry_is_given_back_once(rig: Rig, losing: Any) -> None:
    await rig.submit()

    await losing(rig.broker.give_back([await rig.take()]))

    again = await rig.take(consumer="w2")
    assert again.count == 1
    assert await rig.take_all(consumer="w3") == []


async def test_a_lease_is_kept_though_its_renewal_is_told_twice(rig: Rig, losing: Any) -> None:
    await rig.submit()
    held = await rig.take()

    assert await losing(rig.broker.renew([held])) == []

    assert await rig.settle(held, finish())


async def test_a_question_is_cancelled_once(rig: Rig, losing: Any) -> None:
    await rig.submit(result_list="chat")

    await losing(rig.broker.cancel(question()))

    reply = await rig.broker.reply(question())
    assert reply is not None
    assert reply["outcome"] == "superseded"
    assert await rig.kinds() == ["accepted", "finished"]
    assert len(await rig.results()) == 1


async def test_a_deadline_ends_a_question_once(rig: Rig, proxy: Proxy) -> None:
    await rig.submit(deadline_seconds=0.01, result_list="chat")
    proxy.lose_replies(DUE.digest)

    assert await rig.due_reply(question()) == LAST_RESORT
    assert proxy.lost == 1
    assert await rig.kinds() == ["accepted", "finished"]
    assert len(await rig.results()) == 1


async def test_a_worker_leaves_once_and_loses_nothing(rig: Rig, losing: Any) -> None:
    await rig.submit()
    await rig.take(consumer="w1")

    await losing(rig.broker.leave("manager", "w1"))

    assert (await rig.take(consumer="w2")).count == 1
    assert await rig.take_all(consumer="w3") == []
