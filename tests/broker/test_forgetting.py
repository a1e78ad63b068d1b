"""What the broker forgets of a conversation, and what dies of itself."""

import asyncio
from typing import Any

import pytest

from broker.erasure import Erased
from broker.keys import question_keys, shard_keys
from broker.port import Bury, Retry, Send, Submission
from broker.redis_broker import RedisBroker
from broker.rewriting import Rewriting
from tests.broker.rig import LAST_RESORT, Rig, eventually, finish, forward, question

WORD = b"canary-of-words"
DAY = 86_400.0


async def words_left(rig: Rig) -> list[bytes]:
    """Return the keys in which the word stands."""
    reads: dict[bytes, Any] = {
        b"string": rig.client.get,
        b"hash": rig.client.hgetall,
        b"list": lambda key: rig.client.lrange(key, 0, -1),
        b"stream": rig.client.xrange,
        b"zset": lambda key: rig.client.zrange(key, 0, -1),
    }
    return [
        key
        for key in await rig.client.keys("*")
        if WORD in repr(await reads[await rig.client.type(key)](key)).encode()
    ]


async def buried(rig: Rig, message: str = "m1", *, tell: bool = False) -> None:
    asked = question(message)
    await rig.submit(asked, frame=WORD)
    told = Send("search", b"told") if tell else None
    await rig.settle(await rig.take(), Bury("failed", f"of {WORD.decode()}", told))


async def test_a_dead_letter_is_found_without_the_record_that_led_to_it(rig: Rig) -> None:
    await buried(rig)
    await rig.client.delete(question_keys(question(), 0).record)
    await rig.client.delete(question_keys(question(), 0).journal)
    assert await words_left(rig) == [b"rd:{0}:letters"]

    erased = await rig.broker.forget(question("-"))

    assert erased == Erased(dead_letters=1)
    assert await words_left(rig) == []
    assert await rig.broker.dead_letters() == []


async def test_a_dead_letter_of_another_conversation_stays(rig: Rig) -> None:
    await buried(rig)
    await rig.submit(question(conversation="c1x"), frame=WORD)
    await rig.settle(await rig.take(), Bury("failed", "no"))

    await rig.broker.forget(question("-"))

    (letter,) = await rig.broker.dead_letters()
    assert letter.question == question(conversation="c1x")
    assert letter.frame == WORD


async def test_no_more_dead_letters_are_kept_than_there_may_be(rig: Rig) -> None:
    rig.broker = rig.make(dead_letters=3)
    for number in range(5):
        await buried(rig, f"m{number}")

    letters = await rig.broker.dead_letters()

    assert [letter.question.message_id for letter in letters if letter.question] == [
        "m4", "m3", "m2",
    ]  # fmt: skip
    assert await rig.client.hlen("rd:{0}:letters") == 6


async def test_dead_letters_die_where_nobody_works(rig: Rig) -> None:
    await buried(rig)

    keys = shard_keys(0)
    for key in (keys.dead, keys.letters):
        assert 6.9 * DAY < await rig.client.ttl(key) <= 7 * DAY


async def test_old_dead_letters_are_dropped_by_whoever_sweeps_and_new_ones_stay(rig: Rig) -> None:
    broker = rig.make(dead_letter_ttl_seconds=DAY, dead_letter_ttls={("acme", "desk"): 0.01})
    await broker.sweep()
    await rig.submit(question(tenant="other"), frame=WORD)
    await rig.settle(await rig.take(), Bury("failed", "no"))
    await buried(rig)

    async def dropped() -> bool:
        await broker.tidy()
        return len(await broker.dead_letters()) == 1

    await eventually(dropped)

    (letter,) = await broker.dead_letters()
    assert letter.question == question(tenant="other")
    assert await rig.client.hlen("rd:{0}:letters") == 2


async def test_what_is_under_way_is_ended_and_nothing_of_it_travels_on(rig: Rig) -> None:
    await rig.submit(question("m1"), frame=WORD)
    held = await rig.take()
    await rig.submit(question("m2"), frame=WORD)

    erased = await rig.broker.forget(question("-"))

    assert (erased.messages, erased.ended, erased.entries) == (2, 2, 1)
    assert await words_left(rig) == []
    assert not await rig.settle(held, forward(WORD))
    assert not await rig.settle(held, Bury("failed", WORD.decode()))
    assert await rig.take_all() == []
    assert await words_left(rig) == []
    for name in ("m1", "m2"):
        reply = await rig.broker.outcome(question(name))
        assert reply is not None
        assert (reply["outcome"], reply["termination_reason"]) == ("superseded", "forgotten")


async def test_what_waits_for_a_retry_is_forgotten(rig: Rig) -> None:
    await rig.submit(frame=WORD)
    await rig.settle(await rig.take(), Retry(WORD, "away", seconds=60.0))

    erased = await rig.broker.forget(question("-"))

    assert erased.entries == 1
    assert await words_left(rig) == []
    assert not await rig.client.exists("rd:{0}:delayed")


async def test_what_was_cancelled_before_and_travels_still_is_forgotten(rig: Rig) -> None:
    await rig.submit(frame=WORD)
    await rig.broker.cancel(question())
    assert await words_left(rig)

    await rig.broker.forget(question("-"))

    assert await words_left(rig) == []
    assert await rig.take_all() == []


async def test_messages_that_joined_another_are_forgotten_with_it(rig: Rig) -> None:
    for name in ("m1", "m2"):
        await rig.submit(question(name), frame=WORD, not_before_seconds=60.0, result_list="chat")

    await rig.broker.forget(question("-"))

    assert await words_left(rig) == []
    assert await rig.results() == []


