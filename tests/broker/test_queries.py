import asyncio

import pytest

from broker.journal_reader import FOLLOWERS
from broker.keys import message_id_key, question_keys
from broker.values import Bury, Finish, JournalEntry
from envelope.outcome import Outcome
from tests.support.broker_harness import BrokerHarness, finish, forward, question
from tests.support.waiting import wait_until, within


async def test_the_journal_is_read_from_where_one_stopped(harness: BrokerHarness) -> None:
    await harness.submit()
    first = await harness.broker.replies.read_journal(question())
    await harness.settle(await harness.take(), forward())

    later = await harness.broker.replies.read_journal(question(), after=first[-1].id)

    assert [entry.kind for entry in first] == ["accepted"]
    assert [(entry.kind, entry.fields) for entry in later] == [("routed", {"target": "search"})]
    assert later[0].at >= first[0].at > 1_600_000_000


async def test_the_journal_keeps_json_of_any_shape(harness: BrokerHarness) -> None:
    await harness.submit()
    fields = {"text": "ü \x00 你好", "list": [1, 2.5, None, {"deep": True}], "empty": {}}
    entry = JournalEntry("agent_run", fields)  # type: ignore[arg-type] # invariance of dict

    finished = Finish(Outcome.REFUSED, {"outcome": "refused", "text": "no"}, journal=(entry,))
    await harness.settle(await harness.take(), finished)

    assert (await harness.broker.replies.read_journal(question()))[1].fields == fields


async def test_a_follower_wakes_when_something_happens(harness: BrokerHarness) -> None:
    await harness.submit()
    (accepted,) = await harness.broker.replies.read_journal(question())
    delivery = await harness.take()

    async with within(), asyncio.TaskGroup() as tasks:
        following = tasks.create_task(
            harness.broker.replies.read_journal(question(), after=accepted.id, block_seconds=5)
        )
        await harness.client.ping()
        await harness.settle(delivery, finish())

    assert [entry.kind for entry in following.result()] == ["finished"]


async def test_a_follower_of_a_quiet_question_returns_in_time(harness: BrokerHarness) -> None:
    assert await harness.broker.replies.read_journal(question(), block_seconds=0.02) == []


async def test_there_is_no_reply_before_the_outcome(harness: BrokerHarness) -> None:
    assert await harness.broker.replies.read_reply(question()) is None

    await harness.submit()
    await harness.settle(await harness.take(), forward())

    assert await harness.broker.replies.read_reply(question()) is None


async def next_millisecond(harness: BrokerHarness) -> None:
    async def now() -> int:
        seconds, microseconds = await harness.client.time()
        return int(seconds) * 1000 + int(microseconds) // 1000

    before = await now()

    async def later() -> bool:
        return await now() > before

    await wait_until(later)


@pytest.mark.parametrize("shards", [1, 3])
async def test_questions_are_found_by_their_message_id_newest_first(
    harness: BrokerHarness, shards: int
) -> None:
    await harness.client.flushall()
    harness.broker = harness.make(shards=shards)
    await harness.broker.prepare(["manager"])
    asked = [question("m:1", conversation=f"c{number}") for number in range(3)]
    for message in asked:
        await harness.submit(message)
        await next_millisecond(harness)

    questions = await harness.broker.admin.find_questions("m:1")

    assert questions == asked[::-1]
    assert await harness.broker.admin.find_questions("m:2") == []


async def test_an_id_that_every_conversation_uses_is_kept_for_the_newest_alone(
    harness: BrokerHarness,
) -> None:
    named = message_id_key("m1", 0)
    await harness.client.zadd(
        named, {f"acme/desk/old{number}/m1": number for number in range(1000)}
    )

    await harness.submit()

    assert await harness.client.zcard(named) == 1000
    assert (await harness.broker.admin.find_questions("m1"))[0] == question()


async def test_the_status_shows_waiting_and_running_entries(harness: BrokerHarness) -> None:
    for number in range(3):
        await harness.submit(question(conversation=f"c{number}"))
    await harness.broker.consumer.take("manager", "w1", slots=1, block_seconds=0.0)

    manager, unknown = await harness.broker.admin.read_status(["manager", "nobody"])

    assert (manager.depth, manager.in_flight, manager.consumers) == (3, 1, 1)
    assert 0 <= manager.oldest_seconds < 60
    assert (unknown.depth, unknown.in_flight, unknown.oldest_seconds) == (0, 0, 0)


async def test_a_dead_letter_is_shown_and_dropped_by_its_id(harness: BrokerHarness) -> None:
    await harness.submit()
    await harness.settle(await harness.take(), Bury("failed", "no"))
    (letter,) = await harness.broker.admin.list_dead_letters()
    (status,) = await harness.broker.admin.read_status(["manager"])

    shown = await harness.broker.admin.read_dead_letter(letter.id)
    dropped = [await harness.broker.admin.drop_dead_letter(letter.id) for _ in range(2)]

    assert status.dead == 1
    assert shown == letter
    assert dropped == [True, False]
    assert await harness.broker.admin.list_dead_letters() == []


@pytest.mark.parametrize("name", ["", "0", "0-1", "x-1-1", "0-1-x", "9-1-1", "0-1-1-1"])
async def test_a_dead_letter_of_a_wrong_id_is_none(harness: BrokerHarness, name: str) -> None:
    assert await harness.broker.admin.read_dead_letter(name) is None
    assert not await harness.broker.admin.drop_dead_letter(name)


@pytest.mark.slow
async def test_more_followers_than_connections_all_see_the_end(harness: BrokerHarness) -> None:
    await harness.submit()
    (accepted,) = await harness.broker.replies.read_journal(question())
    delivery = await harness.take()

    async def follow_message() -> str:
        while True:
            for entry in await harness.broker.replies.read_journal(
                question(), after=accepted.id, block_seconds=5
            ):
                return entry.kind

    async with within(), asyncio.TaskGroup() as tasks:
        following = [tasks.create_task(follow_message()) for _ in range(FOLLOWERS + 20)]
        await harness.client.ping()
        await harness.settle(delivery, finish())

    assert {task.result() for task in following} == {"finished"}


async def test_a_short_message_does_not_shorten_what_its_conversation_keeps(
    harness: BrokerHarness,
) -> None:
    order = question_keys(question(), 0).order
    await harness.submit(question("m1"), deadline_seconds=600)
    before = await harness.client.pttl(order)

    await harness.submit(question("m2"), deadline_seconds=5)

    assert before - 10_000 < await harness.client.pttl(order) <= before
