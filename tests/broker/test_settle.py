import pytest
from redis.exceptions import ResponseError

from broker.keys import question_keys
from broker.settlement import BrokerLimits, SettleBatch
from broker.values import Bury, ConsumerDemand, Finish, Forward, FrameSend, JournalEntry, Retry
from envelope.memory_access import Append, Delete, Increment, SetFields
from envelope.outcome import Outcome
from tests.support.broker_harness import (
    LAST_RESORT,
    BrokerHarness,
    finish,
    forward,
    question,
)
from tests.support.waiting import wait_until

ODD = '\0"\\\n\x7f {0} null'
HISTORY = "rd:{0}:mem:history"


def make_append(text: str) -> Append:
    return Append(key=HISTORY, values=(text,), keep=10, ttl_seconds=60)


async def test_a_forwarded_entry_is_gone_here_and_waits_there(harness: BrokerHarness) -> None:
    await harness.submit()

    settled = await harness.settle(await harness.take(), forward(b"onward"))

    manager, search = await harness.broker.admin.read_status(["manager", "search"])
    assert settled
    assert (manager.depth, manager.in_flight) == (0, 0)
    assert (search.depth, search.in_flight) == (1, 0)
    assert (await harness.take("search")).frame == b"onward"
    assert await harness.kinds() == ["accepted", "routed"]


async def test_one_settlement_can_send_to_several_roles(harness: BrokerHarness) -> None:
    await harness.submit()
    sends = (
        FrameSend("search", b"one"),
        FrameSend("search", b"two"),
        FrameSend("manager", b"three"),
    )

    await harness.settle(await harness.take(), Forward(sends))

    assert [entry.frame for entry in await harness.take_all("search")] == [b"one", b"two"]
    assert (await harness.take()).frame == b"three"


async def test_many_entries_are_settled_together_each_on_its_own(harness: BrokerHarness) -> None:
    for number in range(4):
        await harness.submit(question(conversation=f"c{number}"))
    first, two, three, four = await harness.take_all()
    await harness.settle(three, finish())

    settled = await harness.broker.settle(
        [(first, forward()), (two, finish("two")), (three, finish("late")), (four, forward())]
    )

    assert settled == [True, True, False, True]
    assert len(await harness.take_all("search")) == 2
    assert await harness.broker.replies.read_reply(two.question) == finish("two").reply


async def test_a_late_finisher_changes_nothing_not_even_memory(harness: BrokerHarness) -> None:
    await harness.submit(result_list="chat")
    late = await harness.take(consumer="w1")
    present = await harness.reclaim(consumer="w2")
    await harness.settle(present, finish("present", remember=[make_append("present")]))

    settled = await harness.settle(late, finish("late", remember=[make_append("late")]))

    assert not settled
    assert await harness.client.lrange(HISTORY, 0, -1) == [b"present"]
    assert await harness.broker.replies.read_reply(question()) == finish("present").reply
    assert await harness.kinds() == ["accepted", "finished"]
    assert len(await harness.results()) == 1


async def test_a_late_finisher_of_the_same_name_is_refused_too(harness: BrokerHarness) -> None:
    await harness.submit()
    first = await harness.take(consumer="w1")
    second = await harness.reclaim(consumer="w1")

    assert (first.starts + 1, first.consumer) == (second.starts, second.consumer)
    assert not await harness.settle(first, finish("first"))
    assert await harness.settle(second, finish("second"))


async def test_a_finish_puts_one_reply_on_the_result_list(harness: BrokerHarness) -> None:
    await harness.submit(result_list="chat")
    delivery = await harness.take()
    await harness.settle(delivery, forward())
    last = await harness.take("search")

    await harness.settle(last, finish("sent"))
    await harness.settle(last, finish("twice"))

    ((_, fields),) = await harness.results()
    assert fields[b"j"] == b'{"outcome":"answered","text":"sent"}'
    assert fields[b"o"] == b"answered"


async def test_a_finish_applies_its_memory_writes(harness: BrokerHarness) -> None:
    await harness.client.set("rd:{0}:mem:old", "gone")
    counts, fields = "rd:{0}:mem:counts", "rd:{0}:mem:fields"
    await harness.submit()

    await harness.settle(
        await harness.take(),
        finish(
            remember=[
                Append(key=HISTORY, values=("1", "2", "3"), keep=2, ttl_seconds=60),
                SetFields(key=fields, fields={"odd": ODD, "ü": ODD * 30}, ttl_seconds=60),
                Increment(key=counts, fields={"questions": 1, "seconds": 1.5}, ttl_seconds=60),
                Delete(key="rd:{0}:mem:old"),
            ]
        ),
    )

    assert await harness.client.lrange(HISTORY, 0, -1) == [b"2", b"3"]
    assert await harness.client.hgetall(fields) == {
        b"odd": ODD.encode(),
        "ü".encode(): ODD.encode() * 30,
    }
    stored = await harness.client.hgetall(counts)
    assert {name: float(value) for name, value in stored.items()} == {
        b"questions": 1.0,
        b"seconds": 1.5,
    }
    assert await harness.client.exists("rd:{0}:mem:old") == 0
    assert 0 < await harness.client.ttl(HISTORY) <= 60


