from broker.port import Bury, Delivery, Lost, Send
from tests.broker.rig import LAST_RESORT, Rig, eventually, finish, forward, question


async def test_no_more_is_taken_than_there_are_places(rig: Rig) -> None:
    for number in range(5):
        await rig.submit(question(conversation=f"c{number}"))

    taken = await rig.broker.take("manager", "w1", places=3, block_seconds=0.0)

    assert len(taken) == 3


async def test_several_shards_together_give_no_more_than_there_are_places(rig: Rig) -> None:
    await rig.client.flushall()
    rig.broker = rig.make(shards=4)
    await rig.broker.prepare(["manager"])
    asked = [question(conversation=f"c{number}") for number in range(20)]
    for each in asked:
        await rig.submit(each)
    seen: set[str] = set()

    async def all_seen() -> bool:
        for delivery in await rig.broker.take("manager", "w1", places=2, block_seconds=0.0):
            seen.add(delivery.question.conversation_id)
            await rig.settle(delivery, finish())
        return len(seen) == 20

    first = await rig.broker.take("manager", "w1", places=2, block_seconds=0.0)
    await rig.broker.give_back(first)
    await eventually(all_seen)

    assert len(first) == 2
    assert {delivery.shard for delivery in first} <= {0, 1, 2, 3}
    for each in asked:
        assert await rig.broker.reply(each) is not None


async def test_an_idle_take_waits_and_returns_nothing(rig: Rig) -> None:
    assert await rig.broker.take("manager", "w1", places=1, block_seconds=0.03) == []


async def test_the_entry_of_a_silent_worker_is_taken_over_once(rig: Rig) -> None:
    await rig.submit()
    held = await rig.take(consumer="w1")

    again = await rig.reclaimed(consumer="w2")

    assert (again.consumer, again.starts) == ("w2", 2)
    assert [death.worker for death in again.deaths] == ["w1"]
    assert again.frame == held.frame


async def test_an_entry_within_its_lease_is_left_alone(rig: Rig) -> None:
    rig.broker = rig.make(lease_seconds=60)
    await rig.submit()
    await rig.take(consumer="w1")

    assert 50 < await rig.broker.sweep() <= 60
    assert await rig.take_all(consumer="w2") == []


async def grow_older(rig: Rig, held: Delivery, seconds: float) -> None:
    """Let so much of a lease pass at once."""
    stream, group = "rd:{0}:stream:manager", "workers"
    (found,) = await rig.client.xpending_range(stream, group, "-", "+", 1)
    idle = found["time_since_delivered"] + round(1000 * seconds)
    await rig.client.xclaim(
        stream, group, held.consumer, 0, [held.entry_id], idle=idle, justid=True
    )


async def test_renewing_keeps_the_lease_without_counting_a_delivery(rig: Rig) -> None:
    rig.broker = rig.make(lease_seconds=600)
    await rig.submit()
    held = await rig.take(consumer="w1")
    for _ in range(3):
        await grow_older(rig, held, 400)
        assert await rig.broker.renew([held]) == []
        await rig.broker.sweep()
        assert await rig.take_all(consumer="w2") == []

    assert await rig.settle(held, finish())


async def test_a_lease_that_nobody_renews_ends(rig: Rig) -> None:
    rig.broker = rig.make(lease_seconds=600)
    await rig.submit()
    held = await rig.take(consumer="w1")
    for _ in range(2):
        await grow_older(rig, held, 400)
        await rig.broker.sweep()

    assert (await rig.take(consumer="w2")).starts == 2
    assert not await rig.settle(held, finish())


async def test_renewing_tells_what_was_lost_and_does_not_steal_it_back(rig: Rig) -> None:
    await rig.submit()
    held = await rig.take(consumer="w1")
    present = await rig.reclaimed(consumer="w2")

    lost = await rig.broker.renew([held, present])

    assert lost == [Lost("manager", 0, held.entry_id, 1)]
    assert await rig.settle(present, finish())


async def test_renewing_tells_a_loss_to_the_same_consumer(rig: Rig) -> None:
    await rig.submit()
    held = await rig.take(consumer="w1")
    await rig.reclaimed(consumer="w1")

    assert len(await rig.broker.renew([held])) == 1


async def test_an_entry_that_kills_its_workers_is_started_exactly_three_times(rig: Rig) -> None:
    await rig.submit()
    starts = [(await rig.take(consumer="w1")).starts]
    starts.append((await rig.reclaimed(consumer="w2")).starts)
    starts.append((await rig.reclaimed(consumer="w3")).starts)

    async def buried() -> object:
        await rig.broker.sweep()
        assert await rig.take_all(consumer="w4") == []
        return await rig.broker.dead_letters()

    (letter,) = await eventually(buried)

    assert starts == [1, 2, 3]
    assert [death.worker for death in letter.deaths] == ["w1", "w2", "w3"]
    assert letter.worker == "w3"
    assert letter.accepted_at <= letter.queued_at <= letter.at
    assert (letter.reason, letter.attempts, letter.frame) == ("poison", 3, b"frame")
    assert await rig.broker.reply(question()) == LAST_RESORT
    assert await rig.take_all() == []


