import asyncio

import pytest

from broker.keys import named_key, question_keys
from broker.port import Bury, Finish, JournalEntry
from broker.views import FOLLOWERS
from envelope.outcome import Outcome
from tests.broker.rig import Rig, eventually, finish, forward, question


async def test_the_journal_is_read_from_where_one_stopped(rig: Rig) -> None:
    await rig.submit()
    first = await rig.broker.journal(question())
    await rig.settle(await rig.take(), forward())

    later = await rig.broker.journal(question(), after=first[-1].id)

    assert [entry.kind for entry in first] == ["accepted"]
    assert [(entry.kind, entry.fields) for entry in later] == [("routed", {"to": "search"})]
    assert later[0].at >= first[0].at > 1_600_000_000


async def test_the_journal_keeps_json_of_any_shape(rig: Rig) -> None:
    await rig.submit()
    fields = {"text": "ü \x00 你好", "list": [1, 2.5, None, {"deep": True}], "empty": {}}
    entry = JournalEntry("wrote", fields)  # type: ignore[arg-type] # invariance of dict

    finished = Finish(Outcome.REFUSED, {"outcome": "refused", "text": "no"}, journal=(entry,))
    await rig.settle(await rig.take(), finished)

    assert (await rig.broker.journal(question()))[1].fields == fields


async def test_a_follower_wakes_when_something_happens(rig: Rig) -> None:
    await rig.submit()
    (accepted,) = await rig.broker.journal(question())
    delivery = await rig.take()

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        following = tasks.create_task(
            rig.broker.journal(question(), after=accepted.id, block_seconds=5)
        )
        await rig.client.ping()
        await rig.settle(delivery, finish())

    assert [entry.kind for entry in following.result()] == ["finished"]


async def test_a_follower_of_a_quiet_question_returns_in_time(rig: Rig) -> None:
    assert await rig.broker.journal(question(), block_seconds=0.02) == []


async def test_there_is_no_reply_before_the_outcome(rig: Rig) -> None:
    assert await rig.broker.reply(question()) is None

    await rig.submit()
    await rig.settle(await rig.take(), forward())

    assert await rig.broker.reply(question()) is None


async def next_millisecond(rig: Rig) -> None:
    async def now() -> int:
        seconds, microseconds = await rig.client.time()
        return int(seconds) * 1000 + int(microseconds) // 1000

    before = await now()

    async def later() -> bool:
        return await now() > before

    await eventually(later)


@pytest.mark.parametrize("shards", [1, 3])
async def test_questions_are_found_by_their_message_id_newest_first(rig: Rig, shards: int) -> None:
    await rig.client.flushall()
    rig.broker = rig.make(shards=shards)
    await rig.broker.prepare(["manager"])
    asked = [question("m:1", conversation=f"c{number}") for number in range(3)]
    for each in asked:
        await rig.submit(each)
        await next_millisecond(rig)

    found = await rig.broker.find("m:1")

    assert found == asked[::-1]
    assert await rig.broker.find("m:2") == []


async def test_an_id_that_every_conversation_uses_is_kept_for_the_newest_alone(rig: Rig) -> None:
    named = named_key("m1", 0)
    await rig.client.zadd(named, {f"acme/desk/old{number}/m1": number for number in range(1000)})

    await rig.submit()

    assert await rig.client.zcard(named) == 1000
    assert (await rig.broker.find("m1"))[0] == question()


async def test_the_status_tells_what_waits_and_what_runs(rig: Rig) -> None:
    for number in range(3):
        await rig.submit(question(conversation=f"c{number}"))
    await rig.broker.take("manager", "w1", places=1, block_seconds=0.0)

    manager, unknown = await rig.broker.status(["manager", "nobody"])

    assert (manager.depth, manager.in_flight, manager.consumers) == (3, 1, 1)
    assert 0 <= manager.oldest_seconds < 60
    assert (unknown.depth, unknown.in_flight, unknown.oldest_seconds) == (0, 0, 0)


async def test_a_dead_letter_is_shown_and_dropped_by_its_id(rig: Rig) -> None:
    await rig.submit()
    await rig.settle(await rig.take(), Bury("failed", "no"))
    (letter,) = await rig.broker.dead_letters()
    (status,) = await rig.broker.status(["manager"])

    found = await rig.broker.dead_letter(letter.id)
    dropped = [await rig.broker.drop_dead_letter(letter.id) for _ in range(2)]

    assert status.dead == 1
    assert found == letter
    assert dropped == [True, False]
    assert await rig.broker.dead_letters() == []


@pytest.mark.parametrize("name", ["", "0", "0-1", "x-1-1", "0-1-x", "9-1-1", "0-1-1-1"])
async def test_a_dead_letter_of_a_wrong_id_is_none(rig: Rig, name: str) -> None:
    assert await rig.broker.dead_letter(name) is None
    assert not await rig.broker.drop_dead_letter(name)


@pytest.mark.slow
async def test_more_followers_than_connections_all_see_the_end(rig: Rig) -> None:
    await rig.submit()
    (accepted,) = await rig.broker.journal(question())
    delivery = await rig.take()

    async def followed() -> str:
        while True:
            for entry in await rig.broker.journal(question(), after=accepted.id, block_seconds=5):
                return entry.kind

    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        following = [tasks.create_task(followed()) for _ in range(FOLLOWERS + 20)]
        await rig.client.ping()
        await rig.settle(delivery, finish())

    assert {task.result() for task in following} == {"finished"}


async def test_a_short_message_does_not_shorten_what_its_conversation_keeps(rig: Rig) -> None:
    order = question_keys(question(), 0).order
    await rig.submit(question("m1"), deadline_seconds=600)
    before = await rig.client.pttl(order)

    await rig.submit(question("m2"), deadline_seconds=5)

    assert before - 10_000 < await rig.client.pttl(order) <= before
