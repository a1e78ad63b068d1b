"""A settlement takes what it sent, in the same round trip."""

from broker.port import Want
from tests.broker.rig import Rig, finish, forward, question


async def test_what_a_settlement_sends_is_taken_by_whom_has_room(rig: Rig) -> None:
    await rig.submit()
    entry = await rig.take()

    settled = await rig.broker.settle_and_take(
        [(entry, forward(b"onward"))], [Want("search", "w7", 1)]
    )

    [taken] = settled.taken
    assert settled.kept == [True]
    assert (taken.frame, taken.role, taken.consumer, taken.count) == (b"onward", "search", "w7", 1)
    assert 0 < taken.remaining_seconds <= 60
    assert await rig.settle(taken, finish())


async def test_what_was_taken_on_the_way_is_held_like_any_other(rig: Rig) -> None:
    await rig.submit()
    settled = await rig.broker.settle_and_take(
        [(await rig.take(), forward())], [Want("search", "w7", 1)]
    )

    again = await rig.reclaimed("search", "w8")

    assert again.starts == 2
    assert not await rig.settle(settled.taken[0], finish("late"))
    assert await rig.settle(again, finish())


async def test_no_more_is_taken_than_there_is_room_for(rig: Rig) -> None:
    for number in range(3):
        await rig.submit(question(conversation=f"c{number}"))
    entries = [(entry, forward()) for entry in await rig.take_all()]

    settled = await rig.broker.settle_and_take(entries, [Want("search", "w7", 2)])

    assert len(settled.taken) == 2
    assert len(await rig.take_all("search")) == 1


async def test_a_group_that_is_gone_gives_nothing_and_harms_no_settlement(rig: Rig) -> None:
    await rig.submit()
    entry = await rig.take()
    await rig.client.delete("rd:{0}:stream:search")

    settled = await rig.broker.settle_and_take([(entry, forward())], [Want("search", "w7", 1)])

    assert (settled.kept, list(settled.taken)) == ([True], [])
    assert (await rig.take("search")).frame == b"next"
