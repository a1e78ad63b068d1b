"""Messages over HTTP: one answer each, as JSON or as events; pauses with typed replies."""

import asyncio
import json
import time
from typing import Any

import httpx
import jwt
import pytest

from envelope.envelope import Envelope
from envelope.role import Role
from tests.support.held_answer import DEADLINE_SECONDS, PAGE, hold_answer
from tests.support.http_server import (
    HttpServerFixture,
    RecordedRequests,
    events,
    open_http_server,
    read_events,
    text_of,
)
from tests.support.pausing_flow import AskingTool, make_flow
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

MESSAGES = "/v1/conversations/c1/messages"


QUESTION = {"text": "How do I add a rule?"}


LONG = "One word after the other makes an answer that is long enough for pieces. " * 5


async def test_a_message_gets_its_answer_as_json(http_server: HttpServerFixture) -> None:
    answer = await http_server.client().post(MESSAGES, json={**QUESTION, "message_id": "m1"})

    assert answer.status_code == 200
    assert answer.headers["x-message-id"] == "m1"
    body = answer.json()
    assert (body["outcome"], body["text"]) == ("answered", "Open Routing [1].")
    assert (body["conversation_id"], body["message_id"]) == ("c1", "m1")


async def test_a_message_gets_its_stages_and_its_answer_as_events(
    http_server: HttpServerFixture,
) -> None:
    http_server.harness.script.next(Role.RESPONSE, {"response": LONG})

    seen = await events(http_server.client(), "POST", MESSAGES, json=QUESTION)

    names = list(dict.fromkeys(event.name for event in seen))
    stages = [event.data["stage"] for event in seen if event.name == "stage"]
    assert names == ["accepted", "stage", "text", "done"]
    assert stages[0] == "lang"
    assert stages[-1] == "quality"
    assert len([event for event in seen if event.name == "text"]) > 3
    assert text_of(seen) == seen[-1].data["text"] == LONG
    assert seen[-1].data["outcome"] == "answered"
    assert len({event.id for event in seen}) == len(seen)


async def test_nothing_of_an_answer_is_sent_before_it_was_checked(
    http_server: HttpServerFixture,
) -> None:
    judge = http_server.harness.script.hold(Role.QUALITY)
    client = http_server.client()
    seen: list[RecordedRequests] = []
    headers = {"Accept": "text/event-stream"}
    async with client.stream("POST", MESSAGES, json=QUESTION, headers=headers) as answer:
        async for event in read_events(answer):
            seen.append(event)
            if event.data.get("stage") == "quality":
                assert "Routing" not in str([requests.data for requests in seen])
                judge.goes_on.set()

    assert seen[-1].data["text"] == "Open Routing [1]."


async def test_events_show_only_what_is_meant_to_be_seen(http_server: HttpServerFixture) -> None:
    http_server.harness.script.next(
        Role.SEARCH, {"search_context": "of nobody's business", "search_quality": "good"}
    )

    seen = await events(http_server.client(), "POST", MESSAGES, json=QUESTION)

    fields = {name for event in seen for name in event.data}
    assert "nobody" not in str([event.data for event in seen])
    assert fields <= {
        "conversation_id", "message_id", "stage", "attempt", "text", "offset", "outcome",
        "language", "links", "sources", "suggested_actions", "question", "quality_score",
        "termination_reason", "processing_seconds",
    }  # fmt: skip


async def test_a_stream_says_that_no_proxy_may_hold_it_back(http_server: HttpServerFixture) -> None:
    headers = {"Accept": "text/event-stream"}
    async with http_server.client().stream(
        "POST", MESSAGES, json=QUESTION, headers=headers
    ) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store, no-transform"
        assert answer.headers["x-accel-buffering"] == "no"
        assert len(answer.headers["x-message-id"]) == 32
        first = await anext(answer.aiter_bytes())
        assert len(first) > 2048


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (MESSAGES, QUESTION),
        (
            "/v1/chat/completions",
            {"model": "docs", "messages": [{"role": "user", "content": "How?"}], "stream": True},
        ),
    ],
)
async def test_a_silent_stream_says_that_it_is_still_there(
    harness: WorkerHarness, path: str, body: dict[str, object]
) -> None:
    said = 0
    headers = {"Accept": "text/event-stream"}
    async with (
        open_http_server(harness, heartbeat_seconds=0.1) as http_server,
        http_server.client().stream("POST", path, json=body, headers=headers) as answer,
    ):
        async for line in answer.aiter_lines():
            said += line == ": still here"
            if said == 2:
                break

    assert said == 2


