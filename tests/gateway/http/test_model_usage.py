"""What models took for an answer is shown to the operator's programs, and to no visitor."""

from decimal import Decimal
from typing import Any

import httpx
from pydantic import JsonValue

from broker.values import Fields
from envelope.role import Role
from gateway.answer import answer_of
from llm.port import ModelCall, Usage, record
from tests.support.http_server import HttpServerFixture, events

QUESTION = {"text": "How do I add a rule?", "message_id": "m-1"}
PAID_BY_ANOTHER = ModelCall(
    "respond", "m@vendor", Usage(), Decimal(0), 1.0, from_cache=True, saved_usd=Decimal("0.02")
)


def use_a_model(http_server: HttpServerFixture) -> None:
    def answer(_reads: Any) -> dict[str, str]:
        record(PAID_BY_ANOTHER)
        return {"response": "Open Routing [1]."}

    http_server.harness.script.next(Role.RESPONSE, answer)


async def read_everywhere(client: httpx.AsyncClient, conversation: str) -> list[dict[str, Any]]:
    """Return the answer to the question as sent, as the last event, and from the transcript."""
    sent = await client.post(f"{conversation}/messages", json=QUESTION)
    assert sent.status_code == 200, sent.text
    seen = await events(client, "GET", f"{conversation}/messages/m-1/events")
    [message] = (await client.get(conversation)).json()["messages"]
    return [sent.json(), seen[-1].data, message["answer"]]


async def test_a_program_of_the_operator_reads_what_its_answer_took(
    http_server: HttpServerFixture,
) -> None:
    use_a_model(http_server)

    answers = await read_everywhere(await http_server.secret(), "/v1/conversations/c-1")

    assert [answer["outcome"] for answer in answers] == ["answered"] * 3
    for answer in answers:
        assert answer["model_usage"]["cache_hits"] == 1
        assert answer["model_usage"]["saved_usd"] == 0.02


async def test_a_visitor_never_reads_what_an_answer_took_or_that_somebody_had_asked_it_before(
    http_server: HttpServerFixture,
) -> None:
    use_a_model(http_server)
    visitor = await http_server.visitor(await http_server.public())

    answers = await read_everywhere(visitor.client, visitor.path)

    assert [answer["outcome"] for answer in answers] == ["answered"] * 3
    assert [answer for answer in answers if "model_usage" in answer] == []


async def test_the_trajectory_and_the_time_of_each_agent_are_for_secret_keys_alone(
    http_server: HttpServerFixture,
) -> None:
    use_a_model(http_server)
    visitor = await http_server.visitor(await http_server.public())
    path = f"{visitor.path}/messages/m-1"
    await visitor.client.post(f"{visitor.path}/messages", json=QUESTION)

    own = await (await http_server.secret()).get(f"{path}/trajectory")
    refused = await visitor.client.get(f"{path}/trajectory")

    assert own.status_code == 200, own.text
    body = own.json()
    agents = {agent["agent"]: agent for agent in body["agents"]}
    assert agents["response"]["model_calls"] == body["metrics"]["model_calls"] == 1
    assert all(
        agent["total_time_ms"] >= 0 and agent["error_count"] == 0 for agent in agents.values()
    )
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "secret_key_needed")


SWARM: Fields = {
    "conversation_id": "c-1",
    "message_id": "m-1",
    "outcome": "answered",
    "way": "swarm",
    "routing": {"action": "orchestrate", "strategy": "parallel"},
    "tasks": [{"task_id": "worker_0_data", "title": "Fees", "state": "completed", "attempts": 1}],
    "tasks_completed": 1,
    "cancelled_tasks": ["Limits"],
    "faults": [{"kind": "lost_result"}],
}


def test_a_program_of_the_operator_reads_the_tasks_of_a_swarm_and_a_visitor_does_not() -> None:
    def words(key: str, _language: str) -> str:
        return key

    shown = answer_of(SWARM, words=words, with_usage=True).model_dump(mode="json")
    of_visitor = answer_of(SWARM, words=words).model_dump(mode="json", exclude_none=True)

    hidden = SWARM.keys() - {"conversation_id", "message_id", "outcome"}
    assert {name: shown[name] for name in hidden - {"tasks"}} == {
        name: SWARM[name] for name in hidden - {"tasks"}
    }
    assert [(task["task_id"], task["state"]) for task in shown["tasks"]] == [
        ("worker_0_data", "completed")
    ]
    assert not hidden & of_visitor.keys()


def test_the_plan_of_an_answer_is_read_by_the_operator_alone() -> None:
    planned: dict[str, JsonValue] = {
        "round": 1, "intent": "penalty", "reasoning": "it asks for a fine", "tools": ["search"],
    }  # fmt: skip
    reply: Fields = {
        "conversation_id": "c", "message_id": "m", "outcome": "answered", "plan_rounds": [planned],
    }  # fmt: skip

    operator = answer_of(reply, words=lambda key, _: key, with_usage=True)
    visitor = answer_of(reply, words=lambda key, _: key)

    assert operator.plan_rounds is not None
    assert operator.plan_rounds[0].reasoning == "it asks for a fine"
    assert visitor.plan_rounds is None
