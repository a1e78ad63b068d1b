from tests.support.broker_harness import BrokerHarness, finish, question
from tests.support.waiting import wait_until


async def recover(harness: BrokerHarness, *known: tuple[int, str]) -> None:
    async def look() -> bool:
        return await harness.broker.consumer.recover("manager", "w1", known)

    await wait_until(look)


async def test_what_never_arrived_is_there_for_the_next_who_takes(harness: BrokerHarness) -> None:
    await harness.submit(question(conversation="c1"))
    await harness.submit(question(conversation="c2"))
    arrived, lost = await harness.take_all()

    await recover(harness, (arrived.shard, arrived.entry_id))

    again = await harness.take(consumer="w2")
    assert again.question == lost.question
    assert (again.count, again.starts) == (1, 1)
    assert await harness.settle(arrived, finish())
    assert not await harness.settle(lost, finish())
    assert await harness.settle(again, finish())


async def test_what_was_delivered_just_now_may_still_arrive(harness: BrokerHarness) -> None:
    await harness.submit()
    held = await harness.take()

    assert not await harness.broker.consumer.recover("manager", "w1", [])

    assert await harness.settle(held, finish())


async def test_nobody_loses_what_another_holds(harness: BrokerHarness) -> None:
    await harness.submit()
    held = await harness.take(consumer="w2")

    assert await harness.broker.consumer.recover("manager", "w1", [])

    assert await harness.settle(held, finish())


async def test_recovering_without_a_group_finds_nothing(harness: BrokerHarness) -> None:
    await harness.client.delete("rd:{0}:stream:manager")

    assert await harness.broker.consumer.recover("manager", "w1", [])