async def test_a_reader_goes_on_after_any_event_also_at_another_process(
    any_harness: WorkerHarness,
) -> None:
    any_harness.script.next(Role.RESPONSE, {"response": LONG})
    async with (
        any_harness.open(),
        open_http_server(any_harness) as first,
        open_http_server(any_harness) as second,
    ):
        sent = {**QUESTION, "message_id": "m1"}
        every = await events(first.client(), "POST", MESSAGES, json=sent)
        other = second.client()

        for place, event in enumerate(every[:-1]):
            rest = await events(
                other, "GET", f"{MESSAGES}/m1/events", headers={"Last-Event-ID": event.id}
            )

            assert rest == every[place + 1 :]
        assert await events(other, "GET", f"{MESSAGES}/m1/events") == every


async def test_a_reader_who_has_everything_is_asked_to_stop(http_server: HttpServerFixture) -> None:
    client = http_server.client()
    seen = await events(client, "POST", MESSAGES, json={**QUESTION, "message_id": "m1"})

    again = await client.get(f"{MESSAGES}/m1/events", headers={"Last-Event-ID": seen[-1].id})

    assert (again.status_code, again.content) == (204, b"")


@pytest.mark.parametrize(
    ("event_id", "status"),
    [("nonsense", 400), ("9999999999999-0.0", 400), ("1-1.99999999999", 400), ("0-0.0", 200)],
)
async def test_a_place_that_does_not_exist_is_refused(
    http_server: HttpServerFixture, event_id: str, status: int
) -> None:
    client = http_server.client()
    await client.post(MESSAGES, json={**QUESTION, "message_id": "m1"})

    answer = await client.get(f"{MESSAGES}/m1/events", headers={"Last-Event-ID": event_id})

    assert answer.status_code == status


async def test_the_same_message_sent_twice_is_answered_once(http_server: HttpServerFixture) -> None:
    client = http_server.client()
    sent = {**QUESTION, "message_id": "m1"}

    answers = await asyncio.gather(*(client.post(MESSAGES, json=sent) for _ in range(3)))

    assert [answer.json() for answer in answers] == [answers[0].json()] * 3
    assert len(http_server.harness.script.seen[Role.RESPONSE]) == 1


async def test_an_idempotency_key_names_one_message_of_its_conversation(
    http_server: HttpServerFixture,
) -> None:
    client = http_server.client()
    client.headers["Idempotency-Key"] = "order 1/x"

    first = await client.post(MESSAGES, json=QUESTION)
    again = await client.post(MESSAGES, json=QUESTION)
    other = await client.post("/v1/conversations/c2/messages", json=QUESTION)

    assert first.json() == again.json()
    assert other.json()["conversation_id"] == "c2"
    assert len(http_server.harness.script.seen[Role.RESPONSE]) == 2


async def test_another_text_under_a_used_id_is_refused(http_server: HttpServerFixture) -> None:
    client = http_server.client()
    await client.post(MESSAGES, json={**QUESTION, "message_id": "m1"})

    answer = await client.post(MESSAGES, json={"text": "Another.", "message_id": "m1"})

    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "message_id_reused"


async def test_a_question_that_nobody_works_on_ends_with_an_apology(harness: WorkerHarness) -> None:
    async with open_http_server(harness, deadline_seconds=1.0) as http_server:
        client = http_server.client()
        sent = {**QUESTION, "language": "de"}

        seen, answer = await asyncio.gather(
            events(client, "POST", MESSAGES, json=sent), client.post(MESSAGES, json=sent)
        )

    assert seen[-1].name == "done"
    assert seen[-1].data["outcome"] == answer.json()["outcome"] == "failed"
    assert text_of(seen) == answer.json()["text"] == "deadline/de"


