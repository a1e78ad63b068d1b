import pytest

from broker.keys import question_keys
from broker.values import Accepted, Busy, Duplicate
from tests.support.broker_harness import BrokerHarness, finish, forward, question
from tests.support.waiting import wait_until


async def test_a_message_reaches_its_role_with_its_frame_and_remaining_time(
    harness: BrokerHarness,
) -> None:
    accepted = await harness.submit(frame=b"\x00\xff opaque", deadline_seconds=30)

    delivery = await harness.take()

    assert accepted == Accepted(waiting=0)
    assert delivery.frame == b"\x00\xff opaque"
    assert delivery.question == question()
    assert delivery.count == 1
    assert 25 < delivery.remaining_seconds <= 30


@pytest.mark.parametrize(
    ("conversation", "message"),
    [("a:b/c", "d"), ("a", "b/c:d"), ("{0}", "}{"), ("ümläut 你好", "\x00\n*"), ("%2F", "/")],
)
async def test_ids_may_hold_any_character(
    harness: BrokerHarness, conversation: str, message: str
) -> None:
    asked = question(message, conversation=conversation)
    await harness.submit(asked)

    delivery = await harness.take()
    await harness.settle(delivery, finish("yes"))

    assert delivery.question == asked
    assert await harness.broker.replies.read_reply(asked) == {"outcome": "answered", "text": "yes"}


async def test_ids_that_look_alike_when_joined_stay_apart(harness: BrokerHarness) -> None:
    await harness.submit(question("c", conversation="a/b"))
    await harness.submit(question("b/c", conversation="a"))

    assert len(await harness.take_all()) == 2


async def test_a_duplicate_is_reported_and_not_worked_on_again(harness: BrokerHarness) -> None:
    await harness.submit()

    assert await harness.submit(frame=b"again") == Duplicate(None)
    assert len(await harness.take_all()) == 1


async def test_a_duplicate_of_an_answered_message_gets_its_reply(harness: BrokerHarness) -> None:
    await harness.submit()
    await harness.settle(await harness.take(), finish("the answer"))

    assert await harness.submit() == Duplicate({"outcome": "answered", "text": "the answer"})


async def test_the_same_message_id_in_another_conversation_is_not_a_duplicate(
    harness: BrokerHarness,
) -> None:
    await harness.submit(question("m1", conversation="c1"))

    assert await harness.submit(question("m1", conversation="c2")) == Accepted()
    assert await harness.submit(question("m1", tenant="other")) == Accepted()


async def test_a_message_waits_until_the_one_before_has_its_outcome(harness: BrokerHarness) -> None:
    await harness.submit(question("m1"))
    assert await harness.submit(question("m2")) == Accepted(waiting=1)
    assert await harness.submit(question("m3")) == Accepted(waiting=2)
    order = []

    for _ in range(3):
        delivery = await harness.take()
        order.append(delivery.question.message_id)
        await harness.settle(delivery, forward())
        assert await harness.take_all() == []
        await harness.settle(await harness.take("search"), finish())

    assert order == ["m1", "m2", "m3"]


async def test_conversations_do_not_wait_for_each_other(harness: BrokerHarness) -> None:
    await harness.submit(question(conversation="c1"))
    await harness.submit(question(conversation="c2"))

    assert len(await harness.take_all()) == 2


async def test_a_conversation_may_keep_only_so_many_waiting(harness: BrokerHarness) -> None:
    harness.broker = harness.make(longest_queue=2)
    for number in range(3):
        assert isinstance(await harness.submit(question(f"m{number}")), Accepted)

    assert await harness.submit(question("m9")) == Busy(2.0, "conversation_full")


async def test_a_full_shard_refuses_and_takes_again_when_one_is_done(
    harness: BrokerHarness,
) -> None:
    harness.broker = harness.make(quota=2)
    await harness.submit(question(conversation="c1", tenant="a"))
    await harness.submit(question(conversation="c2", tenant="b"))
    third = question(conversation="c3", tenant="c")

    refused = await harness.submit(third)
    first, _ = await harness.take_all()
    await harness.settle(first, finish())
    accepted = await harness.submit(third)

    assert refused == Busy(2.0, "shard_full")
    assert accepted == Accepted()


async def test_a_tenant_beside_another_gets_half_of_the_shard(harness: BrokerHarness) -> None:
    harness.broker = harness.make(quota=8)
    await harness.submit(question(conversation="c", tenant="quiet"))

    noisy = [
        await harness.submit(question(conversation=f"c{number}", tenant="noisy"))
        for number in range(6)
    ]

    assert noisy == [Accepted()] * 4 + [Busy(2.0, "tenant_share")] * 2


async def test_a_message_that_may_start_later_starts_later(harness: BrokerHarness) -> None:
    await harness.submit(not_before_seconds=0.05)
    at_once = await harness.take_all()

    async def find_started() -> object:
        await harness.broker.maintenance.scheduler.send_due()
        return await harness.take_all()

    (delivery,) = await wait_until(find_started)

    assert at_once == []
    assert delivery.frame == b"frame"


async def test_a_message_merges_into_one_that_has_not_started(harness: BrokerHarness) -> None:
    first, second = question("é/m1"), question("m2")
    await harness.submit(first, frame=b"where is", not_before_seconds=0.05)
    merged = await harness.submit(second, frame=b"the library?", not_before_seconds=0.05)

    async def find_started() -> object:
        await harness.broker.maintenance.scheduler.send_due()
        return await harness.take_all()

    (delivery,) = await wait_until(find_started)
    await harness.settle(delivery, finish())

    assert merged == Accepted(merged_into="é/m1")
    assert (delivery.frame, delivery.merged) == (b"where is", (b"the library?",))
    reply = await harness.broker.replies.read_reply(second)
    assert reply is not None
    assert reply["outcome"] == "superseded"
    assert reply["message_id"] == "m2"
    assert reply["merged_into"] == "é/m1"
    assert await harness.take_all() == []


async def test_no_more_messages_join_one_than_a_script_can_start_at_once(
    harness: BrokerHarness,
) -> None:
    await harness.submit(question("first"), not_before_seconds=0.5)
    joined = [
        await harness.submit(question(f"m{number}"), frame=b"more", not_before_seconds=0.05)
        for number in range(101)
    ]

    async def find_started() -> object:
        await harness.broker.maintenance.scheduler.send_due()
        return await harness.take_all()

    (delivery,) = await wait_until(find_started)

    assert joined[:100] == [Accepted(merged_into="first")] * 100
    assert isinstance(joined[100], Busy)
    assert joined[100].reason == "conversation_full"
    assert len(delivery.merged) == 100
    assert await harness.broker.replies.read_reply(question("m100")) is None


async def test_a_message_does_not_merge_into_one_that_has_started(harness: BrokerHarness) -> None:
    await harness.submit(question("m1"))

    assert await harness.submit(question("m2"), not_before_seconds=0.05) == Accepted(waiting=1)


async def test_a_question_leaves_no_key_without_a_time_to_live(harness: BrokerHarness) -> None:
    await harness.submit(result_list="chat")
    await harness.submit(question("m2"))
    for _ in range(2):
        await harness.settle(await harness.take(), finish())

    kept = [key for key in await harness.client.keys("*") if await harness.client.pttl(key) < 0]

    assert sorted(kept) == [b"rd:shards", b"rd:{0}:stream:manager", b"rd:{0}:stream:search"]
    assert await harness.client.xlen("rd:{0}:stream:manager") == 0
    assert await harness.client.exists(question_keys(question(), 0).order) == 0
