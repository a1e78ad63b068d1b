"""What those who run the server see of it, and how the API describes itself."""

import asyncio

import pytest
from fakeredis import FakeAsyncRedis, FakeServer
from fastapi.routing import APIRoute
from structlog.testing import capture_logs

from broker.transport.connect import connect
from envelope.role import Role
from gateway.api_keys import Scope
from tests.support.http_server import FakeLibrary, HttpServerFixture, open_http_server
from tests.support.worker_harness import WorkerHarness
from worker.metrics import Depths

MESSAGES = "/v1/conversations/c1/messages"


async def test_a_server_reports_that_it_lives_and_can_accept_messages(
    http_server: HttpServerFixture,
) -> None:
    await http_server.key()
    client = http_server.client()

    alive, ready = await client.get("/healthz"), await client.get("/readyz")

    assert (alive.status_code, alive.json()) == (200, {"status": "alive"})
    assert (ready.status_code, ready.json()) == (
        200,
        {"status": "ready", "accepting": True, "reason": ""},
    )


async def test_a_server_that_stops_is_not_ready_any_more(harness: WorkerHarness) -> None:
    async with open_http_server(harness) as http_server:
        http_server.stopping.set()

        ready = await http_server.client().get("/readyz")

    assert (ready.status_code, ready.json()) == (
        503,
        {"status": "shutting_down", "accepting": False, "reason": ""},
    )


async def test_a_server_without_its_redis_is_alive_and_not_ready() -> None:
    server = FakeServer()
    harness = WorkerHarness(lambda: FakeAsyncRedis(server=server, protocol=2), played=True)
    async with open_http_server(harness) as http_server:
        client = http_server.client()
        server.connected = False
        alive, away = await client.get("/healthz"), await client.get("/readyz")
        refused = await client.post(MESSAGES, json={"text": "How do I add a rule?"})
        server.connected = True
        back = await client.get("/readyz")
    await harness.close()

    assert [response.status_code for response in (alive, away, back)] == [200, 503, 200]
    assert away.json() == {"status": "redis_unavailable", "accepting": False, "reason": ""}
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unavailable")
    assert int(refused.headers["retry-after"]) >= 1


@pytest.mark.redis
@pytest.mark.parametrize(
    ("begin", "end", "reason"),
    [
        (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0"), "maxmemory"),
        (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"), "read only replica"),
    ],
    ids=["full", "read-only"],
)
async def test_a_server_whose_redis_refuses_writes_answers_and_says_that_it_takes_no_questions(
    redis_url: str, begin: tuple[str, ...], end: tuple[str, ...], reason: str
) -> None:
    harness = WorkerHarness(lambda: connect(redis_url), played=False)
    await harness.client.flushall()
    depths = Depths(harness.broker.admin, ["lang"])
    async with open_http_server(harness) as http_server, asyncio.TaskGroup() as tasks:
        client = await http_server.secret(scopes=frozenset(Scope))
        http_server.channel.meter.registry.register(depths)
        reading = tasks.create_task(depths.run())
        await harness.client.execute_command(*begin)
        try:
            state = await client.get("/readyz")
            refused = await client.post(MESSAGES, json={"text": "How do I add a rule?"})
            shown = (await client.get("/metrics")).text
        finally:
            await harness.client.execute_command(*end)
        room_again = await client.get("/readyz")
        reading.cancel()
    await harness.close()

    assert (state.status_code, state.json()["accepting"]) == (200, False)
    assert reason in state.json()["reason"]
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unavailable")
    assert int(refused.headers["retry-after"]) >= 1
    assert ("refdesk_broker_up 1.0" in shown, "refdesk_accepting 0.0" in shown) == (True, True)
    assert room_again.json()["accepting"] is True


async def test_metrics_read_by_the_event_loop_are_current(
    http_server: HttpServerFixture, harness: WorkerHarness
) -> None:
    client = await http_server.secret(scopes=frozenset(Scope))
    depths = Depths(harness.broker.admin, ["lang"])
    http_server.channel.meter.registry.register(depths)

    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(depths.run())
        page = await client.get("/metrics")
        reading.cancel()

    assert "refdesk_broker_up 1.0" in page.text
    assert "refdesk_accepting 1.0" in page.text


async def test_metrics_count_what_was_shown_for_keys_that_may_see_it(
    http_server: HttpServerFixture,
) -> None:
    client = await http_server.secret(scopes=frozenset(Scope))
    await client.post(MESSAGES, json={"text": "How do I add a rule?", "message_id": "m1"})
    await client.post(f"{MESSAGES}/m1/feedback", json={"rating": "down"})

    response = (await client.get("/metrics")).text
    refused = await (await http_server.secret()).get("/metrics")

    assert 'refdesk_http_outcomes_total{outcome="answered"} 1.0' in response
    assert 'refdesk_feedback_total{rating="down"} 1.0' in response
    assert (
        'refdesk_http_requests_total{route="/v1/conversations/{conversation_id}/messages",'
        'status="200"} 1.0' in response
    )
    assert refused.status_code == 403


async def test_a_failure_of_ours_shows_the_caller_nothing_of_it(harness: WorkerHarness) -> None:
    with capture_logs() as logged:
        async with open_http_server(harness) as http_server:
            await harness.client.set("rd:{0}:asked:acme/docs/c1", b"not a list")

            answer = await http_server.client().get("/v1/conversations/c1")

    assert [line["event"] for line in logged] == ["request_failed", "request"]
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal_error"
    assert "WRONGTYPE" not in answer.text


async def test_every_answer_asks_browsers_not_to_guess_keep_or_pass_on(
    http_server: HttpServerFixture,
) -> None:
    client = await http_server.secret()
    stranger = http_server.client()

    answers = [
        await client.post(MESSAGES, json={"text": "How do I add a rule?"}),
        await client.get("/v1/conversations/c1"),
        await client.get("/v1/nowhere"),
        await client.request("TRACE", MESSAGES),
        await stranger.post(MESSAGES, json={"text": "How do I add a rule?"}),
        await stranger.get("/openapi.json"),
        await stranger.get("/healthz"),
    ]

    assert [response.status_code for response in answers] == [200, 200, 404, 405, 401, 200, 200]
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"


async def test_a_busy_desk_says_when_to_come_back(harness: WorkerHarness) -> None:
    async with open_http_server(harness) as http_server:
        client = http_server.client()
        headers = {"Accept": "text/event-stream"}
        refused = None
        for number in range(30):
            sent = {"text": "How?", "message_id": f"m{number}"}
            async with client.stream("POST", MESSAGES, json=sent, headers=headers) as answer:
                if answer.status_code != 200:
                    refused = answer
                    break

        assert refused is not None
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert (await harness.broker.admin.read_status([Role.MANAGER.value]))[0].depth == 1


async def test_the_document_has_every_route_that_is_served_and_no_other(
    harness: WorkerHarness,
) -> None:
    async with open_http_server(harness, library=FakeLibrary()) as server:
        document = (await server.client().get("/openapi.json")).json()

    served = {
        (route.path_format, method.lower())
        for route in server.routes
        if isinstance(route, APIRoute) and route.include_in_schema
        for method in route.methods or ()
    }
    described = {
        (path, method) for path, operations in document["paths"].items() for method in operations
    }
    assert described == served
    assert ("/v1/responses", "post") in described
    assert ("/v1/search", "post") in described
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert "422" not in operation["responses"], path
            assert operation["summary"]
    schemas = document["components"]["schemas"]
    assert schemas["NewMessage"]["properties"]["text"]["examples"]
    assert schemas["Answer"]["properties"]["text"]["examples"]
    assert "HTTPValidationError" not in schemas
