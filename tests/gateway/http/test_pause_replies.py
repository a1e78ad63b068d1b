"""Pauses over HTTP: what is asked for, and the typed replies."""

from envelope.envelope import Envelope
from tests.support.http_server import events, open_http_server
from tests.support.pausing_flow import AskingTool, make_flow
from tests.support.worker_harness import WorkerHarness

MESSAGES = "/v1/conversations/c1/messages"
QUESTION = {"text": "How do I add a rule?"}


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
