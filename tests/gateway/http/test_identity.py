"""Whose conversation an id names: no channel reaches another's, no key another key's answers."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from envelope.question import Question
from envelope.role import Role
from gateway.api_keys import Scope
from gateway.desk import Message
from tests.gateway.http.test_keys import call, every_route
from tests.support.chat_harness import memory_of
from tests.support.fake_slack import BOT, slack_api
from tests.support.fake_telegram import bot_api
from tests.support.http_server import FakeDocuments, HttpServerFixture, events, open_http_server
from tests.support.slack_harness import slack_desk
from tests.support.telegram_harness import telegram_desk
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

WORD = "xylophone"
"""What the private chat is about: no answer may ever hold it."""
MESSAGES = "/v1/conversations/c1/messages"
SENT = {"text": f"What is a {WORD}?", "message_id": "m1"}
ASK_ALONE = frozenset({Scope.ASK})
COMPLETIONS = "/v1/chat/completions"


@asynccontextmanager
async def telegram_chat(harness: WorkerHarness) -> AsyncIterator[None]:
    async with bot_api() as api, telegram_desk(harness, api) as desk:
        await desk.say(SENT["text"], id_=1)
        yield


@asynccontextmanager
async def slack_chat(harness: WorkerHarness) -> AsyncIterator[None]:
    async with slack_api() as api, slack_desk(harness, api) as desk:
        await desk.say(f"<@{BOT}> {SENT['text']}", channel="D1", channel_type="im")
        yield


CHATS: dict[str, Any] = {
    "telegram": (telegram_chat, "7:0", "8:0", "1"),
    "slack": (slack_chat, "T1:D1:direct", "T1:D2:direct", "1700000000.000001"),
}
"""By channel: how a private chat begins, what it is called, what none is called, its message."""


def spellings(channel: str, name: str) -> list[str]:
    """Return what an attacker writes for a chat."""
    escaped = name.replace(":", "%3A")
    return [
        name,
        escaped,
        f"{channel}/{name}",
        f"{channel}%2F{name}",
        f"{channel}%2f{escaped}",
        f"{channel}%252F{name}",
        f"%2F{channel}%2F{name}",
        f"c1%2F..%2F{channel}%2F{name}",
        f"{channel}\N{DIVISION SLASH}{name}",
        f"{channel}\N{FULLWIDTH SOLIDUS}{name}",
        f"{channel}%5C{name}",
        f"{channel}%00%2F{name}",
        f"{channel}:{name}",
        f"{name}%0A",
        name.replace(":", "\N{RATIO}"),
        name.replace("0", "\N{FULLWIDTH DIGIT ZERO}"),
    ]


async def answer_message(harness: WorkerHarness, message_id: str) -> Question:
    """Return the question of a message once it has its outcome."""
    question: Question = (
        await wait_until(lambda: harness.broker.admin.find_questions(message_id))
    )[0]
    assert await harness.broker.replies.await_reply(question, block_seconds=20)
    return question


def plain(answer: httpx.Response) -> tuple[int, str]:
    """Return a status, and what an error says, without the names of the request."""
    if answer.status_code < 400 or not answer.content:
        return answer.status_code, ""
    error = {**answer.json()["error"], "request_id": ""}
    return answer.status_code, json.dumps(error)


async def attack(
    client: httpx.AsyncClient, http_server: HttpServerFixture, name: str, message_id: str
) -> list[Any]:
    """Return what every route shows of a conversation and a message; what changes it comes last."""
    routes = sorted(
        every_route(http_server),
        key=lambda route: (route[0] == "DELETE", route[1].endswith("/messages")),
    )
    answers = [
        await call(client, method, path, conversation_id=name, message_id=message_id)
        for method, path in routes
        if "{conversation_id}" in path
    ]
    asked = {"model": "docs", "messages": [{"role": "user", "content": "What did I ask?"}]}
    answers.append(await client.post(COMPLETIONS, json={**asked, "conversation_id": name}))
    for answer in answers:
        assert WORD not in answer.text, answer.request.url
        assert answer.status_code < 500
    return [plain(answer) for answer in answers]


@pytest.mark.parametrize("channel", CHATS)
async def test_no_http_key_reaches_a_chat_of_another_channel(
    harness: WorkerHarness, channel: str
) -> None:
    chat, name, unknown, message_id = CHATS[channel]
    async with (
        harness.open(),
        chat(harness),
        open_http_server(harness, documents=FakeDocuments()) as http_server,
    ):
        question = await answer_message(harness, message_id)
        client = await http_server.secret(scopes=frozenset(Scope))
        for spelled, none in zip(
            spellings(channel, name), spellings(channel, unknown), strict=True
        ):
            response = await attack(client, http_server, spelled, message_id)
            assert response == await attack(client, http_server, none, message_id), spelled

        assert question.conversation_id == f"{channel}/{name}"
        assert (await harness.memory.recall(question)).history[0].text == SENT["text"]
        seen = harness.script.seen[Role.LANG]
    assert [item["history"] for item in seen if WORD in str(item["history"])] == []


@pytest.mark.parametrize("channel", CHATS)
async def test_a_chat_stored_before_ids_named_their_channel_is_out_of_reach(
    harness: WorkerHarness, channel: str
) -> None:
    _, name, unknown, message_id = CHATS[channel]
    async with harness.open(), open_http_server(harness, documents=FakeDocuments()) as http_server:
        # As channels of chat services stored it: the bare id, and what the channel knows of it.
        await harness.desk().ask(Message(str(SENT["text"]), name, message_id))
        question = await answer_message(harness, message_id)
        await memory_of(harness, channel).note_about(question, language="en")
        client = await http_server.secret(scopes=frozenset(Scope))

        for method, path in every_route(http_server):
            if "{conversation_id}" in path:
                response = await call(
                    client, method, path, conversation_id=name, message_id=message_id
                )
                assert response.status_code == 404, path
                assert response.json()["error"]["message"] == "there is no such conversation"
        asked = {"model": "docs", "messages": [{"role": "user", "content": "What did I ask?"}]}
        asked["conversation_id"] = name
        assert (await client.post(COMPLETIONS, json=asked)).status_code == 404
        own = await client.post(f"/v1/conversations/{unknown}/messages", json=SENT)

    assert own.status_code == 200


async def test_the_same_id_names_two_conversations_in_two_channels(harness: WorkerHarness) -> None:
    async with harness.open(), open_http_server(harness) as http_server:
        client = await http_server.secret()
        await client.post("/v1/conversations/7:0/messages", json=SENT)

        async with bot_api() as api, telegram_desk(harness, api) as desk:
            await desk.say("And mine?", id_=1)
            question = await answer_message(harness, "1")

        assert (await harness.memory.recall(question)).history[0].text == "And mine?"
        [message] = (await client.get("/v1/conversations/7:0")).json()["messages"]
    assert message["text"] == SENT["text"]


async def test_a_tenant_learns_nothing_of_anothers_conversations(
    http_server: HttpServerFixture,
) -> None:
    owner, stranger = (
        await http_server.secret(),
        await http_server.secret("other", scopes=frozenset(Scope)),
    )
    await owner.post(MESSAGES, json=SENT)

    response = await attack(stranger, http_server, "c1", "m1")

    assert response == await attack(stranger, http_server, "c9", "m9")
    [message] = (await owner.get("/v1/conversations/c1")).json()["messages"]
    assert message["text"] == SENT["text"]


async def test_a_key_of_one_assistant_reaches_no_route_of_another(
    http_server: HttpServerFixture,
) -> None:
    owner = await http_server.secret()
    bound = await http_server.secret(assistants=("api",), scopes=frozenset(Scope))
    await owner.post(f"{MESSAGES}?assistant=docs", json=SENT)

    for method, path in every_route(http_server):
        if "{conversation_id}" in path or "{model}" in path:
            answer = await call(bound, method, f"{path}?assistant=docs")
            assert answer.status_code == 404, path
    asked = {"model": "docs", "messages": [{"role": "user", "content": "What did I ask?"}]}
    completed = await bound.post(COMPLETIONS, json={**asked, "conversation_id": "c1"})
    same_id = await bound.get("/v1/conversations/c1")
    own = await bound.post(MESSAGES, json={**SENT, "message_id": "m2"})

    assert (completed.status_code, same_id.status_code, own.status_code) == (404, 404, 200)
    [question] = await http_server.harness.broker.admin.find_questions("m2")
    assert (question.tenant, question.assistant) == ("acme", "api")


async def test_a_key_that_may_only_ask_cannot_follow_or_cancel_messages_of_another_key(
    http_server: HttpServerFixture,
) -> None:
    owner, stranger = await http_server.secret(), await http_server.secret(scopes=ASK_ALONE)
    await owner.post(MESSAGES, json=SENT)
    responses, unknown = [
        [
            await stranger.get(f"{MESSAGES}/{name}"),
            await stranger.get(f"{MESSAGES}/{name}/events"),
            await stranger.post(f"{MESSAGES}/{name}/cancel"),
        ]
        for name in ("m1", "m9")
    ]

    assert [answer.status_code for answer in responses] == [404] * 3
    assert [plain(answer) for answer in responses] == [plain(answer) for answer in unknown]


async def test_a_key_that_may_only_ask_cannot_supersede_a_running_message_of_another_key(
    http_server: HttpServerFixture,
) -> None:
    held = http_server.harness.script.hold(Role.ESSENCE)
    owner, stranger = await http_server.secret(), await http_server.secret(scopes=ASK_ALONE)
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(owner.post(MESSAGES, json=SENT))
        await wait_until(lambda: http_server.harness.broker.admin.find_questions("m1"))
        refused = await stranger.post(f"{MESSAGES}/m1/cancel")
        held.goes_on.set()

    assert refused.status_code == 404
    assert asked.result().json()["outcome"] == "answered"


async def test_a_key_that_may_only_ask_gets_no_stored_answer_by_guessing_an_id_and_a_text(
    http_server: HttpServerFixture,
) -> None:
    owner, stranger = await http_server.secret(), await http_server.secret(scopes=ASK_ALONE)
    await owner.post(MESSAGES, json=SENT)

    guessed = await stranger.post(MESSAGES, json=SENT)
    wrong = await stranger.post(MESSAGES, json={**SENT, "text": "Another?"})
    streamed = await stranger.post(MESSAGES, json=SENT, headers={"Accept": "text/event-stream"})

    assert (guessed.status_code, guessed.json()["error"]["code"]) == (409, "message_id_reused")
    assert plain(guessed) == plain(wrong) == plain(streamed)


async def test_a_key_that_may_only_ask_can_follow_its_own_message_at_another_process(
    any_harness: WorkerHarness,
) -> None:
    async with (
        any_harness.open(),
        open_http_server(any_harness) as first,
        open_http_server(any_harness) as second,
    ):
        token = await first.key(scopes=ASK_ALONE)
        one, other = first.client(token), second.client(token)

        asked = await one.post(MESSAGES, json=SENT)
        again = await other.post(MESSAGES, json=SENT)
        followed = await events(other, "GET", f"{MESSAGES}/m1/events")
        stopped = await other.post(f"{MESSAGES}/m1/cancel")
        named = [
            await client.post(
                MESSAGES, json={"text": "And?"}, headers={"Idempotency-Key": "my order"}
            )
            for client in (one, other)
        ]

    assert asked.json() == again.json() == followed[-1].data == stopped.json()
    assert named[0].json() == named[1].json()


async def test_a_key_that_may_read_can_follow_messages_of_another_key(
    http_server: HttpServerFixture,
) -> None:
    asks, reads = await http_server.secret(scopes=ASK_ALONE), await http_server.secret()
    asked = await asks.post(MESSAGES, json=SENT)

    followed = await events(reads, "GET", f"{MESSAGES}/m1/events")

    assert followed[-1].data == asked.json()
