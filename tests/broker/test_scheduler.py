import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from broker.redis_broker import RedisBroker
from broker.transport.scripts import CANCEL
from broker.values import Bury, Duplicate, Fields, Forward, FrameSend, Retry
from envelope.memory_access import Append
from tests.support.broker_harness import (
    LAST_RESORT,
    BrokerHarness,
    finish,
    forward,
    question,
)
from tests.support.waiting import wait_until

CHANGES: Fields = {"text": "a fault\nof ours", "termination_reason": "dead_letter"}
HISTORY = "rd:{0}:mem:history"
WRITE = Append(key=HISTORY, values=("said",), keep=10, ttl_seconds=60)


async def test_at_the_deadline_the_user_gets_the_last_resort(harness: BrokerHarness) -> None:
    await harness.submit(deadline_seconds=0.03, result_list="chat")

    assert await harness.due_reply(question()) == LAST_RESORT
    assert await harness.kinds() == ["accepted", "finished"]
    assert len(await harness.results()) == 1


@pytest.mark.parametrize("changes", [{}, CHANGES])
async def test_a_question_ends_by_its_deadline_or_as_a_dead_letter_with_the_reply_of_each(
    harness: BrokerHarness, changes: Fields
) -> None:
    late, dead = question("late"), question("dead", conversation="c2")
    await harness.submit(late, deadline_seconds=0.03, dead_letter_changes=changes)
    await harness.take()
    await harness.due_reply(late)
    await harness.submit(dead, dead_letter_changes=changes)

    await harness.settle(await harness.take(), Bury("failed", "it broke"))

    assert await harness.broker.replies.read_reply(late) == LAST_RESORT
    assert await harness.broker.replies.read_reply(dead) == {**LAST_RESORT, **changes}


@pytest.mark.parametrize("changes", [{}, CHANGES])
async def test_the_reply_of_a_later_hop_replaces_both(
    harness: BrokerHarness, changes: Fields
) -> None:
    await harness.submit(dead_letter_changes={"text": "an earlier fault"})
    better: Fields = {"outcome": "answered", "text": "so far"}
    sent = Forward((FrameSend("manager", b"x"),), (), better, changes)
    await harness.settle(await harness.take(), sent)

    await harness.settle(await harness.take(), Bury("failed", "it broke"))

    assert await harness.broker.replies.read_reply(question()) == {**better, **changes}


async def test_the_deadline_ends_a_question_that_a_worker_holds(harness: BrokerHarness) -> None:
    await harness.submit(deadline_seconds=0.03, result_list="chat")
    held = await harness.take()
    await harness.due_reply(question())

    settled = await harness.settle(held, finish("too late", remember=[WRITE]))

    assert not settled
    assert await harness.broker.replies.read_reply(question()) == LAST_RESORT
    assert await harness.client.exists(HISTORY) == 0
    assert len(await harness.results()) == 1
    assert await harness.client.xlen("rd:{0}:stream:manager") == 0


async def test_many_that_look_at_once_end_a_question_once(harness: BrokerHarness) -> None:
    asked = [question(conversation=f"c{number}") for number in range(20)]
    for message in asked:
        await harness.submit(message, deadline_seconds=0.02, result_list="chat")
    others = [harness.make() for _ in range(4)]

    async def all_ended() -> bool:
        await asyncio.gather(*(other.maintenance.scheduler.send_due() for other in others))
        return None not in [await harness.broker.replies.read_reply(message) for message in asked]

    await wait_until(all_ended)

    assert len(await harness.results()) == 20
    assert await harness.client.hlen("rd:{0}:open") == 0
    assert await harness.client.zcard("rd:{0}:deadlines") == 0


async def test_the_deadline_ends_a_message_that_still_waits_behind_another(
    harness: BrokerHarness,
) -> None:
    await harness.submit(question("m1"))
    await harness.submit(question("m2"), deadline_seconds=0.03)
    await harness.submit(question("m3"))

    reply = await harness.due_reply(question("m2"))
    await harness.settle(await harness.take(), finish())

    assert reply == LAST_RESORT
    assert (await harness.take()).question == question("m3")


async def test_the_deadline_of_one_lets_the_next_of_its_conversation_start(
    harness: BrokerHarness,
) -> None:
    await harness.submit(question("m1"), deadline_seconds=0.03)
    await harness.submit(question("m2"))
    held = await harness.take()
    await harness.due_reply(question("m1"))

    following = await harness.take()

    assert following.question == question("m2")
    assert not await harness.settle(held, finish("late"))
    assert await harness.settle(following, finish("next"))