async def test_waiting_requests_end_when_the_process_stops(any_harness: WorkerHarness) -> None:
    async with open_http_server(any_harness) as http_server:
        client = http_server.client()
        seen: list[RecordedRequests] = []
        headers = {"Accept": "text/event-stream"}

        async def follow() -> None:
            async with client.stream("POST", MESSAGES, json=QUESTION, headers=headers) as answer:
                seen.extend([event async for event in read_events(answer)])

        waiting = client.post("/v1/conversations/c2/messages", json=QUESTION)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(follow())
            asked = tasks.create_task(waiting)
            await wait_until(lambda: both_wait(any_harness))
            http_server.stopping.set()

    assert [event.name for event in seen] in (["accepted"], [])
    assert asked.result().status_code == 503
    assert asked.result().json()["error"]["code"] == "shutting_down"
    assert asked.result().headers["retry-after"] == "1"


async def test_a_request_to_a_full_desk_waits_for_admission(harness: WorkerHarness) -> None:
    held = harness.script.hold(Role.ESSENCE)
    async with (
        harness.open(),
        open_http_server(harness, quota=1) as http_server,
        asyncio.TaskGroup() as tasks,
    ):
        client = http_server.client()
        first = tasks.create_task(client.post(MESSAGES, json=QUESTION))
        await wait_until(lambda: is_at(harness, Role.ESSENCE))
        third = tasks.create_task(client.post("/v1/conversations/c3/messages", json=QUESTION))
        headers = {"Accept": "text/event-stream"}
        path = "/v1/conversations/c2/messages"
        seen: list[RecordedRequests] = []
        async with client.stream("POST", path, json=QUESTION, headers=headers) as answer:
            async for event in read_events(answer):
                seen.append(event)
                held.goes_on.set()
        await asyncio.wait([first, third])

    assert [event.name for event in seen][:2] == ["waiting", "accepted"]
    assert seen[-1].data["outcome"] == "answered"
    assert first.result().json()["outcome"] == third.result().json()["outcome"] == "answered"


async def test_a_desk_that_stays_full_says_so(harness: WorkerHarness) -> None:
    async with open_http_server(harness, quota=1, patience_seconds=0.3) as http_server:
        client = http_server.client()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.post(MESSAGES, json=QUESTION))
            await wait_until(lambda: is_at(harness, Role.MANAGER))
            path = "/v1/conversations/c2/messages"

            answer = await client.post(path, json=QUESTION)
            seen = await events(client, "POST", path, json=QUESTION)
            http_server.stopping.set()

    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "busy")
    assert int(answer.headers["retry-after"]) >= 1
    assert [event.name for event in seen] == ["waiting", "text", "done"]
    assert (seen[-1].data["outcome"], text_of(seen)) == ("failed", "deadline/en")


async def is_at(harness: WorkerHarness, role: Role) -> bool:
    return (await harness.broker.admin.read_status([role.value]))[0].depth > 0


async def both_wait(harness: WorkerHarness) -> bool:
    return (await harness.broker.admin.read_status([Role.MANAGER.value]))[0].depth == 2


async def test_a_message_that_is_stopped_ends_once_for_everybody(
    http_server: HttpServerFixture,
) -> None:
    held = http_server.harness.script.hold(Role.RESPONSE)
    client = await http_server.secret()
    sent = {"text": "How do I add a rule?", "message_id": "m1"}
    async with asyncio.TaskGroup() as tasks:
        reader = tasks.create_task(events(client, "POST", MESSAGES, json=sent))
        await wait_until(lambda: http_server.harness.broker.admin.find_questions("m1"))
        headers = {"Accept-Language": "de"}
        first = await client.post(f"{MESSAGES}/m1/cancel", headers=headers)
        second = await client.post(f"{MESSAGES}/m1/cancel", headers=headers)
        held.goes_on.set()
    seen = reader.result()
    read = (await client.get("/v1/conversations/c1")).json()

    assert first.status_code == 200
    assert first.json() == second.json()
    assert first.json()["outcome"] == "superseded"
    assert first.json()["termination_reason"] == "stopped"
    assert first.json()["text"] == "stopped/de"
    assert [event.name for event in seen].count("done") == 1
    assert seen[-1].data["termination_reason"] == "stopped"
    assert [message["answer"]["outcome"] for message in read["messages"]] == ["superseded"]


async def test_a_message_that_has_its_outcome_keeps_it(http_server: HttpServerFixture) -> None:
    client = await http_server.secret()
    sent = {"text": "How do I add a rule?", "message_id": "m1"}
    answered = (await client.post(MESSAGES, json=sent)).json()

    stopped = await client.post(f"{MESSAGES}/m1/cancel")
    unknown = await client.post(f"{MESSAGES}/m2/cancel")

    assert stopped.json() == answered
    assert unknown.status_code == 404


