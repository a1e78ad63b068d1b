"""What the broker forgets of a conversation, and what dies of itself."""

import asyncio
from typing import Any

import pytest

from broker.keys import question_keys, shard_keys
from broker.maintenance.erasure import Rewriting
from broker.redis_broker import RedisBroker
from broker.values import Bury, Erased, FrameSend, Retry, Submission
from tests.support.broker_harness import (
    LAST_RESORT,
    BrokerHarness,
    finish,
    forward,
    question,
)
from tests.support.empty_redis import ON_REAL
from tests.support.waiting import wait_until

WORD = b"canary-of-words"
DAY = 86_400.0


async def words_left(harness: BrokerHarness) -> list[bytes]:
    """Return the keys in which the word stands."""
    reads: dict[bytes, Any] = {
        b"string": harness.client.get,
        b"hash": harness.client.hgetall,
        b"list": lambda key: harness.client.lrange(key, 0, -1),
        b"stream": harness.client.xrange,
        b"zset": lambda key: harness.client.zrange(key, 0, -1),
    }
    return [
        key
        for key in await harness.client.keys("*")
        if WORD in repr(await reads[await harness.client.type(key)](key)).encode()
    ]


async def bury_entry(
    harness: BrokerHarness, message: str = "m1", *, notifies: bool = False
) -> None:
    asked = question(message)
    await harness.submit(asked, frame=WORD)
    notice = FrameSend("search", b"notice") if notifies else None
    await harness.settle(await harness.take(), Bury("failed", f"of {WORD.decode()}", notice))


async def test_a_dead_letter_is_found_without_the_record_that_led_to_it(
    harness: BrokerHarness,
) -> None:
    await bury_entry(harness)
    await harness.client.delete(question_keys(question(), 0).record)
    await harness.client.delete(question_keys(question(), 0).journal)
    assert await words_left(harness) == [b"rd:{0}:letters"]

    erased = await harness.broker.eraser.forget(question("-"))

    assert erased == Erased(dead_letters=1)
    assert await words_left(harness) == []
    assert await harness.broker.admin.list_dead_letters() == []


async def test_a_dead_letter_of_another_conversation_stays(harness: BrokerHarness) -> None:
    await bury_entry(harness)
    await harness.submit(question(conversation="c1x"), frame=WORD)
    await harness.settle(await harness.take(), Bury("failed", "no"))

    await harness.broker.eraser.forget(question("-"))

    (letter,) = await harness.broker.admin.list_dead_letters()
    assert letter.question == question(conversation="c1x")
    assert letter.frame == WORD


async def test_no_more_dead_letters_are_kept_than_there_may_be(harness: BrokerHarness) -> None:
    harness.broker = harness.make(dead_letters=3)
    for number in range(5):
        await bury_entry(harness, f"m{number}")

    letters = await harness.broker.admin.list_dead_letters()

    assert [letter.question.message_id for letter in letters if letter.question] == [
        "m4", "m3", "m2",
    ]  # fmt: skip
    assert await harness.client.hlen("rd:{0}:letters") == 6


async def test_dead_letters_expire_without_workers(harness: BrokerHarness) -> None:
    await bury_entry(harness)

    keys = shard_keys(0)
    for key in (keys.dead, keys.letters):
        assert 6.9 * DAY < await harness.client.ttl(key) <= 7 * DAY


async def test_the_sweeper_drops_old_dead_letters_and_keeps_new_ones(
    harness: BrokerHarness,
) -> None:
    broker = harness.make(dead_letter_ttl_seconds=DAY, dead_letter_ttls={("acme", "desk"): 0.01})
    await broker.maintenance.rescuer.sweep()
    await harness.submit(question(tenant="other"), frame=WORD)
    await harness.settle(await harness.take(), Bury("failed", "no"))
    await bury_entry(harness)

    async def drop_letter() -> bool:
        await broker.maintenance.upkeep.tidy()
        return len(await broker.admin.list_dead_letters()) == 1

    await wait_until(drop_letter)

    (letter,) = await broker.admin.list_dead_letters()
    assert letter.question == question(tenant="other")
    assert await harness.client.hlen("rd:{0}:letters") == 2


