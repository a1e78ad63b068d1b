import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from broker.context import BrokerContext
from broker.errors import BrokerUnavailableError
from broker.reply_waiter import ReplyWaiter
from broker.settlement import BrokerLimits
from broker.values import Fields
from envelope.question import Question
from tests.support.broker_harness import LAST_RESORT, BrokerHarness, finish, question
from tests.support.waiting import within


async def test_the_outcome_of_an_answered_question_is_there_at_once(harness: BrokerHarness) -> None:
    await harness.submit()
    await harness.settle(await harness.take(), finish("known"))

    assert await harness.broker.replies.await_reply(question()) == {
        "outcome": "answered",
        "text": "known",
    }


async def test_waiting_for_an_open_question_ends_in_time_with_nothing(
    harness: BrokerHarness,
) -> None:
    await harness.submit()

    assert await harness.broker.replies.await_reply(question(), block_seconds=0.03) is None


async def test_a_waiter_without_its_own_read_ends_at_its_timeout_or_cancellation(
    harness: BrokerHarness,
) -> None:
    replies = make_watched_waiter(harness)
    first, second = await two_open(harness)

    async with within(), asyncio.TaskGroup() as tasks:
        reader = tasks.create_task(replies.await_reply(first, block_seconds=15.0))
        await replies.looked.wait()
        assert await replies.await_reply(second, block_seconds=0.03) is None
        cancelled = tasks.create_task(replies.await_reply(second, block_seconds=15.0))
        replies.looked.clear()
        await replies.looked.wait()
        cancelled.cancel()
        for delivery in await harness.take_all():
            await harness.settle(delivery, finish(str(delivery.question.conversation_id)))

    assert cancelled.cancelled()
    assert reader.result() == {"outcome": "answered", "text": "c1"}
    assert await replies.await_reply(second, block_seconds=0.0) == {
        "outcome": "answered",
        "text": "c2",
    }


async def test_waiters_are_notified_if_redis_lost_the_question(
    harness: BrokerHarness,
) -> None:
    await harness.submit()
    await harness.client.flushall()

    reply = await harness.broker.replies.await_reply(question(), block_seconds=30.0)

    assert reply is not None
    assert (reply["outcome"], reply["termination_reason"]) == ("failed", "lost")
    assert reply["message_id"] == "m1"


async def test_a_waiter_for_a_forgotten_message_receives_its_outcome(
    harness: BrokerHarness,
) -> None:
    await harness.submit()

    async with within(), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(
            harness.broker.replies.await_reply(question(), block_seconds=9.0)
        )
        late = tasks.create_task(harness.broker.producer.cancel(question(), forget=True))

    assert late.result()
    for reply in (
        waiting.result(),
        await harness.broker.replies.await_reply(question(), block_seconds=9.0),
    ):
        assert reply is not None
        assert (reply["outcome"], reply["text"]) == ("superseded", "")


async def wait_repeatedly(harness: BrokerHarness, conversation: str) -> Any:
    """Wait for an outcome as a channel does: again and again."""
    while True:
        asked = question(conversation=conversation)
        reply = await harness.broker.replies.await_reply(asked, block_seconds=0.2)
        if reply is not None:
            return reply["text"]


async def test_many_wait_at_once_and_each_gets_its_own_reply(harness: BrokerHarness) -> None:
    names = [f"c{number}" for number in range(40)]
    for name in names:
        await harness.submit(question(conversation=name))

    async with within(), asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(wait_repeatedly(harness, name)) for name in [*names, *names]]
        while not all(task.done() for task in waiting):
            for delivery in await harness.take_all():
                text = delivery.question.conversation_id
                assert await harness.settle(delivery, finish(text))

    assert [task.result() for task in waiting] == [*names, *names]


async def test_a_reader_that_stops_waiting_passes_on_the_read(harness: BrokerHarness) -> None:
    for name in ("c1", "c2", "c3"):
        await harness.submit(question(conversation=name))

    async with within(), asyncio.TaskGroup() as tasks:
        first = tasks.create_task(wait_repeatedly(harness, "c1"))
        await harness.broker.replies.await_reply(question(conversation="c2"), block_seconds=0.01)
        others = [tasks.create_task(wait_repeatedly(harness, name)) for name in ("c2", "c3")]
        await harness.broker.replies.await_reply(question(conversation="c2"), block_seconds=0.01)
        first.cancel()
        for delivery in await harness.take_all():
            await harness.settle(delivery, finish(delivery.question.conversation_id))

    assert [task.result() for task in others] == ["c2", "c3"]


