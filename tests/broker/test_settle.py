import pytest
from redis.exceptions import ResponseError

from broker.keys import question_keys
from broker.port import Bury, Finish, Forward, JournalEntry, Retry, Send
from broker.settling import Limits, Settlements
from envelope.memory_write import Append, Delete, Increment, SetFields
from envelope.outcome import Outcome
from tests.broker.rig import LAST_RESORT, Rig, eventually, finish, forward, question

ODD = '\0"\\\n\x7f {0} null'
HISTORY = "rd:{0}:mem:history"


def remembered(text: str) -> Append:
    return Append(key=HISTORY, values=(text,), keep=10, ttl_seconds=60)


async def test_a_forwarded_entry_is_gone_here_and_waits_there(rig: Rig) -> None:
    await rig.submit()

    settled = await rig.settle(await rig.take(), forward(b"onward"))

    manager, search = await rig.broker.status(["manager", "search"])
    assert settled
    assert (manager.depth, manager.in_flight) == (0, 0)
    assert (search.depth, search.in_flight) == (1, 0)
    assert (await rig.take("search")).frame == b"onward"
    assert await rig.kinds() == ["accepted", "routed"]


async def test_one_settlement_can_send_to_several_roles(rig: Rig) -> None:
    await rig.submit()
    sends = (Send("search", b"one"), Send("search", b"two"), Send("manager", b"three"))

    await rig.settle(await rig.take(), Forward(sends))

    assert [entry.frame for entry in await rig.take_all("search")] == [b"one", b"two"]
    assert (await rig.take()).frame == b"three"


async def test_many_entries_are_settled_together_each_on_its_own(rig: Rig) -> None:
    for number in range(4):
        await rig.submit(question(conversation=f"c{number}"))
    one, two, three, four = await rig.take_all()
    await rig.settle(three, finish())

    settled = await rig.broker.settle(
        [(one, forward()), (two, finish("two")), (three, finish("late")), (four, forward())]
    )

    assert settled == [True, True, False, True]
    assert len(await rig.take_all("search")) == 2
    assert await rig.broker.reply(two.question) == {"outcome": "answered", "text": "two"}


async def test_an_entry_is_settled_once(rig: Rig) -> None:
    await rig.submit()
    delivery = await rig.take()

    first = await rig.settle(delivery, forward())
    second = await rig.settle(delivery, forward())

    assert (first, second) == (True, False)
    assert len(await rig.take_all("search")) == 1


async def test_another_consumer_cannot_settle(rig: Rig) -> None:
    await rig.submit()
    await rig.take(consumer="w1")
    taken_over = await rig.reclaimed(consumer="w2")

    forged = type(taken_over)(
        taken_over.entry_id,
        taken_over.role,
        taken_over.shard,
        "w3",
        taken_over.count,
        taken_over.question,
        taken_over.frame,
        taken_over.remaining_seconds,
    )

    assert not await rig.settle(forged, finish("forged"))
    assert await rig.broker.reply(question()) is None


async def test_a_late_finisher_changes_nothing_not_even_memory(rig: Rig) -> None:
    await rig.submit(result_list="chat")
    late = await rig.take(consumer="w1")
    present = await rig.reclaimed(consumer="w2")
    await rig.settle(present, finish("present", remember=[remembered("present")]))

    settled = await rig.settle(late, finish("late", remember=[remembered("late")]))

    assert not settled
    assert await rig.client.lrange(HISTORY, 0, -1) == [b"present"]
    assert await rig.broker.reply(question()) == {"outcome": "answered", "text": "present"}
    assert await rig.kinds() == ["accepted", "finished"]
    assert len(await rig.results()) == 1


async def test_a_late_finisher_of_the_same_name_is_refused_too(rig: Rig) -> None:
    await rig.submit()
    first = await rig.take(consumer="w1")
    second = await rig.reclaimed(consumer="w1")

    assert (first.starts + 1, first.consumer) == (second.starts, second.consumer)
    assert not await rig.settle(first, finish("first"))
    assert await rig.settle(second, finish("second"))


async def test_a_finish_puts_one_reply_on_the_result_list(rig: Rig) -> None:
    await rig.submit(result_list="chat")
    delivery = await rig.take()
    await rig.settle(delivery, forward())
    last = await rig.take("search")

    await rig.settle(last, finish("sent"))
    await rig.settle(last, finish("twice"))

    ((_, fields),) = await rig.results()
    assert fields[b"j"] == b'{"outcome":"answered","text":"sent"}'
    assert fields[b"o"] == b"answered"


