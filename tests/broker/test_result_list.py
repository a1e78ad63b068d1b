from typing import Any

from tests.support.broker_harness import BrokerHarness, finish, question
from tests.support.waiting import wait_until


async def answer_question(harness: BrokerHarness, *conversations: str) -> None:
    for conversation in conversations:
        await harness.submit(question(conversation=conversation), result_list="chat")
    for delivery in await harness.take_all():
        await harness.settle(delivery, finish(delivery.question.conversation_id))


async def test_a_channel_gets_each_final_reply_of_its_list_until_it_is_delivered(
    harness: BrokerHarness,
) -> None:
    await answer_question(harness, "c1", "c2")
    chat = harness.make(lease_seconds=60).result_list("chat", "w1")

    results = await chat.take(slots=10, block_seconds=0.0)
    await chat.mark_delivered(results)
    await chat.mark_delivered(results)

    assert [result.reply["text"] for result in results] == ["c1", "c2"]
    assert {(result.outcome, result.count) for result in results} == {("answered", 1)}
    assert results[0].question == question(conversation="c1")
    assert await chat.take(slots=10, block_seconds=0.0) == []
    assert await harness.results() == []


async def test_two_consumers_of_a_list_get_different_replies(harness: BrokerHarness) -> None:
    await answer_question(harness, "c1", "c2")
    broker = harness.make(lease_seconds=60)

    taken = [
        await broker.result_list("chat", name).take(slots=1, block_seconds=0.0)
        for name in ("w1", "w2")
    ]

    assert [result.question.conversation_id for (result,) in taken] == ["c1", "c2"]


async def test_a_reply_that_a_dead_channel_left_is_delivered_by_another(
    harness: BrokerHarness,
) -> None:
    await answer_question(harness, "c1")
    (lost,) = await harness.broker.result_list("chat", "w1").take(slots=1, block_seconds=0.0)
    other = harness.broker.result_list("chat", "w2")

    async def again() -> Any:
        return await other.take(slots=1, block_seconds=0.0)

    (result,) = await wait_until(again)

    assert (result.entry_id, result.count) == (lost.entry_id, 2)


async def test_an_idle_list_waits_and_one_of_another_name_is_apart(harness: BrokerHarness) -> None:
    await answer_question(harness, "c1")

    mail = harness.broker.result_list("mail", "w1")

    assert await mail.take(slots=1, block_seconds=0.01) == []


async def test_a_list_is_read_over_all_shards(harness: BrokerHarness) -> None:
    await harness.client.flushall()
    harness.broker = harness.make(shards=3, lease_seconds=60)
    await harness.broker.prepare(["manager"])
    names = {f"c{number}" for number in range(9)}
    for name in names:
        await answer_question(harness, name)
    seen: set[str] = set()
    chat = harness.broker.result_list("chat", "w1")

    async def all_seen() -> bool:
        results = await chat.take(slots=9, block_seconds=0.0)
        seen.update(result.question.conversation_id for result in results)
        await chat.mark_delivered(results)
        return seen == names

    assert await wait_until(all_seen)


async def test_a_reply_that_is_renewed_counts_as_fresh_and_one_that_was_lost_stays_lost(
    harness: BrokerHarness,
) -> None:
    await answer_question(harness, "c1", "c2")
    chat = harness.make(lease_seconds=60).result_list("chat", "w1")
    held = await chat.take(slots=10, block_seconds=0.0)
    stream = "rd:{0}:results:chat"

    async def pending() -> dict[str, Any]:
        entries = await harness.client.xpending_range(stream, "workers", "-", "+", 10)
        return {entry["message_id"].decode(): entry for entry in entries}

    async def is_old() -> bool:
        return all(entry["time_since_delivered"] >= 200 for entry in (await pending()).values())

    await harness.client.xclaim(stream, "workers", "w2", 0, [held[1].entry_id])
    await wait_until(is_old)

    await chat.renew(held)

    kept, lost = [(await pending())[result.entry_id] for result in held]
    assert (kept["consumer"], kept["times_delivered"]) == (b"w1", 1)
    assert kept["time_since_delivered"] < lost["time_since_delivered"]
    assert lost["consumer"] == b"w2"
