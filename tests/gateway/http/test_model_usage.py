"""What models took for an answer is shown to the operator's programs, and to no visitor."""

from decimal import Decimal
from typing import Any

import httpx

from envelope.role import Role
from llm.call_log import record
from llm.port import ModelCall, Usage
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
