"""What a push door keeps of a conversation ends when the conversation is forgotten."""

from typing import Any

from envelope.role import Role
from gateway.pushing.buttons import Choice
from tests.gateway.pushing.rig import AT_ONCE, acknowledged, push_door_of, until
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
