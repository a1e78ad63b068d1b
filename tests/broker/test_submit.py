import pytest

from broker.keys import question_keys
from broker.port import Accepted, Busy, Duplicate
from tests.broker.rig import Rig, eventually, finish, forward, question


async def test_a_message_reaches_its_role_with_its_frame_and_remaining_time(rig: Rig) -> None:
    accepted = await rig.submit(frame=b"\x00\xff opaque", deadline_seconds=30)

    delivery = await rig.take()

    assert accepted == Accepted(waiting=0)
    assert delivery.frame == b"\x00\xff opaque"
    assert delivery.question == question()
    assert delivery.count == 1
    assert 25 < delivery.remaining_seconds <= 30


@pytest.mark.parametrize(
    ("conversation", "message"),
    [("a:b/c", "d"), ("a", "b/c:d"), ("{0}", "}{"), ("ümläut 你好", "\x00\n*"), ("%2F", "/")],
)
async def test_ids_may_hold_any_character(rig: Rig, conversation: str, message: str) -> None:
    asked = question(message, conversation=conversation)
    await rig.submit(asked)

    delivery = await rig.take()
    await rig.settle(delivery, finish("yes"))

    assert delivery.question == asked
    assert await rig.broker.reply(asked) == {"outcome": "answered", "text": "yes"}


async def test_ids_that_look_alike_when_joined_stay_apart(rig: Rig) -> None:
    await rig.submit(question("c", conversation="a/b"))
    await rig.submit(question("b/c", conversation="a"))

    assert len(await rig.take_all()) == 2


async def test_a_duplicate_is_told_and_not_worked_on_again(rig: Rig) -> None:
    await rig.submit()

    assert await rig.submit(frame=b"again") == Duplicate(None)
    assert len(await rig.take_all()) == 1


async def test_a_duplicate_of_an_answered_message_gets_its_reply(rig: Rig) -> None:
    await rig.submit()
    await rig.settle(await rig.take(), finish("the answer"))

    assert await rig.submit() == Duplicate({"outcome": "answered", "text": "the answer"})


async def test_the_same_message_id_in_another_conversation_is_no_duplicate(rig: Rig) -> None:
    await rig.submit(question("m1", conversation="c1"))

    assert await rig.submit(question("m1", conversation="c2")) == Accepted()
    assert await rig.submit(question("m1", tenant="other")) == Accepted()


async def test_a_message_waits_until_the_one_before_has_its_outcome(rig: Rig) -> None:
    await rig.submit(question("m1"))
    assert await rig.submit(question("m2")) == Accepted(waiting=1)
    assert await rig.submit(question("m3")) == Accepted(waiting=2)
    order = []

    for _ in range(3):
        delivery = await rig.take()
        order.append(delivery.question.message_id)
        await rig.settle(delivery, forward())
        assert await rig.take_all() == []
        await rig.settle(await rig.take("search"), finish())

    assert order == ["m1", "m2", "m3"]


async def test_conversations_do_not_wait_for_each_other(rig: Rig) -> None:
    await rig.submit(question(conversation="c1"))
    await rig.submit(question(conversation="c2"))

    assert len(await rig.take_all()) == 2


async def test_a_conversation_may_keep_only_so_many_waiting(rig: Rig) -> None:
    rig.broker = rig.make(longest_queue=2)
    for number in range(3):
        assert isinstance(await rig.submit(question(f"m{number}")), Accepted)

    assert await rig.submit(question("m9")) == Busy(2.0, "conversation_full")


async def test_a_full_shard_refuses_and_takes_again_when_one_is_done(rig: Rig) -> None:
    rig.broker = rig.make(quota=2)
    await rig.submit(question(conversation="c1", tenant="a"))
    await rig.submit(question(conversation="c2", tenant="b"))
    third = question(conversation="c3", tenant="c")

    refused = await rig.submit(third)
    first, _ = await rig.take_all()
    await rig.settle(first, finish())
    accepted = await rig.submit(third)

    assert refused == Busy(2.0, "shard_full")
    assert accepted == Accepted()


async def test_a_tenant_beside_another_gets_half_of_the_shard(rig: Rig) -> None:
    rig.broker = rig.make(quota=8)
    await rig.submit(question(conversation="c", tenant="quiet"))

    noisy = [
        await rig.submit(question(conversation=f"c{number}", tenant="noisy")) for number in range(6)
    ]

    assert noisy == [Accepted()] * 4 + [Busy(2.0, "tenant_share")] * 2


async def test_a_message_that_may_start_later_starts_later(rig: Rig) -> None:
    await rig.submit(not_before_seconds=0.05)
    at_once = await rig.take_all()

    async def started() -> object:
        await rig.broker.due()
        return await rig.take_all()

    (delivery,) = await eventually(started)

    assert at_once == []
    assert delivery.frame == b"frame"


async def test_a_message_merges_into_one_that_has_not_started(rig: Rig) -> None:
    first, second = question("é/m1"), question("m2")
    await rig.submit(first, frame=b"where is", not_before_seconds=0.05)
    merged = await rig.submit(second, frame=b"the library?", not_before_seconds=0.05)

    async def started() -> object:
        await rig.broker.due()
        return await rig.take_all()

    (delivery,) = await eventually(started)
    await rig.settle(delivery, finish())

    assert merged == Accepted(merged_into="é/m1")
    assert (delivery.frame, delivery.merged) == (b"where is", (b"the library?",))
    reply = await rig.broker.reply(second)
    assert reply is not None
    assert reply["outcome"] == "superseded"
    assert reply["message_id"] == "m2"
    assert reply["merged_into"] == "é/m1"
    assert await rig.take_all() == []


async def test_no_more_messages_join_one_than_a_script_can_start_at_once(rig: Rig) -> None:
    await rig.submit(question("first"), not_before_seconds=0.5)
    joined = [
        await rig.submit(question(f"m{number}"), frame=b"more", not_before_seconds=0.05)
        for number in range(101)
    ]

    async def started() -> object:
        await rig.broker.due()
        return await rig.take_all()

    (delivery,) = await eventually(started)

    assert joined[:100] == [Accepted(merged_into="first")] * 100
    assert isinstance(joined[100], Busy)
    assert joined[100].reason == "conversation_full"
    assert len(delivery.merged) == 100
    assert await rig.broker.reply(question("m100")) is None


async def test_a_message_does_not_merge_into_one_that_has_started(rig: Rig) -> None:
    await rig.submit(question("m1"))

    assert await rig.submit(question("m2"), not_before_seconds=0.05) == Accepted(waiting=1)


async def test_a_question_leaves_no_key_without_a_time_to_live(rig: Rig) -> None:
    await rig.submit(result_list="chat")
    await rig.submit(question("m2"))
    for _ in range(2):
        await rig.settle(await rig.take(), finish())

    kept = [key for key in await rig.client.keys("*") if await rig.client.pttl(key) < 0]

    assert sorted(kept) == [b"rd:shards", b"rd:{0}:stream:manager", b"rd:{0}:stream:search"]
    assert await rig.client.xlen("rd:{0}:stream:manager") == 0
    assert await rig.client.exists(question_keys(question(), 0).order) == 0