async def test_forgetting_ends_running_questions_and_removes_their_entries(
    harness: BrokerHarness,
) -> None:
    await harness.submit(question("m1"), frame=WORD)
    held = await harness.take()
    await harness.submit(question("m2"), frame=WORD)

    erased = await harness.broker.eraser.forget(question("-"))

    assert (erased.messages, erased.ended, erased.entries) == (2, 2, 1)
    assert await words_left(harness) == []
    assert not await harness.settle(held, forward(WORD))
    assert not await harness.settle(held, Bury("failed", WORD.decode()))
    assert await harness.take_all() == []
    assert await words_left(harness) == []
    for name in ("m1", "m2"):
        reply = await harness.broker.replies.await_reply(question(name))
        assert reply is not None
        assert (reply["outcome"], reply["termination_reason"]) == ("superseded", "forgotten")


async def test_parked_retries_are_forgotten(harness: BrokerHarness) -> None:
    await harness.submit(frame=WORD)
    await harness.settle(await harness.take(), Retry(WORD, "away", seconds=60.0))

    erased = await harness.broker.eraser.forget(question("-"))

    assert erased.entries == 1
    assert await words_left(harness) == []
    assert not await harness.client.exists("rd:{0}:delayed")


async def test_entries_of_questions_cancelled_before_are_forgotten(
    harness: BrokerHarness,
) -> None:
    await harness.submit(frame=WORD)
    await harness.broker.producer.cancel(question())
    assert await words_left(harness)

    await harness.broker.eraser.forget(question("-"))

    assert await words_left(harness) == []
    assert await harness.take_all() == []


async def test_messages_that_joined_another_are_forgotten_with_it(harness: BrokerHarness) -> None:
    for name in ("m1", "m2"):
        await harness.submit(
            question(name), frame=WORD, not_before_seconds=60.0, result_list="chat"
        )

    await harness.broker.eraser.forget(question("-"))

    assert await words_left(harness) == []
    assert await harness.results() == []


async def test_a_forget_command_removes_running_entries(
    harness: BrokerHarness,
) -> None:
    await harness.submit(question("m1"), frame=WORD)
    await harness.broker.producer.cancel(question("m1"))
    await harness.submit(question("m2"))
    _, command = await harness.take_all()

    assert await harness.settle(command, finish(forget="all"))

    assert await words_left(harness) == []


@ON_REAL
async def test_forgetting_a_conversation_with_thousands_of_messages_leaves_no_journal(
    harness: BrokerHarness,
) -> None:
    for number in range(1_050):
        await harness.submit(question(f"m{number}"), not_before_seconds=60.0, frame=b"")
        await harness.broker.producer.cancel(question(f"m{number}"))
    await harness.submit(question("last"))

    await harness.settle(await harness.take(), finish(forget="all"))

    journals = await harness.client.keys("rd:{0}:journal:*")
    assert journals == [question_keys(question("last"), 0).journal.encode()]


async def test_messages_are_known_as_long_as_their_journals_are(harness: BrokerHarness) -> None:
    harness.broker = harness.make(ttl_seconds=0.02)
    messages = question_keys(question(), 0).messages

    async def only_the_last() -> bool:
        await harness.submit(question(f"m{len(numbers)}"), deadline_seconds=0.01)
        numbers.append(len(numbers))
        return int(await harness.client.zcard(messages)) < len(numbers)

    numbers: list[int] = []
    await wait_until(only_the_last)