async def test_a_pull_door_reads_the_reply_from_the_journal(rig: Rig) -> None:
    await rig.submit()
    await rig.settle(await rig.take(), finish("here"))

    entries = await rig.broker.journal(question())

    assert [entry.kind for entry in entries] == ["accepted", "finished"]
    assert entries[-1].fields == {"outcome": "answered", "text": "here"}
    assert await rig.client.keys("rd:*results*") == []


async def test_a_finish_applies_its_memory_writes(rig: Rig) -> None:
    await rig.client.set("rd:{0}:mem:old", "gone")
    counts, fields = "rd:{0}:mem:counts", "rd:{0}:mem:fields"
    await rig.submit()

    await rig.settle(
        await rig.take(),
        finish(
            remember=[
                Append(key=HISTORY, values=("1", "2", "3"), keep=2, ttl_seconds=60),
                SetFields(key=fields, fields={"odd": ODD, "ü": ODD * 30}, ttl_seconds=60),
                Increment(key=counts, fields={"questions": 1, "seconds": 1.5}, ttl_seconds=60),
                Delete(key="rd:{0}:mem:old"),
            ]
        ),
    )

    assert await rig.client.lrange(HISTORY, 0, -1) == [b"2", b"3"]
    assert await rig.client.hgetall(fields) == {
        b"odd": ODD.encode(),
        "ü".encode(): ODD.encode() * 30,
    }
    found = await rig.client.hgetall(counts)
    assert {name: float(value) for name, value in found.items()} == {
        b"questions": 1.0,
        b"seconds": 1.5,
    }
    assert await rig.client.exists("rd:{0}:mem:old") == 0
    assert 0 < await rig.client.ttl(HISTORY) <= 60


async def test_a_retry_comes_back_after_its_wait_and_counts_as_failure(rig: Rig) -> None:
    rig.broker = rig.make(backoff_seconds=0.02)
    await rig.submit()

    settled = await rig.settle(await rig.take(), Retry(b"again", "the model was away"))
    at_once = await rig.take_all()

    async def back() -> object:
        await rig.broker.due()
        return await rig.take_all()

    (delivery,) = await eventually(back)
    assert settled
    assert at_once == []
    assert (delivery.frame, delivery.failures, delivery.count) == (b"again", 1, 1)
    assert await rig.kinds() == ["accepted", "retried"]


async def test_a_wait_that_was_asked_for_is_kept_and_is_no_failure(rig: Rig) -> None:
    await rig.submit()
    await rig.settle(await rig.take(), Retry(b"again", "limited", seconds=30))

    due_in = await rig.broker.due()

    (score,) = [
        score for _, score in await rig.client.zrange("rd:{0}:delayed", 0, -1, withscores=True)
    ]
    seconds, microseconds = await rig.client.time()
    assert 25 < due_in <= 30
    assert 25 < score / 1000 - (seconds + microseconds / 1e6) <= 30


async def test_retries_are_bounded_and_the_user_still_gets_an_outcome(rig: Rig) -> None:
    rig.broker = rig.make(attempts=3, backoff_seconds=0.001, longest_backoff_seconds=0.002)
    await rig.submit()
    starts = 0

    async def failing() -> object:
        nonlocal starts
        await rig.broker.due()
        for delivery in await rig.take_all():
            starts += 1
            await rig.settle(delivery, Retry(b"again", "always fails"))
        return await rig.broker.reply(question())

    reply = await eventually(failing)
    (letter,) = await rig.broker.dead_letters()

    assert starts == 3
    assert reply == LAST_RESORT
    assert (letter.reason, letter.error, letter.attempts) == ("attempts_spent", "always fails", 3)


async def test_backoff_is_full_jitter_below_a_doubling_bound(rig: Rig) -> None:
    limits = Limits(1000, 10, 99, 500, 30_000)
    await rig.submit()
    delivery = await rig.take()

    def delay(failures: int, jitter: float) -> object:
        settlements = Settlements(0, limits, jitter=lambda: jitter)
        failed = type(delivery)(
            "1-0", "manager", 0, "w", 1, question(), b"", 9.0, failures=failures
        )
        settlements.add(failed, Retry(b"", "x"), ())
        return settlements.call(()).lists[-1][-1]

    assert [delay(n, 1.0) for n in range(8)] == [
        1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000,
    ]  # fmt: skip
    assert [delay(3, share) for share in (0.0, 0.5)] == [0, 4000]


async def test_a_buried_entry_keeps_its_frame_and_says_why(rig: Rig) -> None:
    await rig.submit(result_list="chat")

    await rig.settle(await rig.take(), Bury("failed", "ValueError: no"))

    (letter,) = await rig.broker.dead_letters()
    assert (letter.role, letter.reason, letter.error) == ("manager", "failed", "ValueError: no")
    assert (letter.worker, letter.attempts, letter.question) == ("w1", 1, question())
    assert letter.frame == b"frame"
    assert await rig.broker.reply(question()) == LAST_RESORT
    assert await rig.kinds() == ["accepted", "buried", "finished"]
    assert len(await rig.results()) == 1