async def test_a_retry_that_is_due_after_the_deadline_is_dropped(harness: BrokerHarness) -> None:
    await harness.submit(deadline_seconds=0.05)
    await harness.settle(await harness.take(), Retry(b"again", "later", seconds=60))

    await harness.due_reply(question())

    async def nothing_parked() -> bool:
        await harness.broker.maintenance.scheduler.send_due()
        return not await harness.client.exists("rd:{0}:parked", "rd:{0}:delayed")

    assert await wait_until(nothing_parked)
    assert await harness.take_all() == []


async def test_the_time_to_the_next_due_entry_is_returned(harness: BrokerHarness) -> None:
    assert await harness.broker.maintenance.scheduler.send_due() >= 30

    await harness.submit(deadline_seconds=0.5)

    assert 0 < await harness.broker.maintenance.scheduler.send_due() <= 0.5


async def test_an_earlier_due_item_wakes_sleeping_processes(harness: BrokerHarness) -> None:
    await harness.broker.maintenance.scheduler.send_due()
    await harness.submit(question("m1"), deadline_seconds=50)
    first = await harness.broker.maintenance.scheduler.wait_for_wakeup(block_seconds=1.0)
    await harness.submit(question("m1", conversation="c2"), deadline_seconds=60)
    later = await harness.broker.maintenance.scheduler.wait_for_wakeup(block_seconds=0.01)
    await harness.settle((await harness.take_all())[0], Retry(b"again", "away", seconds=5))
    retry = await harness.broker.maintenance.scheduler.wait_for_wakeup(block_seconds=1.0)

    assert first is not None
    assert 49 < first <= 50
    assert later is None
    assert retry is not None
    assert 4 < retry <= 5


async def test_a_process_that_did_not_send_the_last_due_item_is_on_standby(
    harness: BrokerHarness,
) -> None:
    await harness.submit(question("m1"), deadline_seconds=0.01)
    await harness.due_reply(question("m1"))
    other = harness.make()
    await harness.submit(question("m2"), deadline_seconds=20)

    async def later() -> bool:
        timer, stand_by = (
            await harness.broker.maintenance.scheduler.send_due(),
            await other.maintenance.scheduler.send_due(),
        )
        return timer < stand_by < 20.2

    assert await wait_until(later)


async def test_a_record_that_is_gone_does_not_keep_its_place(harness: BrokerHarness) -> None:
    await harness.submit(deadline_seconds=0.02)
    await harness.client.delete("rd:{0}:record:acme/desk/c1/m1")

    async def gone() -> bool:
        await harness.broker.maintenance.scheduler.send_due()
        return not await harness.client.exists("rd:{0}:deadlines")

    assert await wait_until(gone)
    assert await harness.client.exists("rd:{0}:order:acme/desk/c1") == 0


async def test_a_cancelled_message_ends_as_superseded(harness: BrokerHarness) -> None:
    await harness.submit(result_list="chat")
    held = await harness.take()

    cancelled = await harness.broker.producer.cancel(question())

    reply = await harness.broker.replies.read_reply(question())
    assert cancelled
    assert reply is not None
    assert reply["outcome"] == "superseded"
    assert not await harness.settle(held, finish("late", remember=[WRITE]))
    assert await harness.client.exists(HISTORY) == 0
    assert len(await harness.results()) == 1


async def test_cancelling_a_closed_question_has_no_effect(harness: BrokerHarness) -> None:
    await harness.submit()
    await harness.settle(await harness.take(), finish("kept"))

    assert not await harness.broker.producer.cancel(question())
    assert not await harness.broker.producer.cancel(question("unknown"))
    assert await harness.broker.replies.read_reply(question()) == {
        "outcome": "answered",
        "text": "kept",
    }


async def test_cancelling_a_waiting_message_lets_the_others_go_on(harness: BrokerHarness) -> None:
    for message in ("m1", "m2", "m3"):
        await harness.submit(question(message))

    await harness.broker.producer.cancel(question("m2"))
    await harness.settle(await harness.take(), finish())

    assert (await harness.take()).question == question("m3")


async def test_cancelling_a_message_that_was_to_start_later_starts_nothing(
    harness: BrokerHarness,
) -> None:
    await harness.submit(question("m1"), not_before_seconds=0.02)
    await harness.submit(question("m2"))

    await harness.broker.producer.cancel(question("m1"))

    assert (await harness.take()).question == question("m2")
    assert await harness.client.exists("rd:{0}:delayed") == 0


class Meanwhile:
    """A client that lets something happen just before it cancels."""

    def __init__(self, client: Any, happens: Callable[[], Awaitable[object]]) -> None:
        self._client = client
        self._happens = [happens]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def evalsha(self, digest: str, *args: Any) -> Any:
        while digest == CANCEL.digest and self._happens:
            await self._happens.pop()()
        return await self._client.evalsha(digest, *args)


