"""What is asked together, changed or taken back is one question; so is the call for a person."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from broker.errors import BrokerUnavailableError
from envelope.conversation import HANDED_OVER
from envelope.role import Role
from gateway.chat.connector import ChatChannel
from gateway.chat.ports import ChatPolicy, Incoming
from tests.support.chat_harness import (
    ANSWER,
    FlakyProducer,
    Holding,
    memory_of,
    open_connector,
    wait_until_acknowledged,
)
from tests.support.fake_channel import FakeChannel, make_incoming
from tests.support.fake_handover import FakeHandOver
from tests.support.waiting import wait_until, yield_to_tasks
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


async def test_without_a_handover_the_desk_answers_the_command_itself(
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


SHORT = ChatPolicy(burst_seconds=0.3)


PAUSES = [
    pytest.param(turns, marks=[pytest.mark.long] if turns % 12 else []) for turns in range(0, 60, 6)
]
"""After how many turns of the loop the other one comes; every second one is a long test."""
EACH = ChatPolicy(burst_seconds=0.0, supersedes=False)


@dataclass
class BurstDriver:
    """A channel of a fake platform, and what one person does there."""

    harness: WorkerHarness
    connector: ChatChannel
    fake_channel: FakeChannel
    order: float = field(default=0.0)

    async def say(self, id_: str, text: str, **fields: str) -> None:
        self.order += 1
        await self.connector.intake.accept(
            make_incoming(self.connector.name_question("c", id_), text, self.order, **fields)
        )

    async def edit(self, id_: str, text: str, *, at: float = 0.0, **fields: str) -> None:
        self.order += 1
        order = at or self.order
        question = self.connector.name_question("c", f"{id_}:{order:g}")
        await self.connector.intake.accept(
            make_incoming(question, text, order, edits=id_, **fields)
        )

    async def delete(self, id_: str) -> None:
        await self.connector.intake.withdraw(
            self.connector.name_question("c", f"{id_}:deleted"), id_
        )

    async def outcomes(self, *texts: str) -> None:
        """Wait until these are asked and answered, and nothing else is shown or left."""
        await wait_until(lambda: list(self.fake_channel.posts.values()).count(ANSWER) == len(texts))
        await wait_until_acknowledged(self.harness, "wall")
        await wait_until(lambda: len(self.fake_channel.posts) == len(texts))
        assert [seen["text"] for seen in self.harness.script.seen[Role.RESPONSE]] == list(texts)


@asynccontextmanager
async def driver(
    harness: WorkerHarness, policy: ChatPolicy = SHORT, **options: Any
) -> AsyncIterator[BurstDriver]:
    fake_channel = FakeChannel()
    async with open_connector(harness, fake_channel, policy=policy, **options) as connector:
        yield BurstDriver(harness, connector, fake_channel)


async def test_an_edit_of_a_message_that_joined_another_changes_the_question(
    harness: WorkerHarness,
) -> None:
    async with driver(harness) as at:
        await at.say("1", "I have")
        await at.say("2", "a qestion")
        await at.say("3", "on routing")
        await at.edit("2", "a question")

        async with harness.open():
            await at.outcomes("I have\na question\non routing")
        assert at.fake_channel.places[max(at.fake_channel.posts)] == {"place": "1"}


async def test_messages_join_an_edited_one_and_may_be_edited_then(harness: WorkerHarness) -> None:
    async with driver(harness) as at:
        await at.say("1", "I hve")
        await at.edit("1", "I have")
        await at.say("2", "a qestion")
        await at.edit("2", "a question")
        await at.edit("1", "We have")

        async with harness.open():
            await at.outcomes("We have\na question")


async def test_a_deleted_message_is_removed_from_the_question(harness: WorkerHarness) -> None:
    async with driver(harness) as at:
        await at.say("1", "Good morning")
        await at.say("2", "How?")
        await at.say("3", "Sorry")
        await at.delete("3")
        await at.delete("1")

        async with harness.open():
            await at.outcomes("How?")
        assert at.fake_channel.places[max(at.fake_channel.posts)] == {"place": "2"}


async def test_when_everything_is_taken_back_nothing_is_asked(harness: WorkerHarness) -> None:
    async with driver(harness) as at:
        await at.say("1", "I have")
        await at.say("2", "a question")
        await at.delete("1")
        await at.delete("2")
        await at.delete("2")

        async with harness.open():
            await wait_until_acknowledged(harness, "wall")
            assert (
                await at.connector.memory.open_messages(at.connector.name_question("c", "-")) == {}
            )
            await at.outcomes()


async def test_an_edit_while_the_question_is_answered_asks_it_again(harness: WorkerHarness) -> None:
    async with driver(harness) as at:
        edited: list[bool] = []

        async def meanwhile() -> dict[str, str]:
            if not edited:
                edited.append(True)
                await at.edit("2", "and what?")
            return {}

        harness.script.next(Role.SEARCH, lambda _: meanwhile())
        await at.say("1", "How")
        await at.say("2", "and why?")

        async with harness.open():
            await at.outcomes("How\nand what?")


async def test_an_edit_after_the_answer_asks_everything_again_and_keeps_the_answer(
    harness: WorkerHarness,
) -> None:
    async with driver(harness) as at:
        await at.say("1", "How")
        await at.say("2", "and why?")
        async with harness.open():
            await at.outcomes("How\nand why?")

            await at.edit("2", "and what?")

            await at.outcomes("How\nand why?", "How\nand what?")


async def test_taking_back_what_was_answered_changes_nothing(harness: WorkerHarness) -> None:
    async with driver(harness) as at:
        await at.say("1", "How")
        await at.say("2", "and why?")
        async with harness.open():
            await at.outcomes("How\nand why?")

            await at.delete("2")

            await at.outcomes("How\nand why?")


async def test_an_edit_that_comes_late_or_twice_does_not_replace_a_newer_one(
    harness: WorkerHarness,
) -> None:
    async with driver(harness) as at:
        await at.say("1", "one")
        await at.edit("1", "two", at=10)
        await at.edit("1", "three", at=20)
        await at.edit("1", "two", at=10)
        await at.edit("1", "three", at=20)
        await at.say("1", "one")

        async with harness.open():
            await at.outcomes("three")


async def test_the_deletion_that_is_sent_again_does_not_stop_a_newer_edit(
    harness: WorkerHarness,
) -> None:
    async with driver(harness) as at:
        await at.say("1", "one")
        await at.say("2", "two")
        await at.delete("2")
        await at.edit("1", "three")
        await at.delete("2")
        await at.edit("2", "four")

        async with harness.open():
            await at.outcomes("three")


async def test_an_edit_that_died_on_its_way_is_taken_up_where_it_stopped(
    harness: WorkerHarness,
) -> None:
    broker = harness.make_broker()
    broker.producer = producer = FlakyProducer(broker.producer, 0)
    async with driver(harness, broker=broker) as at:
        await at.say("1", "one")
        await at.say("2", "two")
        producer.times = 1
        with pytest.raises(BrokerUnavailableError):
            await at.edit("2", "three", at=10)
        await at.edit("2", "three", at=10)

        async with harness.open():
            await at.outcomes("one\nthree")


@pytest.mark.parametrize("pause", PAUSES)
async def test_two_edits_at_once_through_two_processes_are_one_question(
    harness: WorkerHarness, pause: int
) -> None:
    async with driver(harness) as at, driver(harness) as other:
        other.order = 50
        await at.say("1", "one")
        await at.say("2", "two")

        async def later() -> None:
            await yield_to_tasks(pause)
            await other.edit("2", "zwei")

        await asyncio.gather(at.edit("1", "eins"), later())

        async with harness.open():
            await wait_until_acknowledged(harness, "wall")
            await wait_until(
                lambda: (
                    ANSWER in [*at.fake_channel.posts.values(), *other.fake_channel.posts.values()]
                )
            )
            await wait_until_acknowledged(harness, "wall")
        assert [seen["text"] for seen in harness.script.seen[Role.RESPONSE]] == ["eins\nzwei"]


@pytest.mark.parametrize("pause", PAUSES)
@pytest.mark.parametrize("policy", [SHORT, EACH])
async def test_a_message_that_is_edited_while_it_is_taken_in_is_asked_once(
    harness: WorkerHarness, pause: int, policy: ChatPolicy
) -> None:
    async with driver(harness, policy) as at:

        async def later() -> None:
            await yield_to_tasks(pause)
            await at.edit("1", "eins")

        await asyncio.gather(at.say("1", "one"), later())

        async with harness.open():
            await at.outcomes("eins")


async def test_a_message_that_its_edit_overtakes_is_not_asked_beside_it(
    harness: WorkerHarness,
) -> None:
    broker = harness.make_broker()
    broker.producer = producer = Holding(broker.producer, "submit")
    async with driver(harness, EACH, broker=broker) as at, asyncio.TaskGroup() as tasks:
        tasks.create_task(at.say("1", "one"))
        await producer.holds.wait()
        await at.edit("1", "eins")
        producer.goes_on.set()

        async with harness.open():
            await at.outcomes("eins")


async def test_an_edit_that_another_overtakes_leaves_the_question_to_it(
    harness: WorkerHarness,
) -> None:
    memory = Holding(memory_of(harness, "wall"), "open_messages")
    async with driver(harness, EACH, memory=memory) as at, asyncio.TaskGroup() as tasks:
        await at.say("1", "one")
        tasks.create_task(at.edit("1", "eins", at=10))
        await memory.holds.wait()
        await at.edit("1", "uno", at=20)
        memory.goes_on.set()

        async with harness.open():
            await at.outcomes("uno")


@pytest.mark.parametrize("pause", PAUSES)
async def test_a_message_that_joins_while_another_is_edited_is_not_lost(
    harness: WorkerHarness, pause: int
) -> None:
    async with driver(harness) as at, driver(harness) as other:
        other.order = 50
        await at.say("1", "one")

        async def later() -> None:
            await yield_to_tasks(pause)
            await other.say("2", "two")

        await asyncio.gather(at.edit("1", "eins"), later())

        async with harness.open():
            await wait_until(
                lambda: (
                    ANSWER in [*at.fake_channel.posts.values(), *other.fake_channel.posts.values()]
                )
            )
            await wait_until_acknowledged(harness, "wall")
        # Which comes first depends on which was there first; it is one question all the same.
        assert sorted(harness.script.seen[Role.RESPONSE][-1]["text"].split()) == ["eins", "two"]


async def test_a_question_that_becomes_a_command_leaves_the_rest_asked(
    harness: WorkerHarness,
) -> None:
    async with driver(harness) as at:
        await at.say("1", "How?")
        await at.say("2", "please")
        await at.edit("2", "help", command="help")

        async with harness.open():
            await wait_until(lambda: sorted(at.fake_channel.posts.values()) == ["Done.", ANSWER])
            await wait_until_acknowledged(harness, "wall")
        assert [seen["text"] for seen in harness.script.seen[Role.RESPONSE]] == ["How?"]
