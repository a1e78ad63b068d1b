"""The sign that somebody works at a message stays until nobody does any more."""

import asyncio
import json

from gateway.chat.ports import ChatPolicy
from gateway.chat.typing_indicator import TypingIndicator
from tests.support.chat_harness import Holding, open_connector, wait_until_acknowledged
from tests.support.fake_channel import FakeChannel, make_incoming
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

EACH = ChatPolicy(burst_seconds=0.0, supersedes=False)


async def test_a_sign_that_was_left_to_an_edit_goes_when_that_is_not_accepted(
    harness: WorkerHarness,
) -> None:
    fake_channel = FakeChannel()
    broker = harness.make_broker(quota=0)
    broker.producer = full = Holding(broker.producer, "submit")
    async with (
        open_connector(harness, fake_channel, policy=EACH) as connector,
        open_connector(harness, fake_channel, policy=EACH, broker=broker) as other,
        asyncio.TaskGroup() as tasks,
    ):
        await connector.intake.accept(make_incoming(connector.name_question("c", "1"), "one", 1.0))
        await fake_channel.signed.wait()
        edit = make_incoming(connector.name_question("c", "1:2"), "eins", 2.0, edits="1")
        tasks.create_task(other.intake.accept(edit))
        await full.holds.wait()
        await wait_until_acknowledged(harness, "wall")
        assert "rested" not in fake_channel.calls

        full.goes_on.set()

        await wait_until(lambda: "rested" in fake_channel.calls)


async def test_a_sign_goes_also_when_its_own_event_comes_again_meanwhile(
    harness: WorkerHarness,
) -> None:
    fake_channel = FakeChannel()
    async with open_connector(harness, fake_channel, policy=EACH) as connector:
        message = make_incoming(connector.name_question("c", "1"), "one", 1.0)
        await connector.memory.note(message.question, post=json.dumps(message.post))
        await connector.memory.open(message.question, message.order)
        signs = TypingIndicator(connector.memory, fake_channel, deadline_seconds=60.0)

        await signs.rest(message.question, message.post)

    assert fake_channel.calls == ["rested"]
