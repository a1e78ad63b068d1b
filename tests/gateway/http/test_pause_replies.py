"""Pauses over HTTP: what is asked for, and the typed replies."""

import time
from typing import Any

import httpx
import jwt
import pytest

from envelope.envelope import Envelope
from tests.support.http_server import events, open_http_server
from tests.support.pausing_flow import AskingTool, make_flow
from tests.support.worker_harness import WorkerHarness

MESSAGES = "/v1/conversations/c1/messages"
QUESTION = {"text": "How do I add a rule?"}
TYPED = {"pause_id": "m1", "approve": True}


async def test_a_pause_is_shown_with_its_fields_and_answered_with_typed_values(
    harness: WorkerHarness,
) -> None:
    tool = AskingTool("information")
    harness.flows = {Envelope.flow: make_flow("information")}
    harness.further_agents = [tool]

    async with harness.open(), open_http_server(harness) as server:
        client = server.client()
        asked = (await client.post(MESSAGES, json=QUESTION)).json()
        pause = asked["pause"]
        wrong = await client.post(
            MESSAGES, json={"text": "2025", "pause_reply": {"pause_id": pause["id"], "fields": 3}}
        )
        reply = {"pause_id": pause["id"], "fields": {"period": "2025", "amount": 3}}
        answered = await client.post(MESSAGES, json={"text": "2025 and 3", "pause_reply": reply})

    assert (asked["outcome"], pause["kind"]) == ("clarification", "information")
    fields = [question["field"] for question in pause["questions"]]
    assert [(one["name"], one["type"]) for one in fields] == [
        ("period", "choice"),
        ("amount", "number"),
    ]
    assert wrong.status_code == 400
    assert answered.json()["outcome"] == "answered"
    assert len(tool.ran) == 5


async def test_the_events_of_a_message_count_its_branches(harness: WorkerHarness) -> None:
    harness.flows = {Envelope.flow: make_flow("information")}
    harness.further_agents = [AskingTool("information")]

    async with harness.open(), open_http_server(harness) as server:
        seen = await events(server.client(), "POST", MESSAGES, json=QUESTION)

    [begun] = [event.data["branches"] for event in seen if "branches" in event.data]
    ended = {event.data["branch"]: event.data["status"] for event in seen if event.name == "branch"}
    assert begun == ["t1", "t2", "t3"]
    assert ended == dict.fromkeys(begun, "completed")


@pytest.mark.parametrize("reply", [{"text": "approve/en"}, {"text": "-", "pause_reply": TYPED}])
async def test_only_the_user_who_asked_approves_over_http(
    harness: WorkerHarness, reply: dict[str, Any]
) -> None:
    tool = AskingTool("approval")
    harness.flows = {Envelope.flow: make_flow("approval")}
    harness.further_agents = [tool]

    async with harness.open(), open_http_server(harness) as server:
        client = server.client()
        asked = {**QUESTION, "message_id": "m1", "user_id": "ann"}
        await client.post(MESSAGES, json=asked)
        foreign = (await client.post(MESSAGES, json={**reply, "user_id": "ben"})).json()
        nobody = (await client.post(MESSAGES, json=reply)).json()
        own = (await client.post(MESSAGES, json={**reply, "user_id": "ann"})).json()

    assert [answer["text"] for answer in (foreign, nobody)] == ["pause_foreign/en"] * 2
    assert own["outcome"] == "answered"
    assert len(tool.ran) == 5


async def test_the_person_of_a_signed_token_is_the_one_who_asked(harness: WorkerHarness) -> None:
    harness.flows = {Envelope.flow: make_flow("approval")}
    harness.further_agents = [AskingTool("approval")]

    async with harness.open(), open_http_server(harness) as server:
        client = await server.secret(person_groups=("hr",))
        [key] = await server.keys.all()

        async def post(sub: str, **body: Any) -> httpx.Response:
            claims = {"aud": key.id, "exp": time.time() + 60, "groups": [], "sub": sub}
            token = jwt.encode(claims, key.person_secret, algorithm="HS256")
            return await client.post(MESSAGES, json=body, headers={"X-Person-Token": token})

        await post("ann", **QUESTION, message_id="m1")
        foreign = (await post("ben", text="approve/en")).json()
        contradicting = await post("ben", text="approve/en", user_id="ann")
        own = (await post("ann", text="approve/en")).json()

    assert foreign["text"] == "pause_foreign/en"
    assert contradicting.status_code == 400
    assert contradicting.json()["error"]["code"] == "conflicting_persons"
    assert own["outcome"] == "answered"


async def test_a_public_key_states_no_user(harness: WorkerHarness) -> None:
    async with harness.open(), open_http_server(harness) as server:
        visitor = await server.visitor(await server.public())
        sent = {**QUESTION, "user_id": "ann"}
        answer = await visitor.client.post(f"{visitor.path}/messages", json=sent)

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "secret_key_required"


async def test_the_user_of_a_completion_is_the_one_who_asked(harness: WorkerHarness) -> None:
    harness.flows = {Envelope.flow: make_flow("approval")}
    harness.further_agents = [AskingTool("approval")]

    async with harness.open(), open_http_server(harness) as server:

        async def complete(user: str, text: str) -> str:
            body = {
                "model": "docs",
                "conversation_id": "c1",
                "user": user,
                "messages": [{"role": "user", "content": text}],
            }
            answer = await server.client().post("/v1/chat/completions", json=body)
            return str(answer.json()["choices"][0]["message"]["content"])

        await complete("ann", QUESTION["text"])
        foreign = await complete("ben", "approve/en")
        own = await complete("ann", "approve/en")

    assert foreign == "pause_foreign/en"
    assert "pause" not in own


async def test_the_newest_open_pause_of_a_person_is_found_and_answered(
    harness: WorkerHarness,
) -> None:
    harness.flows = {Envelope.flow: make_flow("information")}
    harness.further_agents = [AskingTool("information")]

    async with harness.open(), open_http_server(harness) as server:
        client, other = await server.secret(), await server.secret(tenant="other")
        public = (await server.visitor(await server.public())).client
        for conversation in ("c1", "c2"):
            path = f"/v1/conversations/{conversation}/messages"
            await client.post(path, json={**QUESTION, "user_id": "ada"})
        newest = (await client.get("/v1/pause?user_id=ada")).json()
        fields = {"period": "2025", "amount": 3}
        sent = {"pause_id": newest["pause_id"], "fields": fields}
        answered = await client.post(
            f"/v1/conversations/{newest['conversation_id']}/messages",
            json={"text": "2025 and 3", "pause_reply": sent, "user_id": "ada"},
        )
        before = (await client.get("/v1/pause?user_id=ada")).json()
        nobody = [
            await client.get("/v1/pause?user_id=bob"),
            await other.get("/v1/pause?user_id=ada"),
        ]
        refused = [await client.get("/v1/pause"), await public.get("/v1/pause?user_id=ada")]

    assert (newest["conversation_id"], newest["kind"]) == ("c2", "information")
    assert answered.json()["outcome"] == "answered"
    assert before["conversation_id"] == "c1"
    assert [one.status_code for one in nobody] == [404, 404]
    assert [one.status_code for one in refused] == [400, 400]
