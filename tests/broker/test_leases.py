import pytest

from broker.values import Bury, Delivery, FrameSend, LeaseLost
from tests.support.broker_harness import (
    LAST_RESORT,
    BrokerHarness,
    finish,
    forward,
    question,
)
from tests.support.empty_redis import ON_REAL
from tests.support.waiting import wait_until


async def test_no_more_is_taken_than_there_are_places(harness: BrokerHarness) -> None:
    for number in range(5):
        await harness.submit(question(conversation=f"c{number}"))

    taken = await harness.broker.consumer.take("manager", "w1", slots=3, block_seconds=0.0)

    assert len(taken) == 3


async def test_several_shards_together_give_no_more_than_there_are_places(
    harness: BrokerHarness,
) -> None:
    await harness.client.flushall()
    harness.broker = harness.make(shards=4)
    await harness.broker.prepare(["manager"])
    asked = [question(conversation=f"c{number}") for number in range(20)]
    for message in asked:
        await harness.submit(message)
    seen: set[str] = set()

    async def all_seen() -> bool:
        for delivery in await harness.broker.consumer.take(
            "manager", "w1", slots=2, block_seconds=0.0
        ):
            seen.add(delivery.question.conversation_id)
            await harness.settle(delivery, finish())
        return len(seen) == 20

    first = await harness.broker.consumer.take("manager", "w1", slots=2, block_seconds=0.0)
    await harness.broker.consumer.give_back(first)
    await wait_until(all_seen)

    assert len(first) == 2
    assert {delivery.shard for delivery in first} <= {0, 1, 2, 3}
    for message in asked:
        assert await harness.broker.replies.read_reply(message) is not None


async def test_an_idle_take_waits_and_returns_nothing(harness: BrokerHarness) -> None:
    assert await harness.broker.consumer.take("manager", "w1", slots=1, block_seconds=0.03) == []


async def test_the_entry_of_a_silent_worker_is_taken_over_once(harness: BrokerHarness) -> None:
    await harness.submit()
    held = await harness.take(consumer="w1")

    again = await harness.reclaim(consumer="w2")

    assert (again.consumer, again.starts) == ("w2", 2)
    assert [death.worker for death in again.deaths] == ["w1"]
    assert again.frame == held.frame


async def test_an_entry_within_its_lease_is_left_alone(harness: BrokerHarness) -> None:
    harness.broker = harness.make(lease_seconds=60)
    await harness.submit()
    await harness.take(consumer="w1")

    assert 50 < await harness.broker.maintenance.rescuer.sweep() <= 60
    assert await harness.take_all(consumer="w2") == []


async def grow_older(harness: BrokerHarness, held: Delivery, seconds: float) -> None:
    """Let so much of a lease pass at once."""
    stream, group = "rd:{0}:stream:manager", "workers"
    (entry,) = await harness.client.xpending_range(stream, group, "-", "+", 1)
    idle = entry["time_since_delivered"] + round(1000 * seconds)
    await harness.client.xclaim(
        stream, group, held.consumer, 0, [held.entry_id], idle=idle, justid=True
    )


async def test_renewing_keeps_the_lease_without_counting_a_delivery(harness: BrokerHarness) -> None:
    harness.broker = harness.make(lease_seconds=600)
    await harness.submit()
    held = await harness.take(consumer="w1")
    for _ in range(3):
        await grow_older(harness, held, 400)
        assert await harness.broker.consumer.renew([held]) == []
        await harness.broker.maintenance.rescuer.sweep()
        assert await harness.take_all(consumer="w2") == []

    assert await harness.settle(held, finish())


async def test_a_lease_without_renewal_expires(harness: BrokerHarness) -> None:
    harness.broker = harness.make(lease_seconds=600)
    await harness.submit()
    held = await harness.take(consumer="w1")
    for _ in range(2):
        await grow_older(harness, held, 400)
        await harness.broker.maintenance.rescuer.sweep()

    assert (await harness.take(consumer="w2")).starts == 2
    assert not await harness.settle(held, finish())


