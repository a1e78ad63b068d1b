"""A settlement takes what it sent, in the same round trip."""

from broker.values import ConsumerDemand
from tests.support.broker_harness import BrokerHarness, finish, forward, question


async def test_what_a_settlement_sends_is_taken_by_whom_has_room(harness: BrokerHarness) -> None:
    await harness.submit()
    entry = await harness.take()

    settled = await harness.broker.settle_and_take(
        [(entry, forward(b"onward"))], [ConsumerDemand("search", "w7", 1)]
    )

    [taken] = settled.taken
    assert settled.kept == [True]
    assert (taken.frame, taken.role, taken.consumer, taken.count) == (b"onward", "search", "w7", 1)
    assert 0 < taken.remaining_seconds <= 60
    assert await harness.settle(taken, finish())


async def test_what_was_taken_on_the_way_is_held_like_any_other(harness: BrokerHarness) -> None:
    await harness.submit()
    settled = await harness.broker.settle_and_take(
        [(await harness.take(), forward())], [ConsumerDemand("search", "w7", 1)]
    )

    again = await harness.reclaim("search", "w8")

    assert again.starts == 2
    assert not await harness.settle(settled.taken[0], finish("late"))
    assert await harness.settle(again, finish())


async def test_no_more_is_taken_than_there_is_room_for(harness: BrokerHarness) -> None:
    for number in range(3):
        await harness.submit(question(conversation=f"c{number}"))
    entries = [(entry, forward()) for entry in await harness.take_all()]

    settled = await harness.broker.settle_and_take(entries, [ConsumerDemand("search", "w7", 2)])

    assert len(settled.taken) == 2
    assert len(await harness.take_all("search")) == 1


async def test_a_group_that_is_gone_gives_nothing_and_harms_no_settlement(
    harness: BrokerHarness,
) -> None:
    await harness.submit()
    entry = await harness.take()
    await harness.client.delete("rd:{0}:stream:search")

    settled = await harness.broker.settle_and_take(
        [(entry, forward())], [ConsumerDemand("search", "w7", 1)]
    )

    assert (settled.kept, list(settled.taken)) == ([True], [])
    assert (await harness.take("search")).frame == b"next"
