"""A worker in the process of the door gets what is submitted there in the same round trip."""

import pytest

from broker.port import Accepted, Duplicate
from envelope.memory_read import MemoryRead
from tests.broker.hands import Hands, submission
from tests.broker.rig import Rig, finish, question


async def test_what_is_submitted_is_handed_to_a_worker_with_room(rig: Rig) -> None:
    hands, sent = Hands(), submission(result_list="chat")

    with rig.broker.handing_to([Hands(role="search"), hands]):
        assert await rig.broker.submit(sent) == Accepted()

    [delivery] = hands.held
    assert delivery.carried is sent.carried
    assert (delivery.whole(), delivery.question) == (sent.frame, sent.question)
    assert (delivery.count, delivery.starts, delivery.result_list) == (1, 1, "chat")
    assert 59 < delivery.remaining_seconds <= 60
    assert await rig.broker.renew([delivery]) == []
    assert await rig.settle(delivery, finish())


async def test_what_was_handed_over_is_taken_over_like_any_other(rig: Rig) -> None:
    hands, sent = Hands(), submission()
    with rig.broker.handing_to([hands]):
        await rig.broker.submit(sent)

    again = await rig.reclaimed()

    assert (again.starts, again.frame) == (2, sent.frame)
    assert not await rig.settle(hands.held[0], finish("late"))
    assert await rig.settle(again, finish())


@pytest.mark.parametrize("hands", [Hands(room=0), Hands(role="search")])
async def test_where_nobody_has_room_it_waits_for_others(rig: Rig, hands: Hands) -> None:
    with rig.broker.handing_to([hands]):
        await rig.broker.submit(submission())

    assert hands.held == []
    assert (await rig.take(consumer="w2")).question == question()


async def test_nobody_is_handed_anything_once_he_has_gone(rig: Rig) -> None:
    hands = Hands()
    with rig.broker.handing_to([hands]):
        pass

    await rig.broker.submit(submission())

    assert hands.held == []


async def test_who_came_first_goes_first(rig: Rig) -> None:
    hands, first = Hands(), question(conversation="c1")
    await rig.submit(first)

    with rig.broker.handing_to([hands]):
        await rig.broker.submit(submission(question(conversation="c2")))

    [delivery] = hands.held
    assert (delivery.question, delivery.frame, delivery.carried) == (first, b"frame", None)
    assert (await rig.take(consumer="w2")).question == question(conversation="c2")


async def test_what_waits_behind_another_or_is_known_is_not_handed_over(rig: Rig) -> None:
    hands = Hands(room=9)
    with rig.broker.handing_to([hands]):
        await rig.broker.submit(submission(question("m1")))
        assert await rig.broker.submit(submission(question("m2"))) == Accepted(waiting=1)
        assert await rig.broker.submit(submission(question("m1"))) == Duplicate()
        await rig.broker.submit(submission(question(conversation="c2"), not_before_seconds=60))

    assert [delivery.question for delivery in hands.held] == [question("m1")]


async def test_a_group_that_is_gone_hands_nothing_over_and_loses_nothing(rig: Rig) -> None:
    hands = Hands()
    await rig.client.delete("rd:{0}:stream:manager")

    with rig.broker.handing_to([hands]):
        assert await rig.broker.submit(submission()) == Accepted()

    assert hands.held == []
    assert (await rig.take(consumer="w2")).question == question()


READ = MemoryRead("rd:{0}:mem:a/b/c:history", -2, -1, ("rd:{0}:mem:a/b/c:summary",))


async def test_what_its_handler_wants_to_know_is_read_in_the_same_trip(rig: Rig) -> None:
    hands = Hands(reads=READ)
    await rig.client.rpush(READ.list, "one", "two", "three")
    await rig.client.hset(READ.hashes[0], "text", "so far")

    with rig.broker.handing_to([hands]):
        await rig.broker.submit(submission())

    assert hands.held[0].along == [[b"two", b"three"], 3, [b"text", b"so far"]]


async def test_what_cannot_be_read_along_stops_no_submission(rig: Rig) -> None:
    hands = Hands(reads=READ)
    await rig.client.set(READ.list, "no list")

    with rig.broker.handing_to([hands]):
        await rig.broker.submit(submission())

    assert hands.held[0].along is None
    assert await rig.settle(hands.held[0], finish())
