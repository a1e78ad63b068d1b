"""A push channel loses no question, forgets what is erased, and reports whether it can work."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from fakeredis import FakeServer
from prometheus_client import CollectorRegistry, generate_latest

from broker.embedded_redis import Endpoint
from deploy.assembly.gateways.listening import serve_probes
from deploy.assembly.runtime import connect_runtime
from envelope.role import Role
from gateway.chat.delivery import Choice, push_metrics
from gateway.chat.ports import ChatPolicy, Tally
from gateway.conversations import Conversations
from tests.support.app_harness import settings_of
from tests.support.chat_harness import (
    ANSWER,
    AT_ONCE,
    TEXTS,
    open_connector,
    say,
    wait_until_acknowledged,
)
from tests.support.empty_redis import play_redis
from tests.support.fake_channel import FakeChannel, make_incoming
from tests.support.ports import free_port
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness


async def words_kept(harness: WorkerHarness, words: str) -> list[str]:
    """Return the keys of push channels that hold these words."""
    client: Any = harness.client
    results = []
    async for key in client.scan_iter(match="rd:push:*"):
        kind = await client.type(key)
        held = await (client.hgetall(key) if kind == b"hash" else client.dump(key))
        if words in str(held):
            results.append(key.decode())
    return results


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
        await say(connector, "2", "/clear_all", 2.0, command="clear_all")
        await wait_until(lambda: "Done." in fake_channel.posts.values())
        await wait_until_acknowledged(harness, "wall")

        assert await words_kept(harness, "illness") == []
        assert await connector.buttons.choice(token) is None
        assert await words_kept(harness, "dog")


async def test_a_history_that_is_cleared_takes_the_words_along(harness: WorkerHarness) -> None:
    fake_channel = FakeChannel()
    async with open_connector(harness, fake_channel, policy=AT_ONCE) as connector, harness.open():
        await say(connector, "1", "of my illness", 1.0)
        await wait_until_acknowledged(harness, "wall")

        harness.script.next(Role.COMMAND, {"forget": "history"})
        question = connector.name_question("c", "2")
        await connector.intake.accept(
            make_incoming(question, "/clear", 2.0, command="clear_history")
        )
        await wait_until(lambda: "Done." in fake_channel.posts.values())
        await wait_until_acknowledged(harness, "wall")

        assert await words_kept(harness, "illness") == []


async def test_a_repeated_message_restores_nothing_after_a_clear(harness: WorkerHarness) -> None:
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
        await say(connector, "3", "/clear_all", 3.0, command="clear_all")
        await wait_until(lambda: "Done." in fake_channel.posts.values())
        await wait_until_acknowledged(harness, "wall")

        for message in reversed(messages):
            await connector.intake.accept(message)

        assert await words_kept(harness, "illness") == []
        assert not (await connector.memory.about(messages[0].question)).get("language")


async def test_a_message_waiting_behind_a_clear_keeps_its_text(harness: WorkerHarness) -> None:
    fake_channel = FakeChannel()
    policy = ChatPolicy(burst_seconds=0.5, supersedes=False)
    async with open_connector(harness, fake_channel, policy=policy) as connector:
        harness.script.next(Role.COMMAND, {"forget": "history"})
        clear = make_incoming(
            connector.name_question("c", "1"), "/clear", 1.0, command="clear_history"
        )
        await connector.intake.accept(clear)
        await say(connector, "2", "How", 2.0)
        await say(connector, "3", "and why?", 3.0)
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
        await say(connector, "1", "How?", 1.0)
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


APOLOGY = TEXTS.text("apology", "en")


async def test_a_question_that_redis_lost_ends_with_an_apology_in_its_placeholder(
    harness: WorkerHarness,
) -> None:
    fake_channel = FakeChannel()
    async with open_connector(harness, fake_channel, policy=AT_ONCE) as connector:
        await say(connector, "1", "How?", 1.0)
        await wait_until(lambda: len(fake_channel.posts) == 1)

        await harness.client.flushall()

        await wait_until(lambda: list(fake_channel.posts.values()) == [APOLOGY])


async def test_a_question_that_is_answered_gets_nothing_but_its_answer(
    harness: WorkerHarness,
) -> None:
    fake_channel = FakeChannel()
    async with open_connector(harness, fake_channel, policy=AT_ONCE) as connector, harness.open():
        await say(connector, "1", "How?", 1.0)
        await wait_until(lambda: ANSWER in fake_channel.posts.values())
        await wait_until_acknowledged(harness, "wall")
        # What watches for losses sees the end as well; a further question has its turn after.
        await say(connector, "2", "How?", 2.0)
        await wait_until(lambda: list(fake_channel.posts.values()) == [ANSWER, ANSWER])


async def test_a_push_channel_reports_whether_it_can_accept_messages(tmp_path: Path) -> None:
    played, port = FakeServer(), free_port()
    endpoint = Endpoint(url="", durable=False, played=played)
    settings = settings_of(tmp_path, health_port=port)
    tally, refusals, ratings = Tally(), Tally(), Tally()
    tally.add("answered")
    refusals.add("limited_day")
    ratings.add("down")
    async with (
        connect_runtime(settings, endpoint=endpoint) as post,
        serve_probes(post, push_metrics("slack", tally, refusals, ratings)),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=None) as client,
    ):

        async def has_turned(status: int) -> bool:
            return (await client.get("/readyz")).status_code == status

        await wait_until(lambda: has_turned(200))
        alive, metrics = await client.get("/healthz"), (await client.get("/metrics")).text
        played.connected = False
        await wait_until(lambda: has_turned(503))
        still_alive = await client.get("/healthz")

    assert (alive.status_code, still_alive.status_code) == (200, 200)
    assert 'refdesk_chat_deliveries_total{channel="slack",result="answered"} 1.0' in metrics
    assert 'refdesk_chat_declined_total{channel="slack",reason="limited_day"} 1.0' in metrics
    assert 'refdesk_chat_feedback_total{channel="slack",rating="down"} 1.0' in metrics


async def test_nobody_is_answered_where_no_port_is_set(tmp_path: Path) -> None:
    async with connect_runtime(settings_of(tmp_path), endpoint=play_redis()) as post:
        before = len(asyncio.all_tasks())
        async with serve_probes(post, CollectorRegistry()):
            assert len(asyncio.all_tasks()) == before


@pytest.mark.parametrize(
    "results", [(), ("answered", "delivery_failed", "answered", "delivery_abandoned")]
)
def test_counts_are_those_of_the_moment_of_the_scrape(results: tuple[str, ...]) -> None:
    tally = Tally()
    registry = push_metrics("telegram", tally, Tally(), Tally())
    for result in results:
        tally.add(result)

    metrics = generate_latest(registry).decode()

    for result in set(results):
        line = f'refdesk_chat_deliveries_total{{channel="telegram",result="{result}"}}'
        assert f"{line} {float(results.count(result))}" in metrics