@pytest.mark.parametrize("forget", [True, False])
async def test_a_message_that_comes_in_while_it_is_cancelled_is_left_as_it_is(
    harness: BrokerHarness, forget: bool
) -> None:
    client: Any = Meanwhile(harness.client, lambda: harness.submit(result_list="chat"))

    cancelled = await RedisBroker(client).producer.cancel(question(), forget=forget)

    assert not cancelled
    assert await harness.settle(await harness.take(), finish())
    assert len(await harness.results()) == 1


async def test_a_forgotten_message_leaves_no_word_and_stays_closed(harness: BrokerHarness) -> None:
    await harness.submit(result_list="chat")
    held = await harness.take()

    await harness.broker.producer.cancel(question(), forget=True)

    assert await harness.broker.replies.read_reply(question()) is None
    assert await harness.broker.replies.read_journal(question()) == []
    assert not await harness.settle(held, finish("late", remember=[WRITE]))
    assert await harness.submit() == Duplicate(None)
    assert await harness.kinds() == []


async def test_a_finished_message_can_be_forgotten(harness: BrokerHarness) -> None:
    await harness.submit(result_list="chat")
    await harness.settle(await harness.take(), finish("a secret"))

    was_open = await harness.broker.producer.cancel(question(), forget=True)

    assert not was_open
    assert await harness.broker.replies.read_reply(question()) is None
    assert await harness.results() == []


async def test_forgetting_a_conversation_covers_journals_and_results(
    harness: BrokerHarness,
) -> None:
    await harness.submit(question("m1"), result_list="chat")
    await harness.settle(await harness.take(), finish("a secret"))
    other = question("m1", conversation="c2")
    await harness.submit(other)
    await harness.settle(await harness.take(), finish("another's"))
    await harness.submit(question("m2"))

    await harness.settle(await harness.take(), finish("forgotten", forget="all"))

    assert await harness.broker.replies.read_journal(question("m1")) == []
    assert await harness.broker.replies.read_reply(question("m1")) is None
    assert await harness.results() == []
    assert await harness.broker.replies.read_reply(question("m2")) == {
        "outcome": "answered",
        "text": "forgotten",
    }
    assert await harness.broker.replies.read_reply(other) == {
        "outcome": "answered",
        "text": "another's",
    }


async def test_forgetting_a_merged_message_covers_its_result(harness: BrokerHarness) -> None:
    await harness.submit(question("m1"), not_before_seconds=30)
    await harness.submit(question("m2"), not_before_seconds=30, result_list="chat")

    await harness.broker.producer.cancel(question("m2"), forget=True)

    assert await harness.results() == []


async def test_forgetting_covers_dead_letters(harness: BrokerHarness) -> None:
    await harness.submit(question("m1"))
    dead_letter = Bury("failed", "no", poison_notice=FrameSend("manager", b"notice"))
    await harness.settle(await harness.take(), dead_letter)
    await harness.settle(await harness.take(), Bury("failed", "again"))
    await harness.submit(question("m1", conversation="c2"))
    await harness.settle(await harness.take(), Bury("failed", "another's"))
    await harness.submit(question("m2"))
    before = len(await harness.broker.admin.list_dead_letters())

    await harness.settle(await harness.take(), finish(forget="all"))

    (letter,) = await harness.broker.admin.list_dead_letters()
    assert before == 3
    assert letter.error == "another's"


async def test_a_message_accepted_before_the_tombstone_writes_no_memory(
    harness: BrokerHarness,
) -> None:
    await harness.submit(question("m1"))
    await harness.submit(question("m2"))
    await harness.settle(await harness.take(), finish(forget="history"))
    before = await harness.take()
    await harness.submit(question("m3"))

    settled = await harness.settle(before, finish("before", remember=[WRITE]))
    written_before = await harness.client.exists(HISTORY)
    await harness.settle(await harness.take(), finish("after", remember=[WRITE]))

    assert settled
    assert await harness.broker.replies.read_reply(question("m2")) == {
        "outcome": "answered",
        "text": "before",
    }
    assert written_before == 0
    assert await harness.client.lrange(HISTORY, 0, -1) == [b"said"]


async def test_the_forgetting_message_makes_its_own_writes(harness: BrokerHarness) -> None:
    await harness.submit()

    await harness.settle(await harness.take(), finish(forget="history", remember=[WRITE]))

    assert await harness.client.lrange(HISTORY, 0, -1) == [b"said"]


async def test_a_cancelled_question_is_gone_from_where_it_travelled(harness: BrokerHarness) -> None:
    await harness.submit()
    await harness.settle(await harness.take(), forward())
    await harness.broker.producer.cancel(question())

    for delivery in await harness.take_all("search"):
        assert not await harness.settle(delivery, forward(role="manager"))

    assert await harness.take_all() == []
    assert await harness.client.xlen("rd:{0}:stream:search") == 0
