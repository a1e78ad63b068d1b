"""What a push door keeps of a conversation ends when the conversation is forgotten."""

from typing import Any

from deploy.doors import StoredConversations
from envelope.role import Role
from gateway.pushing.buttons import Choice
from gateway.pushing.port import Manners
from tests.gateway.pushing.rig import (
    ANSWER,
    AT_ONCE,
    TEXTS,
    acknowledged,
    push_door_of,
    until,
)
from tests.gateway.pushing.wall import Wall, said
from tests.worker.cast import House


async def words_kept(house: House, words: str) -> list[str]:
    """Return the keys of push doors that hold these words."""
    client: Any = house.client
    found = []
    async for key in client.scan_iter(match="rd:push:*"):
        kind = await client.type(key)
        held = await (client.hgetall(key) if kind == b"hash" else client.dump(key))
        if words in str(held):
            found.append(key.decode())
    return found


async def test_a_forgotten_conversation_leaves_no_word_at_a_push_door(house: House) -> None:
    wall = Wall()
    async with push_door_of(house, wall, manners=AT_ONCE) as door, house.open():
        asked = door.named("c", "1")
        other = door.named("other", "1")
        await door.intake.accept(said(asked, "of my illness", 1.0))
        await door.intake.accept(said(other, "of my dog", 1.0))
        button = Choice(question=asked, number="0", label="illness", ask="of my illness")
        token = await door.buttons.kept(button)
        await acknowledged(house, "wall")
        assert await words_kept(house, "illness")

        house.script.next(Role.COMMAND, {"forget": "all"})
        await door.intake.accept(said(door.named("c", "2"), "/clear_all", 2.0, command="clear_all"))
        await until(lambda: "Done." in wall.posts.values())
        await acknowledged(house, "wall")

        assert await words_kept(house, "illness") == []
        assert await door.buttons.choice(token) is None
        assert await words_kept(house, "dog")


async def test_a_history_that_is_cleared_takes_the_words_along(house: House) -> None:
    wall = Wall()
    async with push_door_of(house, wall, manners=AT_ONCE) as door, house.open():
        await door.intake.accept(said(door.named("c", "1"), "of my illness", 1.0))
        await acknowledged(house, "wall")

        house.script.next(Role.COMMAND, {"forget": "history"})
        question = door.named("c", "2")
        await door.intake.accept(said(question, "/clear", 2.0, command="clear_history"))
        await until(lambda: "Done." in wall.posts.values())
        await acknowledged(house, "wall")

        assert await words_kept(house, "illness") == []


async def test_what_is_told_again_after_a_clear_brings_no_word_back(house: House) -> None:
    wall = Wall()
    async with push_door_of(house, wall, manners=AT_ONCE) as door, house.open():
        told = [
            said(door.named("c", "1"), "of my illness", 1.0),
            said(door.named("c", "1:2"), "of my illness now", 2.0, edits="1"),
            said(door.named("c", "2"), "of my illness too", 2.5),
        ]
        for message in told:
            await door.intake.accept(message)
            await until(lambda: ANSWER in wall.posts.values())
        house.script.next(Role.COMMAND, {"forget": "all"})
        await door.intake.accept(said(door.named("c", "3"), "/clear_all", 3.0, command="clear_all"))
        await until(lambda: "Done." in wall.posts.values())
        await acknowledged(house, "wall")

        for message in reversed(told):
            await door.intake.accept(message)

        assert await words_kept(house, "illness") == []
        assert not (await door.memory.about(told[0].question)).get("language")


async def test_what_waits_behind_a_clear_keeps_its_words(house: House) -> None:
    wall = Wall()
    manners = Manners(burst_seconds=0.5, supersedes=False)
    async with push_door_of(house, wall, manners=manners) as door:
        house.script.next(Role.COMMAND, {"forget": "history"})
        clear = said(door.named("c", "1"), "/clear", 1.0, command="clear_history")
        await door.intake.accept(clear)
        await door.intake.accept(said(door.named("c", "2"), "How", 2.0))
        await door.intake.accept(said(door.named("c", "3"), "and why?", 3.0))
        edited: list[bool] = []

        async def meanwhile() -> dict[str, str]:
            await until(lambda: "Done." in wall.posts.values())
            if not edited:
                edited.append(True)
                edit = said(door.named("c", "3:4"), "and what?", 4.0, edits="3")
                await door.intake.accept(edit)
            return {}

        house.script.next(Role.SEARCH, lambda _: meanwhile())
        async with house.open():
            await until(lambda: ANSWER in wall.posts.values())

    assert house.script.seen[Role.RESPONSE][-1]["text"] == "How\nand what?"


async def test_a_reply_that_a_dead_door_held_ends_with_the_conversation(house: House) -> None:
    wall = Wall()
    superseded = TEXTS.text("superseded", "en")
    async with push_door_of(house, wall, manners=AT_ONCE) as door:
        await door.intake.accept(said(door.named("c", "1"), "How?", 1.0))
        await until(lambda: wall.posts)
    async with house.open():
        dead = house.broker.result_list("wall", "dead")
        assert await dead.take(places=1, block_seconds=5.0)
        async with push_door_of(house, wall, manners=AT_ONCE) as door:
            house.script.next(Role.COMMAND, {"forget": "all"})
            clear = said(door.named("c", "2"), "/clear_all", 2.0, command="clear_all")
            await door.intake.accept(clear)

            await until(lambda: sorted(wall.posts.values()) == sorted(["Done.", superseded]))


async def test_a_question_that_another_door_forgets_ends_in_its_placeholder(house: House) -> None:
    wall = Wall()
    async with push_door_of(house, wall, manners=AT_ONCE) as door:
        question = door.named("c", "1")
        await door.intake.accept(said(question, "How?", 1.0))
        await until(lambda: wall.posts)

        await house.broker.cancel(question, forget=True)

        await until(lambda: list(wall.posts.values()) == [TEXTS.text("superseded", "en")])


async def test_http_forgets_what_push_doors_keep_of_a_conversation(house: House) -> None:
    wall = Wall(name="slack")
    async with push_door_of(house, wall, manners=AT_ONCE) as door:
        question = door.named("c", "1")
        await door.intake.accept(said(question, "of my illness", 1.0))
        assert await words_kept(house, "illness")

        await StoredConversations(house.client, shards=1, ttl_seconds=600).forget_posts(question)

        assert await words_kept(house, "illness") == []