async def test_a_retry_comes_back_after_its_wait_and_counts_as_failure(
    harness: BrokerHarness,
) -> None:
    harness.broker = harness.make(backoff_seconds=0.02)
    await harness.submit()

    settled = await harness.settle(await harness.take(), Retry(b"again", "the model was away"))
    at_once = await harness.take_all()

    async def back() -> object:
        await harness.broker.maintenance.scheduler.send_due()
        return await harness.take_all()

    (delivery,) = await wait_until(back)
    assert settled
    assert at_once == []
    assert (delivery.frame, delivery.failures, delivery.count) == (b"again", 1, 1)
    assert await harness.kinds() == ["accepted", "retried"]


async def test_a_requested_delay_is_kept_and_does_not_count_as_a_failure(
    harness: BrokerHarness,
) -> None:
    await harness.submit()
    await harness.settle(await harness.take(), Retry(b"again", "limited", seconds=30))

    due_in = await harness.broker.maintenance.scheduler.send_due()

    (score,) = [
        score for _, score in await harness.client.zrange("rd:{0}:delayed", 0, -1, withscores=True)
    ]
    seconds, microseconds = await harness.client.time()
    assert 25 < due_in <= 30
    assert 25 < score / 1000 - (seconds + microseconds / 1e6) <= 30


async def test_retries_are_bounded_and_the_user_still_gets_an_outcome(
    harness: BrokerHarness,
) -> None:
    harness.broker = harness.make(attempts=3, backoff_seconds=0.001, longest_backoff_seconds=0.002)
    await harness.submit()
    starts = 0

    async def failing() -> object:
        nonlocal starts
        await harness.broker.maintenance.scheduler.send_due()
        for delivery in await harness.take_all():
            starts += 1
            await harness.settle(delivery, Retry(b"again", "always fails"))
        return await harness.broker.replies.read_reply(question())

    reply = await wait_until(failing)
    (letter,) = await harness.broker.admin.list_dead_letters()

    assert starts == 3
    assert reply == LAST_RESORT
    assert (letter.reason, letter.error, letter.attempts) == (
        "attempts_exhausted",
        "always fails",
        3,
    )


async def test_backoff_is_full_jitter_below_a_doubling_bound(harness: BrokerHarness) -> None:
    limits = BrokerLimits(1000, 10, 99, 500, 30_000)
    await harness.submit()
    delivery = await harness.take()

    def delay(failures: int, jitter: float) -> object:
        settlements = SettleBatch(0, limits, jitter=lambda: jitter)
        failed = type(delivery)(
            "1-0", "manager", 0, "w", 1, question(), b"", 9.0, failures=failures
        )
        settlements.add(failed, Retry(b"", "x"), ())
        return settlements.call(()).args[-1]

    assert [delay(n, 1.0) for n in range(8)] == [
        1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000,
    ]  # fmt: skip
    assert [delay(3, share) for share in (0.0, 0.5)] == [0, 4000]


async def test_a_buried_entry_keeps_its_frame_and_the_reason(harness: BrokerHarness) -> None:
    await harness.submit(result_list="chat")

    await harness.settle(await harness.take(), Bury("failed", "ValueError: no"))

    (letter,) = await harness.broker.admin.list_dead_letters()
    assert (letter.role, letter.reason, letter.error) == ("manager", "failed", "ValueError: no")
    assert (letter.worker, letter.attempts, letter.question) == ("w1", 1, question())
    assert letter.frame == b"frame"
    assert await harness.broker.replies.read_reply(question()) == LAST_RESORT
    assert await harness.kinds() == ["accepted", "dead_lettered", "finished"]
    assert len(await harness.results()) == 1


async def test_a_buried_entry_that_notifies_the_manager_leaves_the_question_open(
    harness: BrokerHarness,
) -> None:
    await harness.submit()
    await harness.settle(await harness.take(), forward())

    await harness.settle(
        await harness.take("search"),
        Bury("failed", "no", poison_notice=FrameSend("manager", b"notice")),
    )

    assert (await harness.take()).frame == b"notice"
    assert await harness.broker.replies.read_reply(question()) is None
    assert len(await harness.broker.admin.list_dead_letters()) == 1


