import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from broker.port import Bury, Duplicate, Retry, Send
from broker.redis_broker import RedisBroker
from broker.scripts import CANCEL
from envelope.memory_write import Append
from tests.broker.rig import LAST_RESORT, Rig, eventually, finish, forward, question

HISTORY = "rd:{0}:mem:history"
WRITE = Append(key=HISTORY, values=("said",), keep=10, ttl_seconds=60)


async def test_at_the_deadline_the_user_gets_the_last_resort(rig: Rig) -> None:
    await rig.submit(deadline_seconds=0.03, result_list="chat")

    assert await rig.due_reply(question()) == LAST_RESORT
    assert await rig.kinds() == ["accepted", "finished"]
    assert len(await rig.results()) == 1


async def test_the_deadline_ends_a_question_that_a_worker_holds(rig: Rig) -> None:
    await rig.submit(deadline_seconds=0.03, result_list="chat")
    held = await rig.take()
    await rig.due_reply(question())

    settled = await rig.settle(held, finish("too late", remember=[WRITE]))

    assert not settled
    assert await rig.broker.reply(question()) == LAST_RESORT
    assert await rig.client.exists(HISTORY) == 0
    assert len(await rig.results()) == 1
    assert await rig.client.xlen("rd:{0}:stream:manager") == 0


async def test_many_that_look_at_once_end_a_question_once(rig: Rig) -> None:
    asked = [question(conversation=f"c{number}") for number in range(20)]
    for each in asked:
        await rig.submit(each, deadline_seconds=0.02, result_list="chat")
    others = [rig.make() for _ in range(4)]

    async def all_ended() -> bool:
        await asyncio.gather(*(other.due() for other in others))
        return None not in [await rig.broker.reply(each) for each in asked]

    await eventually(all_ended)

    assert len(await rig.results()) == 20
    assert await rig.client.hlen("rd:{0}:open") == 0
    assert await rig.client.zcard("rd:{0}:deadlines") == 0


async def test_the_deadline_ends_a_message_that_still_waits_behind_another(rig: Rig) -> None:
    await rig.submit(question("m1"))
    await rig.submit(question("m2"), deadline_seconds=0.03)
    await rig.submit(question("m3"))

    reply = await rig.due_reply(question("m2"))
    await rig.settle(await rig.take(), finish())

    assert reply == LAST_RESORT
    assert (await rig.take()).question == question("m3")


async def test_the_deadline_of_one_lets_the_next_of_its_conversation_start(rig: Rig) -> None:
    await rig.submit(question("m1"), deadline_seconds=0.03)
    await rig.submit(question("m2"))
    held = await rig.take()
    await rig.due_reply(question("m1"))

    following = await rig.take()

    assert following.question == question("m2")
    assert not await rig.settle(held, finish("late"))
    assert await rig.settle(following, finish("next"))


async def test_a_retry_that_is_due_after_the_deadline_is_dropped(rig: Rig) -> None:
    await rig.submit(deadline_seconds=0.05)
    await rig.settle(await rig.take(), Retry(b"again", "later", seconds=60))

    await rig.due_reply(question())

    async def nothing_parked() -> bool:
        await rig.broker.due()
        return not await rig.client.exists("rd:{0}:parked", "rd:{0}:delayed")

    assert await eventually(nothing_parked)
    assert await rig.take_all() == []


async def test_the_time_to_the_next_due_thing_is_told(rig: Rig) -> None:
    assert await rig.broker.due() >= 30

    await rig.submit(deadline_seconds=0.5)

    assert 0 < await rig.broker.due() <= 0.5


async def test_who_becomes_due_first_wakes_the_sleepers(rig: Rig) -> None:
    await rig.broker.due()
    await rig.submit(question("m1"), deadline_seconds=50)
    first = await rig.broker.alarm(block_seconds=1.0)
    await rig.submit(question("m1", conversation="c2"), deadline_seconds=60)
    later = await rig.broker.alarm(block_seconds=0.01)
    await rig.settle((await rig.take_all())[0], Retry(b"again", "away", seconds=5))
    retry = await rig.broker.alarm(block_seconds=1.0)

    assert first is not None
    assert 49 < first <= 50
    assert later is None
    assert retry is not None
    assert 4 < retry <= 5


async def test_who_did_not_send_what_was_due_last_stands_by(rig: Rig) -> None:
    await rig.submit(question("m1"), deadline_seconds=0.01)
    await rig.due_reply(question("m1"))
    other = rig.make()
    await rig.submit(question("m2"), deadline_seconds=20)

    async def later() -> bool:
        timer, stand_by = await rig.broker.due(), await other.due()
        return timer < stand_by < 20.2

    assert await eventually(later)


async def test_a_record_that_is_gone_does_not_keep_its_place(rig: Rig) -> None:
    await rig.submit(deadline_seconds=0.02)
    await rig.client.delete("rd:{0}:record:acme/desk/c1/m1")

    async def gone() -> bool:
        await rig.broker.due()
        return not await rig.client.exists("rd:{0}:deadlines")

    assert await eventually(gone)
    assert await rig.client.exists("rd:{0}:order:acme/desk/c1") == 0


async def test_a_cancelled_message_ends_as_superseded(rig: Rig) -> None:
    await rig.submit(result_list="chat")
    held = await rig.take()

    cancelled = await rig.broker.cancel(question())

    reply = await rig.broker.reply(question())
    assert cancelled
    assert reply is not None
    assert reply["outcome"] == "superseded"
    assert not await rig.settle(held, finish("late", remember=[WRITE]))
    assert await rig.client.exists(HISTORY) == 0
    assert len(await rig.results()) == 1


