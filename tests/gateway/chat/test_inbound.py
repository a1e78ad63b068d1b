"""The command that asks for a person sends the conversation once, and says truly whether it did."""

import pytest

from envelope.conversation import HANDED_OVER
from envelope.role import Role
from gateway.chat.ports import Incoming
from tests.support.chat_harness import memory_of, open_connector
from tests.support.fake_channel import FakeChannel
from tests.support.fake_handover import FakeHandOver
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness


@pytest.mark.parametrize(("accepts", "told"), [(True, "sent"), (False, "failed")])
async def test_a_repeated_command_asks_a_person_once(
    harness: WorkerHarness, accepts: bool, told: str
) -> None:
    people = FakeHandOver(accepts=accepts)
    channel = FakeChannel()
    async with harness.open(), open_connector(harness, channel, handover=people) as opened:
        question = opened.name_question("7", "1")
        incoming = Incoming(
            question, "/person call me", {"chat": "7"}, 1.0, command="person",
            arguments=("call", "me"),
        )  # fmt: skip
        await opened.intake.accept(incoming)
        await opened.intake.accept(incoming)
        await wait_until(lambda: "Done." in channel.posts.values())

    assert people.asked == [("1", "call me", "en")]
    fields = await memory_of(harness, channel.name).fields(question)
    assert (fields[HANDED_OVER], fields["fixed"]) == (told, "person")
    assert len(harness.script.seen[Role.COMMAND]) == 1


async def test_where_nobody_takes_over_the_desk_answers_the_command_itself(
    harness: WorkerHarness,
) -> None:
    channel = FakeChannel()
    async with harness.open(), open_connector(harness, channel) as opened:
        question = opened.name_question("7", "1")
        await opened.intake.accept(
            Incoming(question, "/person", {"chat": "7"}, 1.0, command="person")
        )
        await wait_until(lambda: "Done." in channel.posts.values())

    assert HANDED_OVER not in await memory_of(harness, channel.name).fields(question)