async def test_lost_leases_are_reported_and_neither_renewed_nor_returned(
    harness: BrokerHarness,
) -> None:
    await harness.submit()
    held = await harness.take(consumer="w1")
    present = await harness.reclaim(consumer="w2")

    lost = await harness.broker.consumer.renew([held, present])
    await harness.broker.consumer.give_back([held])

    assert lost == [LeaseLost("manager", 0, held.entry_id, 1)]
    assert await harness.take_all() == []
    assert await harness.settle(present, finish())


async def test_renewing_reports_a_loss_to_the_same_consumer(harness: BrokerHarness) -> None:
    await harness.submit()
    held = await harness.take(consumer="w1")
    await harness.reclaim(consumer="w1")

    assert len(await harness.broker.consumer.renew([held])) == 1


async def test_an_entry_that_kills_its_workers_is_started_exactly_three_times(
    harness: BrokerHarness,
) -> None:
    await harness.submit()
    starts = [(await harness.take(consumer="w1")).starts]
    starts.append((await harness.reclaim(consumer="w2")).starts)
    starts.append((await harness.reclaim(consumer="w3")).starts)

    async def find_buried() -> object:
        await harness.broker.maintenance.rescuer.sweep()
        assert await harness.take_all(consumer="w4") == []
        return await harness.broker.admin.list_dead_letters()

    (letter,) = await wait_until(find_buried)

    assert starts == [1, 2, 3]
    assert [death.worker for death in letter.deaths] == ["w1", "w2", "w3"]
    assert letter.worker == "w3"
    assert letter.accepted_at <= letter.queued_at <= letter.at
    assert (letter.reason, letter.attempts, letter.frame) == ("poison", 3, b"frame")
    assert await harness.broker.replies.read_reply(question()) == LAST_RESORT
    assert await harness.take_all() == []


async def test_the_manager_is_notified_of_poison_when_the_broker_can_do_so(
    harness: BrokerHarness,
) -> None:
    def make_notice(delivery: Delivery, error: str) -> FrameSend:
        return FrameSend("manager", delivery.frame + error.encode())

    harness.broker = harness.make(make_notice=make_notice)
    await harness.submit()
    await harness.settle(await harness.take(), forward(b"poison "))
    await harness.take("search", "w1")
    await harness.reclaim("search", "w2")
    await harness.reclaim("search", "w3")

    async def find_notice() -> object:
        await harness.broker.maintenance.rescuer.sweep()
        return await harness.take_all()

    (delivery,) = await wait_until(find_notice)

    assert delivery.frame.startswith(b"poison its worker died")
    assert await harness.broker.replies.read_reply(question()) is None


async def test_an_entry_that_is_given_back_is_there_at_once_and_spent_nothing(
    harness: BrokerHarness,
) -> None:
    harness.broker = harness.make(lease_seconds=60)
    await harness.submit()
    held = await harness.take(consumer="w1")

    await harness.broker.consumer.give_back([held])

    again = await harness.take(consumer="w2")
    assert (again.count, again.frame) == (1, b"frame")
    assert not await harness.settle(held, finish())


async def test_a_leaving_consumer_returns_its_entries(harness: BrokerHarness) -> None:
    harness.broker = harness.make(lease_seconds=60)
    await harness.submit()
    held = await harness.take(consumer="w1")

    await harness.broker.consumer.leave("manager", "w1")

    (status,) = await harness.broker.admin.read_status(["manager"])
    assert status.consumers == 0
    assert (await harness.take(consumer="w2")).frame == b"frame"
    assert not await harness.settle(held, finish())


@ON_REAL
async def test_a_consumer_that_leaves_hands_back_however_much_it_owns(
    harness: BrokerHarness,
) -> None:
    for number in range(450):
        await harness.submit(question(conversation=f"c{number}"))
    await harness.broker.consumer.take("manager", "w1", slots=450, block_seconds=0.0)

    await harness.broker.consumer.leave("manager", "w1")

    again = await harness.broker.consumer.take("manager", "w2", slots=1000, block_seconds=0.0)
    assert len(again) == 450
    assert {delivery.starts for delivery in again} == {1}
    consumers = await harness.client.xinfo_consumers("rd:{0}:stream:manager", "workers")
    assert [consumer["name"] for consumer in consumers] == [b"w2"]


