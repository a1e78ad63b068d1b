"""A question that Redis lost ends where it was asked, too."""

from tests.support.chat_harness import (
    ANSWER,
    AT_ONCE,
    TEXTS,
    open_connector,
    wait_until_acknowledged,
)
from tests.support.fake_channel import FakeChannel, make_incoming
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

APOLOGY = TEXTS.text("apology", "en")


async def test_a_question_that_redis_lost_ends_with_an_apology_in_its_placeholder(
    harness: WorkerHarness,
) -> None:
    fake_channel = FakeChannel()
    async with open_connector(harness, fake_channel, policy=AT_ONCE) as connector:
        await connector.intake.accept(make_incoming(connector.name_question("c", "1"), "How?", 1.0))
        await wait_until(lambda: len(fake_channel.posts) == 1)

        await harness.client.flushall()

        await wait_until(lambda: list(fake_channel.posts.values()) == [APOLOGY])


async def test_a_question_that_is_answered_gets_nothing_but_its_answer(
    harness: WorkerHarness,
) -> None:
    fake_channel = FakeChannel()
    async with open_connector(harness, fake_channel, policy=AT_ONCE) as connector, harness.open():
        await connector.intake.accept(make_incoming(connector.name_question("c", "1"), "How?", 1.0))
        await wait_until(lambda: ANSWER in fake_channel.posts.values())
        await wait_until_acknowledged(harness, "wall")
        # What watches for losses sees the end as well; a further question has its turn after.
        await connector.intake.accept(make_incoming(connector.name_question("c", "2"), "How?", 2.0))
        await wait_until(lambda: list(fake_channel.posts.values()) == [ANSWER, ANSWER])
