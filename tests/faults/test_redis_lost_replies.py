"""Every script is run again by redis-py when its reply was lost, and does nothing a second time."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from redis import asyncio as aioredis
from redis.asyncio.retry import Retry as Retries
from redis.backoff import NoBackoff

from broker.errors import BrokerUnavailableError
from broker.redis_broker import RedisBroker
from broker.settle_script import FORWARD, SETTLE
from broker.transport.connect import connect
from broker.transport.scripts import CANCEL, DISCARD, DUE, LEAVE, RENEW, RETURN, SUBMIT
from broker.values import Bury, Duplicate, FrameSend, Retry
from envelope.memory_access import Increment
from tests.faults.proxy import Proxy
from tests.support.broker_harness import (
    LAST_RESORT,
    ROLES,
    BrokerHarness,
    finish,
    forward,
    question,
)
from tests.support.local_consumer import RecordingConsumer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.redis

SCRIPT = "EVALSHA"
COUNT = Increment(key="rd:{0}:mem:count", fields={"answers": 1.0}, ttl_seconds=60)


@pytest.fixture
async def harness(proxy: Proxy, redis_url: str) -> AsyncIterator[BrokerHarness]:
    """A broker whose client repeats blindly, behind a line that loses replies."""
    direct: Any = connect(redis_url)
    await direct.flushall()
    for script in (SUBMIT, SETTLE, FORWARD, DISCARD, RENEW, DUE, RETURN, LEAVE, CANCEL):
        await direct.script_load(script.text)
    repeating = aioredis.Redis.from_url(proxy.url, retry=Retries(NoBackoff(), 10), protocol=2)
    broker = RedisBroker(repeating, lease_seconds=30.0, backoff_seconds=0.001)
    await broker.prepare(ROLES)
    yield BrokerHarness(broker, direct, RedisBroker)
    await repeating.aclose()
    await direct.aclose()


@pytest.fixture
def losing(proxy: Proxy) -> Callable[[Awaitable[Any]], Awaitable[Any]]:
    """Do something whose first reply gets lost on the wire."""

    async def lose_reply(act: Awaitable[Any]) -> Any:
        before = proxy.lost
        proxy.lose_replies(SCRIPT)
        result = await act
        assert proxy.lost == before + 1
        return result

    return lose_reply


async def test_a_message_whose_reply_was_lost_is_one_question(
    harness: BrokerHarness, losing: Any
) -> None:
    assert await losing(harness.submit()) == Duplicate()

    assert len(await harness.take_all()) == 1
    assert await harness.kinds() == ["accepted"]
    assert await harness.client.zcard("rd:{0}:deadlines") == 1


async def test_a_message_that_waits_for_its_turn_waits_once(
    harness: BrokerHarness, losing: Any
) -> None:
    await harness.submit(question("m1"))
    assert await losing(harness.submit(question("m2"))) == Duplicate()

    await harness.settle(await harness.take(), finish())

    assert (await harness.take()).question == question("m2")
    assert await harness.take_all() == []


async def test_a_message_that_joins_another_joins_once(harness: BrokerHarness, losing: Any) -> None:
    await harness.submit(question("m1"), not_before_seconds=0.05)
    again = await losing(
        harness.submit(question("m2"), frame=b"joined", not_before_seconds=0.05, result_list="chat")
    )
    assert isinstance(again, Duplicate)
    assert again.reply is not None
    assert again.reply["outcome"] == "superseded"

    async def find_started() -> Any:
        await harness.broker.maintenance.scheduler.send_due()
        return await harness.take_all()

    (delivery,) = await wait_until(find_started)
    assert delivery.merged == (b"joined",)
    assert len(await harness.results()) == 1


async def test_the_asker_who_tries_again_learns_that_it_was_accepted(
    proxy: Proxy, redis_url: str
) -> None:
    client: Any = connect(redis_url)
    await client.flushall()
    ours = connect(proxy.url)
    harness = BrokerHarness(RedisBroker(ours), client, RedisBroker)
    await harness.broker.prepare(ROLES)
    proxy.lose_replies(SCRIPT)

    hands = RecordingConsumer()
    with harness.broker.producer.local_consumers([hands]), pytest.raises(BrokerUnavailableError):
        await harness.submit()

    assert await harness.submit() == Duplicate()

    async def back() -> Any:
        if hands.doubts:
            await harness.broker.consumer.recover("manager", hands.consumer, [])
        return await harness.take_all()

    assert len(await wait_until(back)) == 1
    assert hands.held == []
    await ours.aclose()
    await client.aclose()


async def test_an_entry_is_sent_on_once(harness: BrokerHarness, losing: Any) -> None:
    await harness.submit()

    # It is reported as lost: what it had to change was changed the first time.
    assert not await losing(harness.settle(await harness.take(), forward()))

    assert len(await harness.take_all("search")) == 1
    assert await harness.kinds() == ["accepted", "routed"]


async def test_a_question_ends_once(harness: BrokerHarness, losing: Any) -> None:
    await harness.submit(result_list="chat")

    await losing(harness.settle(await harness.take(), finish(remember=[COUNT])))

    assert await harness.broker.replies.read_reply(question()) == {
        "outcome": "answered",
        "text": "found it",
    }
    assert await harness.kinds() == ["accepted", "finished"]
    assert len(await harness.results()) == 1
    assert await harness.client.hget(COUNT.key, "answers") == b"1"
    assert await harness.client.hlen("rd:{0}:open") == 0


async def test_an_entry_is_retried_once(harness: BrokerHarness, losing: Any) -> None:
    await harness.submit()

    await losing(harness.settle(await harness.take(), Retry(b"again", "away")))

    assert await harness.client.zcard("rd:{0}:delayed") == 1
    assert await harness.client.hlen("rd:{0}:parked") == 1

    async def back() -> Any:
        await harness.broker.maintenance.scheduler.send_due()
        return await harness.take_all()

    (again,) = await wait_until(back)
    assert (again.frame, again.failures) == (b"again", 1)


async def test_an_entry_is_buried_once(harness: BrokerHarness, losing: Any) -> None:
    await harness.submit()
    notice = FrameSend("search", b"it was buried")

    await losing(harness.settle(await harness.take(), Bury("failed", "no", notice)))

    assert len(await harness.broker.admin.list_dead_letters()) == 1
    assert len(await harness.take_all("search")) == 1


async def test_an_invalid_frame_is_buried_once(harness: BrokerHarness, losing: Any) -> None:
    await harness.client.xadd("rd:{0}:stream:manager", {"what": "ever"})

    assert await losing(harness.take_all()) == []

    (letter,) = await harness.broker.admin.list_dead_letters()
    assert letter.reason == "malformed"


async def test_an_entry_is_given_back_once(harness: BrokerHarness, losing: Any) -> None:
    await harness.submit()

    await losing(harness.broker.consumer.give_back([await harness.take()]))

    again = await harness.take(consumer="w2")
    assert again.count == 1
    assert await harness.take_all(consumer="w3") == []


async def test_a_lease_is_kept_though_its_renewal_is_sent_twice(
    harness: BrokerHarness, losing: Any
) -> None:
    await harness.submit()
    held = await harness.take()

    assert await losing(harness.broker.consumer.renew([held])) == []

    assert await harness.settle(held, finish())


async def test_a_question_is_cancelled_once(harness: BrokerHarness, losing: Any) -> None:
    await harness.submit(result_list="chat")

    await losing(harness.broker.producer.cancel(question()))

    reply = await harness.broker.replies.read_reply(question())
    assert reply is not None
    assert reply["outcome"] == "superseded"
    assert await harness.kinds() == ["accepted", "finished"]
    assert len(await harness.results()) == 1


async def test_a_deadline_ends_a_question_once(harness: BrokerHarness, proxy: Proxy) -> None:
    await harness.submit(deadline_seconds=0.01, result_list="chat")
    proxy.lose_replies(DUE.digest)

    assert await harness.due_reply(question()) == LAST_RESORT
    assert proxy.lost == 1
    assert await harness.kinds() == ["accepted", "finished"]
    assert len(await harness.results()) == 1


async def test_a_worker_leaves_once_and_loses_nothing(harness: BrokerHarness, losing: Any) -> None:
    await harness.submit()
    await harness.take(consumer="w1")

    await losing(harness.broker.consumer.leave("manager", "w1"))

    assert (await harness.take(consumer="w2")).count == 1
    assert await harness.take_all(consumer="w3") == []