async def test_a_buried_entry_that_tells_the_manager_leaves_the_question_open(rig: Rig) -> None:
    await rig.submit()
    await rig.settle(await rig.take(), forward())

    await rig.settle(await rig.take("search"), Bury("failed", "no", tell=Send("manager", b"told")))

    assert (await rig.take()).frame == b"told"
    assert await rig.broker.reply(question()) is None
    assert len(await rig.broker.dead_letters()) == 1


async def test_dead_letters_are_capped(rig: Rig) -> None:
    rig.broker = rig.make(dead_letters=3)
    for number in range(5):
        await rig.submit(question(conversation=f"c{number}"))
    for delivery in await rig.take_all():
        await rig.settle(delivery, Bury("failed", "no"))

    assert len(await rig.broker.dead_letters()) == 3


async def test_the_last_resort_is_the_one_of_the_last_manager_hop(rig: Rig) -> None:
    await rig.submit()
    better: dict[str, object] = {"outcome": "answered", "text": "the best so far"}
    sent = Forward((Send("search", b"x"),), last_resort=better)  # type: ignore[arg-type] # invariance of dict
    await rig.settle(await rig.take(), sent)

    await rig.settle(await rig.take("search"), Bury("failed", "no"))

    assert await rig.broker.reply(question()) == better
    assert (await rig.record(question()))[b"o"] == b"answered"


async def test_journal_entries_of_a_refused_settlement_are_not_written(rig: Rig) -> None:
    await rig.submit()
    delivery = await rig.take()
    await rig.settle(delivery, finish())

    await rig.settle(delivery, Forward((), journal=(JournalEntry("routed", {}),)))

    assert await rig.kinds() == ["accepted", "finished"]


async def test_what_comes_back_for_a_forgotten_record_changes_nothing(rig: Rig) -> None:
    await rig.submit()
    delivery = await rig.take()
    await rig.client.delete(question_keys(question(), 0).record)

    assert not await rig.settle(delivery, finish(remember=[remembered("x")]))
    assert await rig.client.exists(HISTORY) == 0
    assert await rig.client.xlen("rd:{0}:stream:manager") == 0


async def test_a_memory_key_of_another_type_is_noted_and_stops_nothing(rig: Rig) -> None:
    await rig.client.set(HISTORY, "no list")
    await rig.submit()
    await rig.submit(question(conversation="c2"))
    first, second = await rig.take_all()
    after = Append(key="rd:{0}:mem:after", values=("said",), keep=10, ttl_seconds=60)

    settled = await rig.broker.settle(
        [(first, finish(remember=[remembered("x"), after])), (second, finish())]
    )

    assert settled == [True, True]
    assert await rig.kinds() == ["accepted", "memory_failed", "finished"]
    assert await rig.client.lrange("rd:{0}:mem:after", 0, -1) == [b"said"]
    assert await rig.broker.reply(second.question) is not None


@pytest.mark.parametrize("number", [3, 600])
async def test_what_a_settlement_tells_stands_in_its_order(rig: Rig, number: int) -> None:
    await rig.submit()
    notes = [JournalEntry("model_called", {"call": call}) for call in range(number)]

    await rig.settle(await rig.take(), Finish(Outcome.ANSWERED, {"text": "so"}, journal=notes))

    accepted, *told, finished = await rig.broker.journal(question())
    assert (accepted.kind, finished.kind) == ("accepted", "finished")
    assert [(note.kind, note.fields) for note in told] == [
        ("model_called", {"call": call}) for call in range(number)
    ]
    assert list(await rig.broker.journal(question(), after=told[-1].id)) == [finished]


async def test_what_cannot_be_settled_keeps_nothing_else_of_its_batch_from_it(rig: Rig) -> None:
    for number in range(3):
        await rig.submit(question(conversation=f"c{number}"))
    one, two, three = await rig.take_all()
    journal = question_keys(two.question, 0).journal
    await rig.client.delete(journal)
    await rig.client.set(journal, "not ours")

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        await rig.broker.settle([(one, finish("1")), (two, finish("2")), (three, finish("3"))])

    assert await rig.broker.reply(one.question) == {"outcome": "answered", "text": "1"}
    assert await rig.broker.reply(three.question) == {"outcome": "answered", "text": "3"}
    assert (await rig.broker.status(["manager"]))[0].depth == 0
