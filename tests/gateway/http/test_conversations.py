"""Whole conversations over HTTP: read, forgotten, rated."""

import asyncio
from typing import Any

from envelope.role import Role
from memory.http_state import Feedback
from tests.support.http_server import HttpServerFixture, events, open_http_server
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

CONVERSATION = "/v1/conversations/c1"
MESSAGES = f"{CONVERSATION}/messages"
QUESTION = {"text": "How do I add a rule?"}


async def test_a_conversation_lists_what_was_said_with_its_answers(
    http_server: HttpServerFixture,
) -> None:
    client = http_server.client()
    first = await client.post(MESSAGES, json={**QUESTION, "message_id": "m1"})
    second = await client.post(MESSAGES, json={"text": "And delete it?", "message_id": "m2"})

    body = (await client.get(CONVERSATION)).json()

    assert [message["message_id"] for message in body["messages"]] == ["m1", "m2"]
    assert [message["text"] for message in body["messages"]] == [QUESTION["text"], "And delete it?"]
    assert [message["answer"] for message in body["messages"]] == [first.json(), second.json()]
    assert body["earlier"] == []


async def test_turns_outlive_their_journals(http_server: HttpServerFixture) -> None:
    client = http_server.client()
    await client.post(MESSAGES, json={**QUESTION, "message_id": "m1"})
    await client.post(MESSAGES, json={"text": "And delete it?", "message_id": "m2"})
    journals = [key async for key in http_server.harness.client.scan_iter("rd:*:journal:*m1")]
    await http_server.harness.client.delete(*journals)

    body = (await client.get(CONVERSATION)).json()

    assert [turn["text"] for turn in body["earlier"]] == [QUESTION["text"], "Open Routing [1]."]
    assert [message["message_id"] for message in body["messages"]] == ["m2"]


async def test_a_message_under_way_is_reported_as_running_and_can_be_followed(
    http_server: HttpServerFixture,
) -> None:
    held = http_server.harness.script.hold(Role.ESSENCE)
    client = http_server.client()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(client.post(MESSAGES, json={**QUESTION, "message_id": "m1"}))
        running = await wait_until(lambda: _read(http_server, client))
        assert [message["status"] for message in running["messages"]] == ["running"]
        following = tasks.create_task(events(client, "GET", f"{MESSAGES}/m1/events"))
        held.goes_on.set()

    assert following.result()[-1].name == "done"


async def test_a_forgotten_conversation_leaves_no_word_behind(
    http_server: HttpServerFixture,
) -> None:
    client = http_server.client()
    word = "xylophone"
    http_server.harness.script.next(Role.COMMAND, {"forget": "all"})
    await client.post(MESSAGES, json={"text": f"What is a {word}?", "message_id": "m1"})
    await client.post(f"{MESSAGES}/m1/feedback", json={"rating": "down", "reason": word})
    assert await _words(http_server.harness, word)

    answer = await client.delete(CONVERSATION)

    assert (answer.status_code, answer.content) == (204, b"")
    assert await _words(http_server.harness, word) == []
    assert (await client.get(CONVERSATION)).status_code == 404
    assert (await client.get(f"{MESSAGES}/m1/events")).status_code == 404
    again = await client.post(MESSAGES, json={"text": f"What is a {word}?", "message_id": "m1"})
    assert (again.status_code, again.json()["error"]["code"]) == (410, "message_forgotten")


async def test_forgetting_ends_what_is_under_way(http_server: HttpServerFixture) -> None:
    held = http_server.harness.script.hold(Role.ESSENCE)
    client = http_server.client()
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(client.post(MESSAGES, json={**QUESTION, "message_id": "m1"}))
        following = tasks.create_task(
            events(client, "POST", MESSAGES, json={"text": "And?", "message_id": "m2"})
        )
        await wait_until(lambda: _read(http_server, client, 2))
        forgetting = tasks.create_task(client.delete(CONVERSATION))
        answer = await asked
        held.goes_on.set()

    assert answer.json()["outcome"] == "superseded"
    assert answer.json()["text"] == "superseded/en"
    assert following.result()[-1].data["outcome"] == "superseded"
    assert forgetting.result().status_code == 204


async def test_two_concurrent_deletions_of_a_conversation_both_succeed(
    any_harness: WorkerHarness,
) -> None:
    async with (
        any_harness.open(),
        open_http_server(any_harness) as one,
        open_http_server(any_harness) as other,
    ):
        clients = [one.client(), other.client()]
        for turn in range(5):
            sent = {"text": "What is a xylophone?", "message_id": f"m{turn}"}
            assert (await clients[0].post(MESSAGES, json=sent)).status_code == 200
            any_harness.script.next(Role.COMMAND, *[{"forget": "all"}] * 4)
            async with asyncio.TaskGroup() as tasks:
                deleting = [
                    tasks.create_task(client.delete(CONVERSATION)) for client in clients * 2
                ]
            any_harness.script.acts[Role.COMMAND].clear()

            assert [task.result().status_code for task in deleting] == [204] * 4
            assert (await clients[0].get(CONVERSATION)).status_code == 404


async def test_the_last_rating_given_counts(http_server: HttpServerFixture) -> None:
    client = http_server.client()
    await client.post(MESSAGES, json={**QUESTION, "message_id": "m1"})

    for rating, reason in (("up", ""), ("down", "It misses a step.")):
        answer = await client.post(
            f"{MESSAGES}/m1/feedback", json={"rating": rating, "reason": reason}
        )
        assert answer.status_code == 204

    [message] = (await client.get(CONVERSATION)).json()["messages"]
    assert message["feedback"]["rating"] == "down"
    assert message["feedback"]["reason"] == "It misses a step."


async def test_a_message_without_an_answer_cannot_be_rated(http_server: HttpServerFixture) -> None:
    answer = await http_server.client().post(f"{MESSAGES}/m1/feedback", json={"rating": "up"})

    assert answer.status_code == 404


async def _read(http_server: HttpServerFixture, client: Any, messages: int = 1) -> Any:
    answer = await client.get(CONVERSATION)
    body = answer.json()
    return body if len(body.get("messages", ())) == messages else None


async def _words(harness: WorkerHarness, word: str) -> list[str]:
    """The keys under which a word stands anywhere in Redis."""
    keys = [key async for key in harness.client.scan_iter("*")]
    return [
        key.decode() for key in keys if word.encode() in (await harness.client.dump(key) or b"")
    ]


def test_a_rating_that_was_stored_under_its_former_name_is_still_read() -> None:
    stored = '{"thumb": "up", "reason": "", "at": 1.0}'

    assert Feedback.model_validate_json(stored).rating == "up"


async def test_a_record_names_the_kind_of_client_that_asked(harness: WorkerHarness) -> None:
    async with harness.open(), open_http_server(harness) as server:
        program = await server.secret()
        visitor = await server.visitor(await server.public())
        await program.post(MESSAGES, json=QUESTION)
        path = f"/v1/conversations/{visitor.conversation_id}/messages"
        await visitor.client.post(path, json=QUESTION)
        asked = {"model": "docs", "messages": [{"role": "user", "content": QUESTION["text"]}]}
        await program.post("/v1/chat/completions", json=asked)

        entries = [
            entry
            async for key in harness.client.scan_iter("rd:*:journal:*")
            for _, entry in (await harness.client.xrange(key, count=1))
        ]

    named = sorted(
        client for client in ("http", "widget", "openai")
        for entry in entries if f'"channel":"{client}"' in str(entry)
    )  # fmt: skip
    assert named == ["http", "openai", "widget"]