@pytest.mark.parametrize("way", ["given back", "left behind"])
async def test_a_suspect_that_is_handed_back_stays_a_suspect(
    harness: BrokerHarness, way: str
) -> None:
    await harness.submit()
    await harness.take(consumer="w1")
    suspect = await harness.reclaim(consumer="w2")

    if way == "given back":
        await harness.broker.consumer.give_back([suspect])
    else:
        await harness.broker.consumer.leave("manager", "w2")

    assert (await harness.take(consumer="w3")).starts == 2


async def test_silent_consumers_that_own_nothing_are_removed(harness: BrokerHarness) -> None:
    harness.broker = harness.make(lease_seconds=0.005)
    await harness.take_all(consumer="dead")

    async def is_removed() -> bool:
        await harness.broker.maintenance.rescuer.sweep()
        names = await harness.client.xinfo_consumers("rd:{0}:stream:manager", "workers")
        return b"dead" not in {consumer["name"] for consumer in names}

    assert await wait_until(is_removed)


async def test_an_entry_without_a_valid_frame_is_buried_at_its_first_delivery(
    harness: BrokerHarness,
) -> None:
    stream = "rd:{0}:stream:manager"
    await harness.client.xadd(stream, {"nonsense": b"\xff\xfe"})
    await harness.client.xadd(stream, {"q": "a/b", "f": "x", "d": "1", "n": "0", "l": ""})
    await harness.client.xadd(stream, {"q": b"\xff", "f": b"\xff", "d": "soon", "n": "0", "l": ""})
    await harness.submit()

    delivery = await harness.take()

    letters = await harness.broker.admin.list_dead_letters()
    assert delivery.frame == b"frame"
    assert [letter.reason for letter in letters] == ["malformed"] * 3
    assert {letter.frame for letter in letters} == {b"", b"x", b"\xff"}
    assert await harness.client.xlen(stream) == 1


async def test_a_malformed_entry_of_a_known_question_still_gives_an_outcome(
    harness: BrokerHarness,
) -> None:
    await harness.submit(result_list="chat")
    delivery = await harness.take()
    stream = "rd:{0}:stream:manager"
    await harness.client.xack(stream, "workers", delivery.entry_id)
    await harness.client.xdel(stream, delivery.entry_id)
    await harness.client.xadd(stream, {"q": "acme/desk/c1/m1", "f": "cut off"})

    assert await harness.take_all() == []
    assert await harness.broker.replies.read_reply(question()) == LAST_RESORT
    assert len(await harness.results()) == 1


async def test_a_frame_that_cannot_be_decoded_gives_an_outcome_when_it_is_buried(
    harness: BrokerHarness,
) -> None:
    await harness.submit(frame=b"not JSON")

    await harness.settle(await harness.take(), Bury("undecodable", "expected an envelope in JSON"))

    assert await harness.broker.replies.read_reply(question()) == LAST_RESORT


async def recover(harness: BrokerHarness, *known: tuple[int, str]) -> None:
    async def look() -> bool:
        return await harness.broker.consumer.recover("manager", "w1", known)

    await wait_until(look)


async def test_an_entry_of_a_lost_response_is_available_to_the_next_consumer(
    harness: BrokerHarness,
) -> None:
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


async def test_a_recent_delivery_is_not_recovered(harness: BrokerHarness) -> None:
    await harness.submit()
    held = await harness.take()

    assert not await harness.broker.consumer.recover("manager", "w1", [])

    assert await harness.settle(held, finish())


async def test_recovery_does_not_affect_entries_of_other_consumers(harness: BrokerHarness) -> None:
    await harness.submit()
    held = await harness.take(consumer="w2")

    assert await harness.broker.consumer.recover("manager", "w1", [])

    assert await harness.settle(held, finish())


async def test_recovering_without_a_group_finds_nothing(harness: BrokerHarness) -> None:
    await harness.client.delete("rd:{0}:stream:manager")

    assert await harness.broker.consumer.recover("manager", "w1", [])
