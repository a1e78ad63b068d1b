"""What becomes of messages that were asked together when one of them is changed or taken back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from broker.errors import BrokerUnavailableError
from envelope.role import Role
from gateway.pushing.door import PushDoor
from gateway.pushing.port import Manners
from tests.gateway.pushing.rig import (
    ANSWER,
    Faltering,
    Holding,
    acknowledged,
    memory_of,
    push_door_of,
    until,
)
from tests.gateway.pushing.wall import Wall, said
from tests.worker.cast import House

SHORT = Manners(burst_seconds=0.3)
EACH = Manners(burst_seconds=0.0, supersedes=False)


@dataclass
class Talk:
    """A door before a wall, and what one person does there."""

    house: House
    door: PushDoor
    wall: Wall
    order: float = field(default=0.0)

    async def say(self, id_: str, text: str, **fields: str) -> None:
        self.order += 1
        await self.door.intake.accept(said(self.door.named("c", id_), text, self.order, **fields))

    async def edit(self, id_: str, text: str, *, at: float = 0.0, **fields: str) -> None:
        self.order += 1
        order = at or self.order
        question = self.door.named("c", f"{id_}:{order:g}")
        await self.door.intake.accept(said(question, text, order, edits=id_, **fields))

    async def delete(self, id_: str) -> None:
        await self.door.intake.withdraw(self.door.named("c", f"{id_}:deleted"), id_)

    async def outcomes(self, *texts: str) -> None:
        """Wait until these are asked and answered, and nothing else is shown or left."""
        await until(lambda: list(self.wall.posts.values()).count(ANSWER) == len(texts))
        await acknowledged(self.house, "wall")
        await until(lambda: len(self.wall.posts) == len(texts))
        assert [seen["text"] for seen in self.house.script.seen[Role.RESPONSE]] == list(texts)


@asynccontextmanager
async def talk(house: House, manners: Manners = SHORT, **options: Any) -> AsyncIterator[Talk]:
    wall = Wall()
    async with push_door_of(house, wall, manners=manners, **options) as door:
        yield Talk(house, door, wall)


async def test_an_edit_of_a_message_that_joined_another_changes_the_question(house: House) -> None:
    async with talk(house) as at:
        await at.say("1", "I have")
        await at.say("2", "a qestion")
        await at.say("3", "on routing")
        await at.edit("2", "a question")

        async with house.open():
            await at.outcomes("I have\na question\non routing")
        assert at.wall.places[max(at.wall.posts)] == {"place": "1"}


async def test_an_edit_of_the_message_that_others_joined_keeps_theirs(house: House) -> None:
    async with talk(house) as at:
        await at.say("1", "I hve")
        await at.say("2", "a question")
        await at.edit("1", "I have")

        async with house.open():
            await at.outcomes("I have\na question")


async def test_messages_join_an_edited_one_and_may_be_edited_then(house: House) -> None:
    async with talk(house) as at:
        await at.say("1", "I hve")
        await at.edit("1", "I have")
        await at.say("2", "a qestion")
        await at.edit("2", "a question")
        await at.edit("1", "We have")

        async with house.open():
            await at.outcomes("We have\na question")


async def test_what_is_taken_back_is_taken_out_of_the_question(house: House) -> None:
    async with talk(house) as at:
        await at.say("1", "Good morning")
        await at.say("2", "How?")
        await at.say("3", "Sorry")
        await at.delete("3")
        await at.delete("1")

        async with house.open():
            await at.outcomes("How?")
        assert at.wall.places[max(at.wall.posts)] == {"place": "2"}


async def test_when_everything_is_taken_back_nothing_is_asked(house: House) -> None:
    async with talk(house) as at:
        await at.say("1", "I have")
        await at.say("2", "a question")
        await at.delete("1")
        await at.delete("2")
        await at.delete("2")

        async with house.open():
            await acknowledged(house, "wall")
            assert await at.door.memory.opened(at.door.named("c", "-")) == {}
            await at.outcomes()


async def test_an_edit_while_the_question_is_answered_asks_it_again(house: House) -> None:
    async with talk(house) as at:
        edited: list[bool] = []

        async def meanwhile() -> dict[str, str]:
            if not edited:
                edited.append(True)
                await at.edit("2", "and what?")
            return {}

        house.script.next(Role.SEARCH, lambda _: meanwhile())
        await at.say("1", "How")
        await at.say("2", "and why?")

        async with house.open():
            await at.outcomes("How\nand what?")


async def test_an_edit_after_the_answer_asks_everything_again_and_keeps_the_answer(
    house: House,
) -> None:
    async with talk(house) as at:
        await at.say("1", "How")
        await at.say("2", "and why?")
        async with house.open():
            await at.outcomes("How\nand why?")

            await at.edit("2", "and what?")

            await at.outcomes("How\nand why?", "How\nand what?")


async def test_taking_back_what_was_answered_changes_nothing(house: House) -> None:
    async with talk(house) as at:
        await at.say("1", "How")
        await at.say("2", "and why?")
        async with house.open():
            await at.outcomes("How\nand why?")

            await at.delete("2")

            await at.outcomes("How\nand why?")


async def test_an_edit_that_comes_late_or_twice_does_not_replace_a_newer_one(house: House) -> None:
    async with talk(house) as at:
        await at.say("1", "one")
        await at.edit("1", "two", at=10)
        await at.edit("1", "three", at=20)
        await at.edit("1", "two", at=10)
        await at.edit("1", "three", at=20)
        await at.say("1", "one")

        async with house.open():
            await at.outcomes("three")


async def test_the_deletion_that_is_told_again_does_not_stop_a_newer_edit(house: House) -> None:
    async with talk(house) as at:
        await at.say("1", "one")
        await at.say("2", "two")
        await at.delete("2")
        await at.edit("1", "three")
        await at.delete("2")
        await at.edit("2", "four")

        async with house.open():
            await at.outcomes("three")


async def test_an_edit_that_died_on_its_way_is_taken_up_where_it_stopped(house: House) -> None:
    broker = Faltering(house.make_broker(), 0)
    async with talk(house, broker=broker) as at:
        await at.say("1", "one")
        await at.say("2", "two")
        broker.times = 1
        with pytest.raises(BrokerUnavailableError):
            await at.edit("2", "three", at=10)
        await at.edit("2", "three", at=10)

        async with house.open():
            await at.outcomes("one\nthree")


@pytest.mark.parametrize("pause", range(0, 60, 6))
async def test_two_edits_at_once_through_two_doors_are_one_question(
    house: House, pause: int
) -> None:
    async with talk(house) as at, talk(house) as other:
        other.order = 50
        await at.say("1", "one")
        await at.say("2", "two")

        async def later() -> None:
            for _ in range(pause):
                await asyncio.sleep(0)
            await other.edit("2", "zwei")

        await asyncio.gather(at.edit("1", "eins"), later())

        async with house.open():
            await acknowledged(house, "wall")
            await until(lambda: ANSWER in [*at.wall.posts.values(), *other.wall.posts.values()])
            await acknowledged(house, "wall")
        assert [seen["text"] for seen in house.script.seen[Role.RESPONSE]] == ["eins\nzwei"]


@pytest.mark.parametrize("pause", range(0, 60, 6))
@pytest.mark.parametrize("manners", [SHORT, EACH])
async def test_a_message_that_is_edited_while_it_is_taken_in_is_asked_once(
    house: House, pause: int, manners: Manners
) -> None:
    async with talk(house, manners) as at:

        async def later() -> None:
            for _ in range(pause):
                await asyncio.sleep(0)
            await at.edit("1", "eins")

        await asyncio.gather(at.say("1", "one"), later())

        async with house.open():
            await at.outcomes("eins")


async def test_a_message_that_its_edit_overtakes_is_not_asked_beside_it(house: House) -> None:
    broker = Holding(house.make_broker(), "submit")
    async with talk(house, EACH, broker=broker) as at, asyncio.TaskGroup() as tasks:
        tasks.create_task(at.say("1", "one"))
        await broker.holds.wait()
        await at.edit("1", "eins")
        broker.goes_on.set()

        async with house.open():
            await at.outcomes("eins")


async def test_an_edit_that_another_overtakes_leaves_the_question_to_it(house: House) -> None:
    memory = Holding(memory_of(house, "wall"), "opened")
    async with talk(house, EACH, memory=memory) as at, asyncio.TaskGroup() as tasks:
        await at.say("1", "one")
        tasks.create_task(at.edit("1", "eins", at=10))
        await memory.holds.wait()
        await at.edit("1", "uno", at=20)
        memory.goes_on.set()

        async with house.open():
            await at.outcomes("uno")


@pytest.mark.parametrize("pause", range(0, 60, 6))
async def test_a_message_that_joins_while_another_is_edited_is_not_lost(
    house: House, pause: int
) -> None:
    async with talk(house) as at, talk(house) as other:
        other.order = 50
        await at.say("1", "one")

        async def later() -> None:
            for _ in range(pause):
                await asyncio.sleep(0)
            await other.say("2", "two")

        await asyncio.gather(at.edit("1", "eins"), later())

        async with house.open():
            await until(lambda: ANSWER in [*at.wall.posts.values(), *other.wall.posts.values()])
            await acknowledged(house, "wall")
        # Which comes first depends on which was there first; it is one question all the same.
        assert sorted(house.script.seen[Role.RESPONSE][-1]["text"].split()) == ["eins", "two"]


async def test_a_question_that_becomes_a_command_leaves_the_rest_asked(house: House) -> None:
    async with talk(house) as at:
        await at.say("1", "How?")
        await at.say("2", "please")
        await at.edit("2", "help", command="help")

        async with house.open():
            await until(lambda: sorted(at.wall.posts.values()) == ["Done.", ANSWER])
            await acknowledged(house, "wall")
        assert [seen["text"] for seen in house.script.seen[Role.RESPONSE]] == ["How?"]