async def test_a_question_may_be_kept_for_another_time_than_all(harness: BrokerHarness) -> None:
    submission = Submission(
        question=question(),
        frame=b"frame",
        role="manager",
        deadline_seconds=5.0,
        last_resort=LAST_RESORT,
        keep_seconds=100.0,
    )
    await harness.broker.producer.submit(submission)
    names = question_keys(question(), 0)
    assert 95 < await harness.client.ttl(names.record) <= 105

    await harness.settle(await harness.take(), finish())

    for key in (names.record, names.journal):
        assert 90 < await harness.client.ttl(key) <= 100
    assert await harness.client.ttl(names.messages) <= 105


async def test_repeated_and_concurrent_erasures_succeed(harness: BrokerHarness) -> None:
    await harness.submit(frame=WORD)

    async with asyncio.TaskGroup() as tasks:
        both = [tasks.create_task(harness.broker.eraser.forget(question("-"))) for _ in range(2)]
    third = await harness.broker.eraser.forget(question("-"))

    assert sum(task.result().ended for task in both) == 1
    assert third == Erased()
    assert not third.found


async def test_a_memory_write_of_a_message_accepted_before_the_erasure_is_refused(
    harness: BrokerHarness,
) -> None:
    await harness.client.set("rd:{0}:mem:words", WORD)

    erased = await harness.broker.eraser.forget(
        question("-"), ["rd:{0}:mem:words", "rd:{0}:mem:none"]
    )

    assert erased.memories == 1
    assert await harness.client.exists(question_keys(question(), 0).tombstone)
    assert await words_left(harness) == []


@ON_REAL
async def test_the_append_only_file_is_rewritten_once_after_an_erasure(
    harness: BrokerHarness,
) -> None:
    await harness.client.config_set("appendonly", "yes")
    try:
        broker = harness.make(rewriting=Rewriting(0.01, 0.0))
        await broker.maintenance.rescuer.sweep()
        await broker.eraser.forget(question("-"))

        async def is_written() -> bool:
            await broker.maintenance.upkeep.tidy()
            known = await harness.client.hgetall("rd:{0}:files")
            return b"first" not in known and b"written" in known and b"began" not in known

        await wait_until(is_written)
        before = await harness.client.hget("rd:{0}:files", "written")
        await broker.maintenance.upkeep.tidy()

        assert await harness.client.hget("rd:{0}:files", "written") == before
    finally:
        await harness.client.config_set("appendonly", "no")


@ON_REAL
async def test_a_rewriting_of_another_run_of_the_server_does_not_count(
    harness: BrokerHarness,
) -> None:
    broker = harness.make(rewriting=Rewriting(3600.0, 0.0))
    await broker.maintenance.rescuer.sweep()
    await broker.eraser.forget(question("-"))
    await harness.client.hset(
        "rd:{0}:files", mapping={"began": "1", "run": "of another server", "covers": "1"}
    )

    await broker.maintenance.upkeep.tidy()

    known = await harness.client.hgetall("rd:{0}:files")
    assert b"began" not in known
    assert b"first" in known


@ON_REAL
async def test_a_server_that_refuses_to_write_its_file_is_reported_and_keeps_its_mark(
    harness: BrokerHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    await harness.client.config_set("appendonly", "yes")
    await harness.client.execute_command("ACL", "SETUSER", "default", "-bgrewriteaof")
    try:
        broker = harness.make(rewriting=Rewriting(0.001, 0.0))
        await broker.maintenance.rescuer.sweep()
        await broker.eraser.forget(question("-"))
        await wait_until(lambda: has_logged_a_refusal(broker, capsys))

        assert await harness.client.hexists("rd:{0}:files", "first")
    finally:
        await harness.client.execute_command("ACL", "SETUSER", "default", "+bgrewriteaof")
        await harness.client.config_set("appendonly", "no")


async def has_logged_a_refusal(broker: RedisBroker, capsys: pytest.CaptureFixture[str]) -> bool:
    await broker.maintenance.upkeep.tidy()
    return "aof_rewrite_failed" in capsys.readouterr().out