async def test_the_manager_is_told_of_poison_when_the_broker_knows_how(rig: Rig) -> None:
    def tell(delivery: Delivery, error: str) -> Send:
        return Send("manager", delivery.frame + error.encode())

    rig.broker = rig.make(tell=tell)
    await rig.submit()
    await rig.settle(await rig.take(), forward(b"poison "))
    await rig.take("search", "w1")
    await rig.reclaimed("search", "w2")
    await rig.reclaimed("search", "w3")

    async def told() -> object:
        await rig.broker.sweep()
        return await rig.take_all()

    (delivery,) = await eventually(told)

    assert delivery.frame.startswith(b"poison its worker died")
    assert await rig.broker.reply(question()) is None


async def test_an_entry_that_is_given_back_is_there_at_once_and_spent_nothing(rig: Rig) -> None:
    rig.broker = rig.make(lease_seconds=60)
    await rig.submit()
    held = await rig.take(consumer="w1")

    await rig.broker.give_back([held])

    again = await rig.take(consumer="w2")
    assert (again.count, again.frame) == (1, b"frame")
    assert not await rig.settle(held, finish())


async def test_a_suspect_that_is_given_back_stays_a_suspect(rig: Rig) -> None:
    await rig.submit()
    await rig.take(consumer="w1")
    suspect = await rig.reclaimed(consumer="w2")

    await rig.broker.give_back([suspect])

    assert (await rig.take(consumer="w3")).starts == 2


async def test_giving_back_what_was_lost_does_nothing(rig: Rig) -> None:
    await rig.submit()
    held = await rig.take(consumer="w1")
    present = await rig.reclaimed(consumer="w2")

    await rig.broker.give_back([held])

    assert await rig.take_all() == []
    assert await rig.settle(present, finish())


async def test_a_consumer_that_leaves_hands_back_what_it_owns(rig: Rig) -> None:
    rig.broker = rig.make(lease_seconds=60)
    await rig.submit()
    held = await rig.take(consumer="w1")

    await rig.broker.leave("manager", "w1")

    (status,) = await rig.broker.status(["manager"])
    assert status.consumers == 0
    assert (await rig.take(consumer="w2")).frame == b"frame"
    assert not await rig.settle(held, finish())


async def test_a_consumer_that_leaves_hands_back_however_much_it_owns(rig: Rig) -> None:
    for number in range(450):
        await rig.submit(question(conversation=f"c{number}"))
    await rig.broker.take("manager", "w1", places=450, block_seconds=0.0)

    await rig.broker.leave("manager", "w1")

    again = await rig.broker.take("manager", "w2", places=1000, block_seconds=0.0)
    assert len(again) == 450
    assert {one.starts for one in again} == {1}
    consumers = await rig.client.xinfo_consumers("rd:{0}:stream:manager", "workers")
    assert [consumer["name"] for consumer in consumers] == [b"w2"]


async def test_a_suspect_of_a_consumer_that_leaves_is_not_lost(rig: Rig) -> None:
    await rig.submit()
    await rig.take(consumer="w1")
    await rig.reclaimed(consumer="w2")

    await rig.broker.leave("manager", "w2")

    assert (await rig.take(consumer="w3")).starts == 2


async def test_silent_consumers_that_own_nothing_are_removed(rig: Rig) -> None:
    rig.broker = rig.make(lease_seconds=0.005)
    await rig.take_all(consumer="dead")

    async def removed() -> bool:
        await rig.broker.sweep()
        names = await rig.client.xinfo_consumers("rd:{0}:stream:manager", "workers")
        return b"dead" not in {found["name"] for found in names}

    assert await eventually(removed)


async def test_an_entry_that_is_no_frame_is_buried_on_first_sight(rig: Rig) -> None:
    stream = "rd:{0}:stream:manager"
    await rig.client.xadd(stream, {"nonsense": b"\xff\xfe"})
    await rig.client.xadd(stream, {"q": "a/b", "f": "x", "d": "1", "n": "0", "l": ""})
    await rig.client.xadd(stream, {"q": b"\xff", "f": b"\xff", "d": "soon", "n": "0", "l": ""})
    await rig.submit()

    delivery = await rig.take()

    letters = await rig.broker.dead_letters()
    assert delivery.frame == b"frame"
    assert [letter.reason for letter in letters] == ["malformed"] * 3
    assert {letter.frame for letter in letters} == {b"", b"x", b"\xff"}
    assert await rig.client.xlen(stream) == 1


async def test_a_malformed_entry_of_a_known_question_still_gives_an_outcome(rig: Rig) -> None:
    await rig.submit(result_list="chat")
    delivery = await rig.take()
    stream = "rd:{0}:stream:manager"
    await rig.client.xack(stream, "workers", delivery.entry_id)
    await rig.client.xdel(stream, delivery.entry_id)
    await rig.client.xadd(stream, {"q": "acme/desk/c1/m1", "f": "cut off"})

    assert await rig.take_all() == []
    assert await rig.broker.reply(question()) == LAST_RESORT
    assert len(await rig.results()) == 1


async def test_a_frame_that_cannot_be_decoded_gives_an_outcome_when_it_is_buried(rig: Rig) -> None:
    await rig.submit(frame=b"not JSON")

    await rig.settle(await rig.take(), Bury("undecodable", "expected an envelope in JSON"))

    assert await rig.broker.reply(question()) == LAST_RESORT