async def test_nobody_stops_what_is_anothers(http_server: HttpServerFixture) -> None:
    held = http_server.harness.script.hold(Role.RESPONSE)
    public = await http_server.public()
    ann, ben = await http_server.visitor(public), await http_server.visitor(public)
    strangers = [ben.client, await http_server.secret("other"), http_server.client(public)]
    path = f"{ann.path}/messages"
    sent = {"text": "How do I add a rule?", "message_id": "m1"}
    async with asyncio.TaskGroup() as tasks:
        reader = tasks.create_task(events(ann.client, "POST", path, json=sent))
        await wait_until(lambda: http_server.harness.broker.admin.find_questions("m1"))
        refused = [(await stranger.post(f"{path}/m1/cancel")).status_code for stranger in strangers]
        held.goes_on.set()

    assert refused == [404, 404, 403]
    assert reader.result()[-1].data["outcome"] == "answered"


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
    assert [(field["name"], field["type"]) for field in fields] == [
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
    assert [response.status_code for response in nobody] == [404, 404]
    assert [response.status_code for response in refused] == [400, 400]


async def test_at_the_deadline_of_a_found_question_the_time_and_the_pages_are_shown(
    harness: WorkerHarness,
) -> None:
    go_on = hold_answer(harness)
    documentation = {("acme", "docs"): PAGE.url or ""}
    server = open_http_server(
        harness, deadline_seconds=DEADLINE_SECONDS, documentation=documentation
    )
    async with harness.open(), server as http_server:
        completed = {"model": "docs", "messages": [{"role": "user", "content": "How?"}]}
        reply = (await http_server.client().post(MESSAGES, json=QUESTION)).json()
        later = hold_answer(harness)
        plain = (await http_server.client().post("/v1/chat/completions", json=completed)).json()
        go_on.set()
        later.set()

    assert (reply["outcome"], reply["termination_reason"]) == ("failed", "deadline")
    assert reply["text"] == "deadline/en\n\nreference/en\n\nnearest_pages/en\n- Routing rules"
    assert reply["suggested_actions"][0]["link"] == PAGE.url
    content = plain["choices"][0]["message"]["content"]
    assert content.endswith(f"- [Routing rules]({PAGE.url})")


async def test_an_agent_that_always_fails_ends_its_question_with_a_fault_and_not_with_its_time(
    harness: WorkerHarness,
) -> None:
    async with harness.open(), open_http_server(harness) as http_server:
        harness.script.next(Role.LANG, *[ValueError("broken")] * 9)
        failed = (await http_server.client().post(MESSAGES, json=QUESTION)).json()

    assert failed["termination_reason"] == "lang_failed"
    assert failed["text"].startswith("apology/en")


async def test_a_body_that_is_no_object_is_answered_with_what_was_expected_and_found(
    http_server: HttpServerFixture,
) -> None:
    client = http_server.client()

    untyped = (await client.post(MESSAGES, content='{"text": "secret"}')).json()["error"]
    listed = (await client.post(MESSAGES, json=["secret"])).json()["error"]

    assert untyped["message"].startswith(
        "body: expected a JSON object; found text; send the header Content-Type: application/json; "
    )
    assert listed["message"].startswith("body: expected a JSON object; found a list; ")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"text": 5}, "text: expected a valid string; found a number"),
        ({"txt": "secret"}, "text: expected a value; found none"),
        ({"text": "a", "secret": 1}, "body: unknown field"),
    ],
)
async def test_a_wrong_body_is_answered_with_what_was_expected_and_found_and_an_example_that_works(
    http_server: HttpServerFixture, body: dict[str, object], said: str
) -> None:
    client = http_server.client()

    message = (await client.post(MESSAGES, json=body)).json()["error"]["message"]
    before, example = message.split("; an example of the body: ")

    assert before == said
    assert (await client.post(MESSAGES, json=json.loads(example))).status_code == 200


async def test_a_wrong_method_or_path_is_answered_with_what_exists(
    http_server: HttpServerFixture,
) -> None:
    client = http_server.client()

    method = (await client.put(MESSAGES, json=QUESTION)).json()["error"]["message"]
    path = (await client.get("/v1/nothing")).json()["error"]["message"]

    assert method == "the method is not allowed at this path: expected POST"
    assert path == "this path does not exist; GET /openapi.json lists all paths"
