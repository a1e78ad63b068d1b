from tests.broker.rig import Rig, eventually, finish, question


async def _recovered(rig: Rig, *known: tuple[int, str]) -> None:
    async def look() -> bool:
        return await rig.broker.recover("manager", "w1", known)

    await eventually(look)


async def test_what_never_arrived_is_there_for_the_next_who_takes(rig: Rig) -> None:
    await rig.submit(question(conversation="c1"))
    await rig.submit(question(conversation="c2"))
    arrived, lost = await rig.take_all()

    await _recovered(rig, (arrived.shard, arrived.entry_id))

    again = await rig.take(consumer="w2")
    assert again.question == lost.question
    assert (again.count, again.starts) == (1, 1)
    assert await rig.settle(arrived, finish())
    assert not await rig.settle(lost, finish())
    assert await rig.settle(again, finish())


async def test_what_was_delivered_just_now_may_still_arrive(rig: Rig) -> None:
    await rig.submit()
    held = await rig.take()

    assert not await rig.broker.recover("manager", "w1", [])

    assert await rig.settle(held, finish())


async def test_nobody_loses_what_another_holds(rig: Rig) -> None:
    await rig.submit()
    held = await rig.take(consumer="w2")

    assert await rig.broker.recover("manager", "w1", [])

    assert await rig.settle(held, finish())


async def test_recovering_without_a_group_finds_nothing(rig: Rig) -> None:
    await rig.client.delete("rd:{0}:stream:manager")

    assert await rig.broker.recover("manager", "w1", [])
