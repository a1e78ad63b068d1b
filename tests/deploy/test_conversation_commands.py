"""What the commands of a conversation do, and what they leave alone."""

import re

import pytest

from tests.deploy.conftest import OpenApp
from tests.support.app_harness import AppHarness, ConversationDriver, keys

pytestmark = pytest.mark.slow

CLEAR = "How do I configure SMS routing rules?"
VAGUE = "How do I create one?"


async def find_written_about(harness: AppHarness, driver: ConversationDriver) -> dict[str, str]:
    """Every key of Redis that names the conversation, and all that is written there."""
    kinds = {
        "string": lambda key: harness.client.get(key),
        "hash": lambda key: harness.client.hgetall(key),
        "list": lambda key: harness.client.lrange(key, 0, -1),
        "stream": lambda key: harness.client.xrange(key),
        "zset": lambda key: harness.client.zrange(key, 0, -1),
    }
    found: dict[str, str] = {}
    for name in [key.decode() async for key in harness.client.scan_iter()]:
        if driver.conversation_id in name:
            found[name] = str(await kinds[(await harness.client.type(name)).decode()](name))
    return found


async def test_clear_all_leaves_nothing_of_a_conversation_and_all_of_another(
    open_app: OpenApp,
) -> None:
    async with open_app() as harness:
        mine, theirs = harness.driver(), harness.driver()
        for driver in (mine, theirs):
            await driver.say("/set_language de")
            await driver.say(CLEAR)
            await driver.say(VAGUE)
        before, written = (
            await find_written_about(harness, theirs),
            await find_written_about(harness, mine),
        )
        reply = await mine.say("/clear_all")
        left, after = (
            await find_written_about(harness, mine),
            await find_written_about(harness, theirs),
        )

    assert reply["outcome"] == "answered"
    assert CLEAR in str(written)
    assert CLEAR not in str(left)
    # Ids and times stay for a day: a message sent twice is still known to have been answered.
    own = f"{mine.conversation_id}-4"
    kinds = {key.split(":")[2] for key in left if own not in key}
    assert kinds <= {"record", "named", "asked", "tombstone"}
    assert "Routing" not in str(left)
    assert after == before


async def test_clear_history_forgets_what_was_said_and_keeps_the_language(
    open_app: OpenApp,
) -> None:
    async with open_app() as harness:
        driver = harness.driver()
        await driver.say("/set_language de")
        await driver.say(VAGUE)
        cleared = await driver.say("/clear_history")
        there = [await harness.client.exists(key) for key in keys(driver).values()]
        reply = await driver.say(CLEAR)

    assert cleared["language"] == "de"
    assert there == [0, 0]
    assert reply["language"] == "de"


async def test_a_chosen_language_wins_over_the_language_of_a_question(
    open_app: OpenApp,
) -> None:
    async with open_app() as harness:
        driver = harness.driver()
        chosen = await driver.say("/set_language Russian")
        reply = await driver.say("What's the weather like today?")

    assert "русском" in chosen["text"].lower() or "русский" in chosen["text"].lower()
    assert reply["language"] == "ru"
    assert re.search("[а-я]{4}", reply["text"])


async def test_statistics_count_what_happened_in_this_conversation(open_app: OpenApp) -> None:
    async with open_app() as harness:
        driver, other = harness.driver(), harness.driver()
        await other.say(CLEAR)
        await driver.say(CLEAR)
        await driver.say("What's the weather like today?")
        reply = await driver.say("/get_stats")

    assert "- questions: 2" in reply["text"]
    assert "- answered: 1" in reply["text"]
    assert "- declined: 1" in reply["text"]


async def test_help_and_an_unknown_command_list_the_commands(open_app: OpenApp) -> None:
    async with open_app() as harness:
        driver = harness.driver()
        replies = [await driver.say("/help"), await driver.say("/frobnicate now")]

    for reply in replies:
        assert reply["outcome"] == "answered"
        for command in ("clear_history", "clear_all", "set_language", "get_stats", "help"):
            assert command in reply["text"]
    assert "frobnicate" in replies[1]["text"]


async def test_a_language_that_a_person_chose_holds_in_their_other_conversations(
    open_app: OpenApp,
) -> None:
    async with open_app() as harness:
        first, second = harness.driver(people=("ada",)), harness.driver(people=("ada",))
        others = [
            harness.driver(people=("bob",)),
            harness.driver(),
            harness.driver(people=("ada", "bob")),
        ]
        await first.say("/set_language de")
        followed = await second.say(CLEAR)
        unaffected = [await one.say(CLEAR) for one in others]
        await second.say("/set_language fr")
        newer = await first.say(CLEAR)
        kept = [key async for key in harness.client.scan_iter("rd:person:*")]
        lives = [await harness.client.ttl(key) for key in kept]
        await second.say("/clear_all")
        left = [key async for key in harness.client.scan_iter("rd:person:*")]

    assert followed["language"] == "de"
    assert [reply["language"] for reply in unaffected] == ["en", "en", "en"]
    assert newer["language"] == "fr"
    assert len(kept) == 1
    assert lives[0] > 0
    assert left == []