async def test_cancelling_what_has_its_outcome_does_nothing(rig: Rig) -> None:
    await rig.submit()
    await rig.settle(await rig.take(), finish("kept"))

    assert not await rig.broker.cancel(question())
    assert not await rig.broker.cancel(question("unknown"))
    assert await rig.broker.reply(question()) == {"outcome": "answered", "text": "kept"}


async def test_cancelling_a_waiting_message_lets_the_others_go_on(rig: Rig) -> None:
    for message in ("m1", "m2", "m3"):
        await rig.submit(question(message))

    await rig.broker.cancel(question("m2"))
    await rig.settle(await rig.take(), finish())

    assert (await rig.take()).question == question("m3")


async def test_cancelling_a_message_that_was_to_start_later_starts_nothing(rig: Rig) -> None:
    await rig.submit(question("m1"), not_before_seconds=0.02)
    await rig.submit(question("m2"))

    await rig.broker.cancel(question("m1"))

    assert (await rig.take()).question == question("m2")
    assert await rig.client.exists("rd:{0}:delayed") == 0


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
    rig: Rig, forget: bool
) -> None:
    client: Any = Meanwhile(rig.client, lambda: rig.submit(result_list="chat"))

    cancelled = await RedisBroker(client).cancel(question(), forget=forget)

    assert not cancelled
    assert await rig.settle(await rig.take(), finish())
    assert len(await rig.results()) == 1


async def test_a_forgotten_message_leaves_no_word_and_stays_closed(rig: Rig) -> None:
    await rig.submit(result_list="chat")
    held = await rig.take()

    await rig.broker.cancel(question(), forget=True)

    assert await rig.broker.reply(question()) is None
    assert await rig.broker.journal(question()) == []
    assert not await rig.settle(held, finish("late", remember=[WRITE]))
    assert await rig.submit() == Duplicate(None)
    assert await rig.kinds() == []


async def test_a_finished_message_can_be_forgotten(rig: Rig) -> None:
    await rig.submit(result_list="chat")
    await rig.settle(await rig.take(), finish("a secret"))

    was_open = await rig.broker.cancel(question(), forget=True)

    assert not was_open
    assert await rig.broker.reply(question()) is None
    assert await rig.results() == []


async def test_forgetting_a_conversation_covers_journals_and_results(rig: Rig) -> None:
    await rig.submit(question("m1"), result_list="chat")
    await rig.settle(await rig.take(), finish("a secret"))
    other = question("m1", conversation="c2")
    await rig.submit(other)
    await rig.settle(await rig.take(), finish("another's"))
    await rig.submit(question("m2"))

    await rig.settle(await rig.take(), finish("forgotten", forget="all"))

    assert await rig.broker.journal(question("m1")) == []
    assert await rig.broker.reply(question("m1")) is None
    assert await rig.results() == []
    assert await rig.broker.reply(question("m2")) == {"outcome": "answered", "text": "forgotten"}
    assert await rig.broker.reply(other) == {"outcome": "answered", "text": "another's"}


async def test_forgetting_a_merged_message_covers_its_result(rig: Rig) -> None:
    await rig.submit(question("m1"), not_before_seconds=30)
    await rig.submit(question("m2"), not_before_seconds=30, result_list="chat")

    await rig.broker.cancel(question("m2"), forget=True)

    assert await rig.results() == []


async def test_forgetting_covers_dead_letters(rig: Rig) -> None:
    await rig.submit(question("m1"))
    told = Bury("failed", "no", tell=Send("manager", b"told"))
    await rig.settle(await rig.take(), told)
    await rig.settle(await rig.take(), Bury("failed", "again"))
    await rig.submit(question("m1", conversation="c2"))
    await rig.settle(await rig.take(), Bury("failed", "another's"))
    await rig.submit(question("m2"))
    before = len(await rig.broker.dead_letters())

    await rig.settle(await rig.take(), finish(forget="all"))

    (letter,) = await rig.broker.dead_letters()
    assert before == 3
    assert letter.error == "another's"


async def test_a_message_accepted_before_the_tombstone_writes_no_memory(rig: Rig) -> None:
    await rig.submit(question("m1"))
    await rig.submit(question("m2"))
    await rig.settle(await rig.take(), finish(forget="history"))
    before = await rig.take()
    await rig.submit(question("m3"))

    settled = await rig.settle(before, finish("before", remember=[WRITE]))
    written_before = await rig.client.exists(HISTORY)
    await rig.settle(await rig.take(), finish("after", remember=[WRITE]))

    assert settled
    assert await rig.broker.reply(question("m2")) == {"outcome": "answered", "text": "before"}
    assert written_before == 0
    assert await rig.client.lrange(HISTORY, 0, -1) == [b"said"]


async def test_the_forgetting_message_makes_its_own_writes(rig: Rig) -> None:
    await rig.submit()

    await rig.settle(await rig.take(), finish(forget="history", remember=[WRITE]))

    assert await rig.client.lrange(HISTORY, 0, -1) == [b"said"]


async def test_a_cancelled_question_is_gone_from_where_it_travelled(rig: Rig) -> None:
    await rig.submit()
    await rig.settle(await rig.take(), forward())
    await rig.broker.cancel(question())

    for delivery in await rig.take_all("search"):
        assert not await rig.settle(delivery, forward(role="manager"))

    assert await rig.take_all() == []
    assert await rig.client.xlen("rd:{0}:stream:search") == 0
