"""What a push channel keeps of a conversation ends when the conversation is forgotten."""

from typing import Any

from envelope.role import Role
from gateway.chat.delivery import Choice
from gateway.chat.ports import ChatPolicy
from gateway.conversations import Conversations
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


async def words_kept(harness: WorkerHarness, words: str) -> list[str]:
    """Return the keys of push channels that hold these words."""
    client: Any = harness.client
    found = []
    async for key in client.scan_iter(match="rd:push:*"):
        kind = await client.type(key)
        held = await (client.hgetall(key) if kind == b"hash" else client.dump(key))
        if words in str(held):
            found.append(key.decode())
    return found


async def test_a_forgotten_conversation_leaves_no_word_at_a_push_channel(
    harness: WorkerHarness,
) -> None:
    fake_channel = FakeChannel()
    async with open_connector(harness, fake_channel, policy=AT_ONCE) as connector, harness.open():
        asked = connector.name_question("c", "1")
        other = connector.name_question("other", "1")
        await connector.intake.accept(make_incoming(asked, "of my illness", 1.0))
        await connector.intake.accept(make_incoming(other, "of my dog", 1.0))
        button = Choice(question=asked, number="0", label="illness", ask="of my illness")
        token = await connector.buttons.store(button)
        await wait_until_acknowledged(harness, "wall")
        assert await words_kept(harness, "illness")

        harness.script.next(Role.COMMAND, {"forget": "all"})
        await connector.intake.accept(
            make_incoming(connector.name_question("c", "2"), "/clear_all", 2.0, command="clear_all")
        )
        await wait_until(lambda: "Done." in fake_channel.posts.values())
        await wait_until_acknowledged(harness, "wall")

        assert await words_kept(harness, "illness") == []
        assert await connector.buttons.choice(token) is None
        assert await words_kept(harness, "dog")


async def test_a_history_that_is_cleared_takes_the_words_along(harness: WorkerHarness) -> None:
    fake_channel = FakeChannel()
    async with open_connector(harness, fake_channel, policy=AT_ONCE) as connector, harness.open():
        await connector.intake.accept(
            make_incoming(connector.name_question("c", "1"), "of my illness", 1.0)
        )
        await wait_until_acknowledged(harness, "wall")

        harness.script.next(Role.COMMAND, {"forget": "history"})
        question = connector.name_question("c", "2")
        await connector.intake.accept(
            make_incoming(question, "/clear", 2.0, command="clear_history")
        )
        await wait_until(lambda: "Done." in fake_channel.posts.values())
        await wait_until_acknowledged(harness, "wall")

        assert await words_kept(harness, "illness") == []


async def test_what_is_sent_again_after_a_clear_brings_no_word_back(harness: WorkerHarness) -> None:
    fake_channel = FakeChannel()
    async with open_connector(harness, fake_channel, policy=AT_ONCE) as connector, harness.open():
        messages = [
            make_incoming(connector.name_question("c", "1"), "of my illness", 1.0),
            make_incoming(connector.name_question("c", "1:2"), "of my illness now", 2.0, edits="1"),
            make_incoming(connector.name_question("c", "2"), "of my illness too", 2.5),
        ]
        for message in messages:
            await connector.intake.accept(message)
            await wait_until(lambda: ANSWER in fake_channel.posts.values())
        harness.script.next(Role.COMMAND, {"forget": "all"})
        await connector.intake.accept(
            make_incoming(connector.name_question("c", "3"), "/clear_all", 3.0, command="clear_all")
        )
        await wait_until(lambda: "Done." in fake_channel.posts.values())
        await wait_until_acknowledged(harness, "wall")

        for message in reversed(messages):
            await connector.intake.accept(message)

        assert await words_kept(harness, "illness") == []
        assert not (await connector.memory.about(messages[0].question)).get("language")


async def test_what_waits_behind_a_clear_keeps_its_words(harness: WorkerHarness) -> None:
    fake_channel = FakeChannel()
    policy = ChatPolicy(burst_seconds=0.5, supersedes=False)
    async with open_connector(harness, fake_channel, policy=policy) as connector:
        harness.script.next(Role.COMMAND, {"forget": "history"})
        clear = make_incoming(
            connector.name_question("c", "1"), "/clear", 1.0, command="clear_history"
        )
        await connector.intake.accept(clear)
        await connector.intake.accept(make_incoming(connector.name_question("c", "2"), "How", 2.0))
        await connector.intake.accept(
            make_incoming(connector.name_question("c", "3"), "and why?", 3.0)
        )
        edited: list[bool] = []

        async def meanwhile() -> dict[str, str]:
            await wait_until(lambda: "Done." in fake_channel.posts.values())
            if not edited:
                edited.append(True)
                edit = make_incoming(
                    connector.name_question("c", "3:4"), "and what?", 4.0, edits="3"
                )
                await connector.intake.accept(edit)
            return {}

        harness.script.next(Role.SEARCH, lambda _: meanwhile())
        async with harness.open():
            await wait_until(lambda: ANSWER in fake_channel.posts.values())

    assert harness.script.seen[Role.RESPONSE][-1]["text"] == "How\nand what?"


async def test_a_reply_that_a_dead_process_held_ends_with_the_conversation(
    harness: WorkerHarness,
) -> None:
    fake_channel = FakeChannel()
    superseded = TEXTS.text("superseded", "en")
    async with open_connector(harness, fake_channel, policy=AT_ONCE) as connector:
        await connector.intake.accept(make_incoming(connector.name_question("c", "1"), "How?", 1.0))
        await wait_until(lambda: fake_channel.posts)
    async with harness.open():
        dead = harness.broker.result_list("wall", "dead")
        assert await dead.take(slots=1, block_seconds=5.0)
        async with open_connector(harness, fake_channel, policy=AT_ONCE) as connector:
            harness.script.next(Role.COMMAND, {"forget": "all"})
            clear = make_incoming(
                connector.name_question("c", "2"), "/clear_all", 2.0, command="clear_all"
            )
            await connector.intake.accept(clear)

            await wait_until(
                lambda: sorted(fake_channel.posts.values()) == sorted(["Done.", superseded])
            )


async def test_a_question_that_another_process_forgets_ends_in_its_placeholder(
    harness: WorkerHarness,
) -> None:
    fake_channel = FakeChannel()
    async with open_connector(harness, fake_channel, policy=AT_ONCE) as connector:
        question = connector.name_question("c", "1")
        await connector.intake.accept(make_incoming(question, "How?", 1.0))
        await wait_until(lambda: fake_channel.posts)

        await harness.broker.producer.cancel(question, forget=True)

        await wait_until(
            lambda: list(fake_channel.posts.values()) == [TEXTS.text("superseded", "en")]
        )


async def test_http_forgets_what_push_channels_keep_of_a_conversation(
    harness: WorkerHarness,
) -> None:
    fake_channel = FakeChannel(name="slack")
    async with open_connector(harness, fake_channel, policy=AT_ONCE) as connector:
        question = connector.name_question("c", "1")
        await connector.intake.accept(make_incoming(question, "of my illness", 1.0))
        assert await words_kept(harness, "illness")

        await Conversations(harness.client, shards=1, ttl_seconds=600).forget_posts(question)

        assert await words_kept(harness, "illness") == []