async def test_an_outcome_by_deadline_or_cancellation_wakes_the_waiters(
    harness: BrokerHarness,
) -> None:
    await harness.submit(question(conversation="c1"), deadline_seconds=0.05)
    await harness.submit(question(conversation="c2"))

    async with within(), asyncio.TaskGroup() as tasks:
        late = tasks.create_task(wait_repeatedly(harness, "c1"))
        cancelled = tasks.create_task(wait_repeatedly(harness, "c2"))
        await harness.broker.producer.cancel(question(conversation="c2"))
        await harness.due_reply(question(conversation="c1"))

    assert late.result() == LAST_RESORT["text"]
    assert cancelled.result() == ""


class WatchedWaiter(ReplyWaiter):
    """Shows when somebody has looked and waits for notices, and what was looked up after those.

    It ends `ends_next` once somebody was given the turn to read, and has not woken up yet.
    """

    ends_next: Question | None = None

    def __init__(self, context: BrokerContext) -> None:
        super().__init__(context)
        self.looked = asyncio.Event()
        self.asked: list[Question] = []

    async def find_end(self, question: Question) -> Fields | None:
        end = await super().find_end(question)
        self.looked.set()
        return end

    async def find_ends(self, questions: Sequence[Question]) -> list[Fields | None]:
        self.asked += questions
        return await super().find_ends(questions)

    def _pass_reading_on(self) -> None:
        super()._pass_reading_on()
        if self.ends_next is not None:
            self.publish_local(self.ends_next, {"outcome": "answered"})


def make_watched_waiter(harness: BrokerHarness) -> WatchedWaiter:
    context = BrokerContext(harness.client, 1, BrokerLimits(1000, 10, 3, 10, 10), 1000)
    return WatchedWaiter(context)


async def two_open(harness: BrokerHarness) -> tuple[Question, Question]:
    """Submit the questions of two conversations."""
    first, second = question(conversation="c1"), question(conversation="c2")
    await harness.submit(first)
    await harness.submit(second)
    return first, second


async def test_a_new_reader_still_receives_its_own_reply(
    harness: BrokerHarness,
) -> None:
    replies = make_watched_waiter(harness)
    first, second = await two_open(harness)

    async with within(8), asyncio.TaskGroup() as tasks:
        tasks.create_task(replies.await_reply(first, block_seconds=9.0))
        await replies.looked.wait()
        replies.looked.clear()
        waiting = tasks.create_task(replies.await_reply(second, block_seconds=9.0))
        await replies.looked.wait()
        replies.ends_next = second
        for delivery in await harness.take_all():
            if delivery.question == first:
                await harness.settle(delivery, finish())

    assert waiting.result() == {"outcome": "answered"}


@pytest.mark.parametrize("answer", ["arrives", "was somebody else's", "was lost"])
async def test_an_outcome_is_read_only_if_the_settlement_of_this_process_does_not_report_it(
    harness: BrokerHarness, answer: str
) -> None:
    replies = make_watched_waiter(harness)
    mine, other = await two_open(harness)

    async with within(), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(replies.await_reply(mine, block_seconds=60.0))
        await replies.looked.wait()
        replies.looked.clear()
        following = tasks.create_task(replies.await_reply(other, block_seconds=60.0))
        await replies.looked.wait()
        held = {delivery.question: delivery for delivery in await harness.take_all()}
        with suppress(BrokerUnavailableError):
            async with replies.ending([mine]):
                await harness.settle(held[mine], finish("of Redis"))
                await harness.settle(held[other], finish())
                # Notices come in their order: the one of `mine` was read by then.
                await following
                assert not waiting.done()
                if answer == "arrives":
                    replies.publish_local(mine, {"text": "of the settlement"})
                if answer == "was lost":
                    raise BrokerUnavailableError("no answer")
        reply = await waiting

    arrives = answer == "arrives"
    assert reply is not None
    assert reply["text"] == ("of the settlement" if arrives else "of Redis")
    assert replies.asked == ([other] if arrives else [other, mine])
