"""What the commands of a conversation do, and what they leave alone."""

import re

import pytest

from tests.deploy.conftest import OpenHouse
from tests.deploy.house import House, Talk, keys

pytestmark = pytest.mark.slow

CLEAR = "How do I configure SMS routing rules?"
VAGUE = "How do I set it up?"


async def written_about(house: House, talk: Talk) -> dict[str, str]:
    """Every key of Redis that names the conversation, and all that is written there."""
    kinds = {
        "string": lambda key: house.client.get(key),
        "hash": lambda key: house.client.hgetall(key),
        "list": lambda key: house.client.lrange(key, 0, -1),
        "stream": lambda key: house.client.xrange(key),
        "zset": lambda key: house.client.zrange(key, 0, -1),
    }
    found: dict[str, str] = {}
    for name in [key.decode() async for key in house.client.scan_iter()]:
        if talk.conversation_id in name:
            found[name] = str(await kinds[(await house.client.type(name)).decode()](name))
    return found


async def test_clear_all_leaves_nothing_of_a_conversation_and_all_of_another(
    open_house: OpenHouse,
) -> None:
    async with open_house() as house:
        mine, theirs = house.talk(), house.talk()
        for talk in (mine, theirs):
            await talk.say("/set_language de")
            await talk.say(CLEAR)
            await talk.say(VAGUE)
        before, told = await written_about(house, theirs), await written_about(house, mine)
        reply = await mine.say("/clear_all")
        left, after = await written_about(house, mine), await written_about(house, theirs)

    assert reply["outcome"] == "answered"
    assert CLEAR in str(told)
    assert CLEAR not in str(left)
    # Ids and times stay for a day: a message sent twice is still known to have been answered.
    own = f"{mine.conversation_id}-4"
    kinds = {key.split(":")[2] for key in left if own not in key}
    assert kinds <= {"record", "named", "asked", "tombstone"}
    assert "Routing" not in str(left)
    assert after == before


async def test_clear_history_forgets_what_was_said_and_keeps_the_language(
    open_house: OpenHouse,
) -> None:
    async with open_house() as house:
        talk = house.talk()
        await talk.say("/set_language de")
        await talk.say(VAGUE)
        cleared = await talk.say("/clear_history")
        there = [await house.client.exists(key) for key in keys(talk).values()]
        reply = await talk.say(CLEAR)

    assert cleared["language"] == "de"
    assert there == [0, 0]
    assert reply["language"] == "de"


async def test_a_chosen_language_wins_over_the_language_of_a_question(
    open_house: OpenHouse,
) -> None:
    async with open_house() as house:
        talk = house.talk()
        chosen = await talk.say("/set_language Russian")
        reply = await talk.say("What's the weather like today?")

    assert "русском" in chosen["text"].lower() or "русский" in chosen["text"].lower()
    assert (reply["outcome"], reply["language"]) == ("refused", "ru")
    assert re.search("[а-я]{4}", reply["text"])


async def test_statistics_count_what_happened_in_this_conversation(open_house: OpenHouse) -> None:
    async with open_house() as house:
        talk, other = house.talk(), house.talk()
        await other.say(CLEAR)
        await talk.say(CLEAR)
        await talk.say("What's the weather like today?")
        reply = await talk.say("/get_stats")

    assert "- questions: 2" in reply["text"]
    assert "- answered: 1" in reply["text"]
    assert "- declined: 1" in reply["text"]


async def test_help_and_an_unknown_command_list_the_commands(open_house: OpenHouse) -> None:
    async with open_house() as house:
        talk = house.talk()
        replies = [await talk.say("/help"), await talk.say("/frobnicate now")]

    for reply in replies:
        assert reply["outcome"] == "answered"
        for command in ("clear_history", "clear_all", "set_language", "get_stats", "help"):
            assert command in reply["text"]
    assert "frobnicate" in replies[1]["text"]