async def test_a_settlement_of_a_forgotten_question_has_no_effect(
    harness: BrokerHarness,
) -> None:
    await harness.submit()
    delivery = await harness.take()
    await harness.client.delete(question_keys(question(), 0).record)

    assert not await harness.settle(delivery, finish(remember=[make_append("x")]))
    assert await harness.client.exists(HISTORY) == 0
    assert await harness.client.xlen("rd:{0}:stream:manager") == 0


async def test_a_memory_key_of_another_type_is_noted_and_stops_nothing(
    harness: BrokerHarness,
) -> None:
    await harness.client.set(HISTORY, "no list")
    await harness.submit()
    await harness.submit(question(conversation="c2"))
    first, second = await harness.take_all()
    after = Append(key="rd:{0}:mem:after", values=("said",), keep=10, ttl_seconds=60)

    settled = await harness.broker.settle(
        [(first, finish(remember=[make_append("x"), after])), (second, finish())]
    )

    assert settled == [True, True]
    assert await harness.kinds() == ["accepted", "memory_failed", "finished"]
    assert await harness.client.lrange("rd:{0}:mem:after", 0, -1) == [b"said"]
    assert await harness.broker.replies.read_reply(second.question) is not None


@pytest.mark.parametrize("number", [3, 600])
async def test_journal_events_of_a_settlement_keep_their_order(
    harness: BrokerHarness, number: int
) -> None:
    await harness.submit()
    notes = [JournalEntry("model_called", {"call": call}) for call in range(number)]

    await harness.settle(
        await harness.take(), Finish(Outcome.ANSWERED, {"text": "so"}, journal=notes)
    )

    accepted, *journaled, finished = await harness.broker.replies.read_journal(question())
    assert (accepted.kind, finished.kind) == ("accepted", "finished")
    assert [(note.kind, note.fields) for note in journaled] == [
        ("model_called", {"call": call}) for call in range(number)
    ]
    assert list(await harness.broker.replies.read_journal(question(), after=journaled[-1].id)) == [
        finished
    ]


async def test_a_failed_settlement_does_not_affect_the_rest_of_its_batch(
    harness: BrokerHarness,
) -> None:
    for number in range(3):
        await harness.submit(question(conversation=f"c{number}"))
    first, two, three = await harness.take_all()
    journal = question_keys(two.question, 0).journal
    await harness.client.delete(journal)
    await harness.client.set(journal, "not ours")

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        await harness.broker.settle(
            [(first, finish("1")), (two, finish("2")), (three, finish("3"))]
        )

    assert await harness.broker.replies.read_reply(first.question) == finish("1").reply
    assert await harness.broker.replies.read_reply(three.question) == finish("3").reply
    assert (await harness.broker.admin.read_status(["manager"]))[0].depth == 0


async def test_the_sends_of_a_settlement_are_taken_by_consumers_with_free_slots(
    harness: BrokerHarness,
) -> None:
    await harness.submit()
    entry = await harness.take()

    settled = await harness.broker.settle_and_take(
        [(entry, forward(b"onward"))], [ConsumerDemand("search", "w7", 1)]
    )

    [taken] = settled.taken
    assert settled.kept == [True]
    assert (taken.frame, taken.role, taken.consumer, taken.count) == (b"onward", "search", "w7", 1)
    assert 0 < taken.remaining_seconds <= 60
    assert await harness.settle(taken, finish())


async def test_an_entry_taken_with_a_settlement_is_held_like_any_other(
    harness: BrokerHarness,
) -> None:
    await harness.submit()
    settled = await harness.broker.settle_and_take(
        [(await harness.take(), forward())], [ConsumerDemand("search", "w7", 1)]
    )

    again = await harness.reclaim("search", "w8")

    assert again.starts == 2
    assert not await harness.settle(settled.taken[0], finish("late"))
    assert await harness.settle(again, finish())


async def test_no_more_is_taken_than_there_is_room_for(harness: BrokerHarness) -> None:
    for number in range(3):
        await harness.submit(question(conversation=f"c{number}"))
    entries = [(entry, forward()) for entry in await harness.take_all()]

    settled = await harness.broker.settle_and_take(entries, [ConsumerDemand("search", "w7", 2)])

    assert len(settled.taken) == 2
    assert len(await harness.take_all("search")) == 1


async def test_a_group_that_is_gone_gives_nothing_and_harms_no_settlement(
    harness: BrokerHarness,
) -> None:
    await harness.submit()
    entry = await harness.take()
    await harness.client.delete("rd:{0}:stream:search")

    settled = await harness.broker.settle_and_take(
        [(entry, forward())], [ConsumerDemand("search", "w7", 1)]
    )

    assert (settled.kept, list(settled.taken)) == ([True], [])
    assert (await harness.take("search")).frame == b"next"
