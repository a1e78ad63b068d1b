"""A worker in the client's process gets what is submitted there in the same round trip."""

import pytest

from broker.values import Accepted, Duplicate
from envelope.memory_access import MemoryRead
from tests.support.broker_harness import BrokerHarness, finish, question
from tests.support.local_consumer import RecordingConsumer, submission


async def test_a_submission_is_delivered_to_a_worker_with_a_free_slot(
    harness: BrokerHarness,
) -> None:
    hands, sent = RecordingConsumer(), submission(result_list="chat")

    with harness.broker.producer.local_consumers([RecordingConsumer(role="search"), hands]):
        assert await harness.broker.producer.submit(sent) == Accepted()

    [delivery] = hands.held
    assert delivery.decoded is sent.decoded
    assert (delivery.whole(), delivery.question) == (sent.frame, sent.question)
    assert (delivery.count, delivery.starts, delivery.result_list) == (1, 1, "chat")
    assert 59 < delivery.remaining_seconds <= 60
    assert await harness.broker.consumer.renew([delivery]) == []
    assert await harness.settle(delivery, finish())


async def test_a_locally_delivered_entry_is_taken_over_like_any_other(
    harness: BrokerHarness,
) -> None:
    hands, sent = RecordingConsumer(), submission()
    with harness.broker.producer.local_consumers([hands]):
        await harness.broker.producer.submit(sent)

    again = await harness.reclaim()

    assert (again.starts, again.frame) == (2, sent.frame)
    assert not await harness.settle(hands.held[0], finish("late"))
    assert await harness.settle(again, finish())


@pytest.mark.parametrize(
    "hands", [RecordingConsumer(free_slots=0), RecordingConsumer(role="search")]
)
async def test_an_entry_waits_if_no_local_worker_has_a_free_slot(
    harness: BrokerHarness, hands: RecordingConsumer
) -> None:
    with harness.broker.producer.local_consumers([hands]):
        await harness.broker.producer.submit(submission())

    assert hands.held == []
    assert (await harness.take(consumer="w2")).question == question()


async def test_a_consumer_that_has_left_receives_no_entries(harness: BrokerHarness) -> None:
    hands = RecordingConsumer()
    with harness.broker.producer.local_consumers([hands]):
        pass

    await harness.broker.producer.submit(submission())

    assert hands.held == []


async def test_submissions_are_handled_in_their_order(harness: BrokerHarness) -> None:
    hands, first = RecordingConsumer(), question(conversation="c1")
    await harness.submit(first)

    with harness.broker.producer.local_consumers([hands]):
        await harness.broker.producer.submit(submission(question(conversation="c2")))

    [delivery] = hands.held
    assert (delivery.question, delivery.frame, delivery.decoded) == (first, b"frame", None)
    assert (await harness.take(consumer="w2")).question == question(conversation="c2")


async def test_waiting_messages_and_duplicates_are_not_delivered_locally(
    harness: BrokerHarness,
) -> None:
    hands = RecordingConsumer(free_slots=9)
    with harness.broker.producer.local_consumers([hands]):
        await harness.broker.producer.submit(submission(question("m1")))
        assert await harness.broker.producer.submit(submission(question("m2"))) == Accepted(
            waiting=1
        )
        assert await harness.broker.producer.submit(submission(question("m1"))) == Duplicate()
        await harness.broker.producer.submit(
            submission(question(conversation="c2"), not_before_seconds=60)
        )

    assert [delivery.question for delivery in hands.held] == [question("m1")]


async def test_a_group_that_is_gone_hands_nothing_over_and_loses_nothing(
    harness: BrokerHarness,
) -> None:
    hands = RecordingConsumer()
    await harness.client.delete("rd:{0}:stream:manager")

    with harness.broker.producer.local_consumers([hands]):
        assert await harness.broker.producer.submit(submission()) == Accepted()

    assert hands.held == []
    assert (await harness.take(consumer="w2")).question == question()


READ = MemoryRead("rd:{0}:mem:a/b/c:history", -2, -1, ("rd:{0}:mem:a/b/c:summary",))


async def test_prefetched_memory_is_read_in_the_same_round_trip(
    harness: BrokerHarness,
) -> None:
    hands = RecordingConsumer(reads=READ)
    await harness.client.rpush(READ.list, "one", "two", "three")
    await harness.client.hset(READ.hashes[0], "text", "so far")

    with harness.broker.producer.local_consumers([hands]):
        await harness.broker.producer.submit(submission())

    assert hands.held[0].prefetched == [[b"two", b"three"], 3, [b"text", b"so far"]]


async def test_a_failed_prefetch_does_not_stop_a_submission(harness: BrokerHarness) -> None:
    hands = RecordingConsumer(reads=READ)
    await harness.client.set(READ.list, "no list")

    with harness.broker.producer.local_consumers([hands]):
        await harness.broker.producer.submit(submission())

    assert hands.held[0].prefetched is None
    assert await harness.settle(hands.held[0], finish())