async def test_a_command_that_forgets_takes_what_travels_still_along(rig: Rig) -> None:
    await rig.submit(question("m1"), frame=WORD)
    await rig.broker.cancel(question("m1"))
    await rig.submit(question("m2"))
    _, command = await rig.take_all()

    assert await rig.settle(command, finish(forget="all"))

    assert await words_left(rig) == []


async def test_what_is_forgotten_with_thousands_before_it_leaves_no_journal(rig: Rig) -> None:
    for number in range(1_050):
        await rig.submit(question(f"m{number}"), not_before_seconds=60.0, frame=b"")
        await rig.broker.cancel(question(f"m{number}"))
    await rig.submit(question("last"))

    await rig.settle(await rig.take(), finish(forget="all"))

    journals = await rig.client.keys("rd:{0}:journal:*")
    assert journals == [question_keys(question("last"), 0).journal.encode()]


async def test_messages_are_known_as_long_as_their_journals_are(rig: Rig) -> None:
    rig.broker = rig.make(ttl_seconds=0.02)
    messages = question_keys(question(), 0).messages

    async def only_the_last() -> bool:
        await rig.submit(question(f"m{len(numbers)}"), deadline_seconds=0.01)
        numbers.append(len(numbers))
        return int(await rig.client.zcard(messages)) < len(numbers)

    numbers: list[int] = []
    await eventually(only_the_last)


async def test_a_question_may_be_kept_for_another_time_than_all(rig: Rig) -> None:
    submission = Submission(
        question=question(),
        frame=b"frame",
        role="manager",
        deadline_seconds=5.0,
        last_resort=LAST_RESORT,
        keep_seconds=100.0,
    )
    await rig.broker.submit(submission)
    names = question_keys(question(), 0)
    assert 95 < await rig.client.ttl(names.record) <= 105

    await rig.settle(await rig.take(), finish())

    for key in (names.record, names.journal):
        assert 90 < await rig.client.ttl(key) <= 100
    assert await rig.client.ttl(names.messages) <= 105


async def test_forgetting_twice_or_at_once_is_no_error(rig: Rig) -> None:
    await rig.submit(frame=WORD)

    async with asyncio.TaskGroup() as tasks:
        both = [tasks.create_task(rig.broker.forget(question("-"))) for _ in range(2)]
    third = await rig.broker.forget(question("-"))

    assert sum(task.result().ended for task in both) == 1
    assert third == Erased()
    assert not third.found


async def test_a_memory_write_of_what_was_accepted_before_is_refused(rig: Rig) -> None:
    await rig.client.set("rd:{0}:mem:words", WORD)

    erased = await rig.broker.forget(question("-"), ["rd:{0}:mem:words", "rd:{0}:mem:none"])

    assert erased.memories == 1
    assert await rig.client.exists(question_keys(question(), 0).tombstone)
    assert await words_left(rig) == []


@pytest.mark.redis
async def test_the_file_is_written_anew_after_an_erasure_and_not_again(rig: Rig) -> None:
    if not (await _persistence(rig)):
        pytest.skip("a played Redis has no file")
    await rig.client.config_set("appendonly", "yes")
    try:
        broker = rig.make(rewriting=Rewriting(0.01, 0.0))
        await broker.sweep()
        await broker.forget(question("-"))

        async def written() -> bool:
            await broker.tidy()
            known = await rig.client.hgetall("rd:{0}:files")
            return b"first" not in known and b"written" in known and b"began" not in known

        await eventually(written)
        before = await rig.client.hget("rd:{0}:files", "written")
        await broker.tidy()

        assert await rig.client.hget("rd:{0}:files", "written") == before
    finally:
        await rig.client.config_set("appendonly", "no")


@pytest.mark.redis
async def test_a_rewriting_of_another_run_of_the_server_does_not_count(rig: Rig) -> None:
    if not (await _persistence(rig)):
        pytest.skip("a played Redis has no file")
    broker = rig.make(rewriting=Rewriting(3600.0, 0.0))
    await broker.sweep()
    await broker.forget(question("-"))
    await rig.client.hset(
        "rd:{0}:files", mapping={"began": "1", "run": "of another server", "covers": "1"}
    )

    await broker.tidy()

    known = await rig.client.hgetall("rd:{0}:files")
    assert b"began" not in known
    assert b"first" in known


@pytest.mark.redis
async def test_a_server_that_refuses_to_write_its_file_is_told_of_and_keeps_its_mark(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (await _persistence(rig)):
        pytest.skip("a played Redis has no file")
    await rig.client.config_set("appendonly", "yes")
    await rig.client.execute_command("ACL", "SETUSER", "default", "-bgrewriteaof")
    try:
        broker = rig.make(rewriting=Rewriting(0.001, 0.0))
        await broker.sweep()
        await broker.forget(question("-"))
        await eventually(lambda: _told(broker, capsys))

        assert await rig.client.hexists("rd:{0}:files", "first")
    finally:
        await rig.client.execute_command("ACL", "SETUSER", "default", "+bgrewriteaof")
        await rig.client.config_set("appendonly", "no")


async def _told(broker: RedisBroker, capsys: pytest.CaptureFixture[str]) -> bool:
    await broker.tidy()
    return "file_not_rewritten" in capsys.readouterr().out


async def _persistence(rig: Rig) -> bool:
    from redis.exceptions import ResponseError

    try:
        await rig.client.info("persistence")
    except ResponseError:
        return False
    return True
