"""Who may hand a conversation over, and when a person is offered."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from envelope.role import Role
from tests.support.fake_handover import FakeHandOver
from tests.support.http_server import HttpServerFixture, open_http_server
from tests.support.worker_harness import WorkerHarness

MESSAGES = "/v1/conversations/c1/messages"
HANDOVER = "/v1/conversations/c1/handover"


@pytest.fixture
def people() -> FakeHandOver:
    return FakeHandOver()


@pytest.fixture
async def server(harness: WorkerHarness, people: FakeHandOver) -> AsyncIterator[HttpServerFixture]:
    async with harness.open(), open_http_server(harness, handover=people) as opened:
        yield opened


async def ask(server: HttpServerFixture, query: str = "", **writes: Any) -> dict[str, Any]:
    for role, act in writes.items():
        server.harness.script.next(Role(role), act)
    client = await server.secret()
    body = {"text": "How?", "message_id": "m1"}
    answer: dict[str, Any] = (await client.post(f"{MESSAGES}{query}", json=body)).json()
    return answer


@pytest.mark.parametrize(
    ("query", "writes", "outcome", "offer"),
    [
        ("", {}, "answered", "possible"),
        ("", {"guardrails": {"within_scope": False}}, "refused", "offered"),
        # Who asks for one, as the model understood it.
        ("", {"essence": {"conversation_act": "person"}}, "answered", "offered"),
        ("?assistant=api", {"guardrails": {"within_scope": False}}, "refused", None),
    ],
)
async def test_a_person_is_offered_after_a_refusal_or_a_wish_where_there_is_somebody(
    server: HttpServerFixture, query: str, writes: dict[str, Any], outcome: str, offer: str | None
) -> None:
    answer = await ask(server, query, **writes)

    assert (answer["outcome"], answer.get("handover")) == (outcome, offer)


async def test_a_visitor_hands_over_their_own_conversation_within_their_limits(
    server: HttpServerFixture, people: FakeHandOver
) -> None:
    visitor = await server.visitor(await server.public(visitor_questions_per_day=2))
    other = await server.visitor(await server.public())
    sent = await visitor.client.post(
        f"{visitor.path}/messages", json={"text": "How?", "message_id": "m1"}
    )
    wanted = {"message_id": "m1", "note": "  Please call.  "}

    foreign = await other.client.post(f"{visitor.path}/handover", json=wanted)
    asked = await visitor.client.post(f"{visitor.path}/handover", json=wanted)
    further = await visitor.client.post(
        f"{visitor.path}/messages", json={"text": "How?", "message_id": "m2"}
    )

    assert sent.status_code == 200
    assert foreign.status_code == 404
    assert asked.json()["sent"] is True
    assert asked.json()["text"] == "handover_sent/en"
    assert people.notes == [(visitor.conversation_id, "Please call.")]
    assert further.status_code == 429


async def test_without_people_and_without_a_message_nothing_is_handed_over(
    server: HttpServerFixture, people: FakeHandOver
) -> None:
    client = await server.secret()

    nobody = await client.post(f"{HANDOVER}?assistant=api", json={"message_id": "m1"})
    nothing = await client.post(HANDOVER, json={"message_id": "m1"})

    assert nobody.json()["error"]["code"] == "handover_unavailable"
    assert nothing.status_code == 404
    assert people.notes == []
