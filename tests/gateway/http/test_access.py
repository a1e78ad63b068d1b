"""Under which names the server answers; no answer leads to a name that a request forged."""

from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response

from envelope.role import Role
from gateway.chat.webhook import webhook
from gateway.http.access import AllowedHosts
from tests.gateway.http.test_keys import call, every_route
from tests.gateway.http.test_sources import MESSAGES, QUESTION, SOURCE
from tests.support.http_server import FakeDocuments, HttpServerFixture, open_http_server
from tests.support.worker_harness import WorkerHarness

FORGED = "evil.test"
PLACES = ("", "/", "//", "/%2e%2e/")
"""What an attacker adds to an address so that it is almost one of the server's."""


async def test_no_answer_redirects_to_the_host_that_a_request_names(
    http_server: HttpServerFixture,
) -> None:
    client = await http_server.secret()
    client.headers["Host"] = FORGED
    for method, path in every_route(http_server):
        for place in PLACES:
            answer = await call(client, method, f"{path}{place}")

            assert not answer.is_redirect, (method, path, place)
            assert FORGED not in str(answer.headers), (method, path, place)
            assert FORGED not in answer.text, (method, path, place)


async def test_no_webhook_redirects_to_the_host_that_a_request_names() -> None:
    async def request_with_host(_request: Request, _body: bytes) -> Response:
        return Response()

    app = webhook("/slack/events", request_with_host, check=lambda _headers: None, unavailable=())
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{FORGED}") as client:
        answers = [
            await client.post("/slack/events/", content=b"{}"),
            await client.get("/healthz/"),
        ]

    assert [(answer.status_code, answer.is_redirect) for answer in answers] == [(404, False)] * 2


async def test_a_host_that_one_caller_forges_shows_in_nobody_elses_links(
    http_server: HttpServerFixture,
) -> None:
    http_server.harness.script.next(Role.RESPONSE, {"sources_used": [SOURCE]})
    token = await http_server.key()
    forged = http_server.client(token, Host=FORGED)
    answer = await forged.post(MESSAGES, json=QUESTION)

    read = await http_server.client(token).get("/v1/conversations/c1")
    [message] = read.json()["messages"]
    keys = [key async for key in http_server.harness.client.scan_iter("*")]
    stored = [await http_server.harness.client.dump(key) for key in keys]

    assert answer.headers["cache-control"] == "no-store"
    assert message["answer"]["sources"][0]["link"].startswith(f"{http_server.url}/v1/reader/")
    assert [key for key, kept in zip(keys, stored, strict=True) if FORGED.encode() in kept] == []


async def test_streams_are_kept_in_no_cache(http_server: HttpServerFixture) -> None:
    client = http_server.client(Accept="text/event-stream")

    answer = await client.post(MESSAGES, json=QUESTION)

    assert "no-store" in answer.headers["cache-control"]


async def test_a_server_with_allowed_hosts_answers_under_no_other(harness: WorkerHarness) -> None:
    hosts = AllowedHosts(["desk.acme.test"])
    async with (
        harness.open(),
        open_http_server(harness, hosts=hosts, documents=FakeDocuments()) as http_server,
    ):
        token = await http_server.key()
        for method, path in every_route(http_server):
            answer = await call(http_server.client(token, Host=FORGED), method, path)
            assert (answer.status_code, code_of(answer)) == (403, "host_not_allowed"), path
        good = await http_server.client(token, Host="desk.acme.test:8080").get("/v1/models")
        alive = await http_server.client(Host="10.0.0.9:8080").get("/healthz")

    assert (good.status_code, alive.status_code) == (200, 200)


@pytest.mark.parametrize(
    ("names", "public_url", "host", "is_allowed"),
    [
        ((), None, "anything.test", True),
        ((), "https://desk.acme.test", "anything.test", True),
        (("desk.acme.test",), None, "DESK.acme.test", True),
        (("desk.acme.test",), None, "desk.acme.test:443", True),
        (("desk.acme.test",), None, "desk.acme.test.evil.test", False),
        (("desk.acme.test",), None, "evil.test:desk.acme.test", False),
        (("desk.acme.test",), None, "", False),
        (("desk.acme.test",), None, "desk.acme.test@evil.test", False),
        (("*.acme.test",), None, "desk.acme.test", True),
        (("*.acme.test",), None, "acme.test", False),
        (("*.acme.test",), None, "evilacme.test", False),
        (("[::1]",), None, "[::1]:8000", True),
        (("localhost",), "https://desk.acme.test:8443", "desk.acme.test", True),
    ],
)
def test_a_host_is_allowed_by_its_whole_name(
    names: tuple[str, ...], public_url: str | None, host: str, is_allowed: bool
) -> None:
    hosts = AllowedHosts(names, public_url=public_url)

    assert hosts.allows(host) is is_allowed


def code_of(answer: httpx.Response) -> Any:
    return answer.json()["error"]["code"]
