"""Which requests are looked at, in which order, under which names; refusals repeat nothing."""

import asyncio
import json
import re
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from fakeredis import FakeAsyncRedis, FakeServer
from starlette.requests import Request
from starlette.responses import Response

from envelope.role import Role
from gateway.chat.webhook import webhook
from gateway.connections.bodies import BUFFERED_BYTES_PER_ADDRESS
from gateway.http.access import AllowedHosts
from tests.gateway.connections.raw_connection import RawConnection
from tests.gateway.http.test_documents import QUESTION, SOURCE
from tests.gateway.http.test_keys import call, every_route
from tests.support.http_server import WEBSITE, FakeDocuments, HttpServerFixture, open_http_server
from tests.support.waiting import within
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


MESSAGES = "/v1/conversations/c1/messages"


COMPLETIONS = "/v1/chat/completions"


CANARY, UNKNOWN_PLACE = "marimba", "9876543210987654"


BODY_BYTES = 500_000


async def connect(http_server: HttpServerFixture) -> RawConnection:
    port = urlsplit(http_server.url).port
    return RawConnection(*await asyncio.open_connection("127.0.0.1", port))


def begun(path: str, *headers: str, length: int = BODY_BYTES) -> bytes:
    """The head of a request whose body does not come."""
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
    return "\r\n".join([*lines, f"Content-Length: {length}", *headers, "", ""]).encode()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ((), 401),
        (("Authorization: Bearer nonsense",), 401),
        (("Authorization: Bearer refdesk_secret_0123456789ab_" + "A" * 43,), 401),
        (("Authorization: Bearer {public}",), 403),
        (("Authorization: Bearer {public}", "Origin: https://evil.test"), 403),
    ],
)
@pytest.mark.parametrize("path", [MESSAGES, COMPLETIONS, "/v1/conversations", "/nowhere"])
async def test_a_request_without_a_key_is_refused_before_its_body_is_read(
    http_server: HttpServerFixture, path: str, headers: tuple[str, ...], status: int
) -> None:
    public = await http_server.public()
    line = await connect(http_server)
    await line.send(begun(path, *(header.format(public=public) for header in headers)))

    head = await line.head()

    assert int(head.split(" ")[1]) == status
    assert "connection: close" in head
    line.close()


async def test_a_website_is_kept_out_before_its_body_is_read_where_no_key_is_needed(
    http_server: HttpServerFixture,
) -> None:
    line = await connect(http_server)
    await line.send(begun(MESSAGES, "Origin: https://evil.test"))

    assert await line.status() == 403
    line.close()


async def test_a_body_is_refused_when_its_address_holds_enough_and_room_is_given_back(
    http_server: HttpServerFixture,
) -> None:
    token = await http_server.key()
    key = f"Authorization: Bearer {token}"
    holding = []
    for _ in range(BUFFERED_BYTES_PER_ADDRESS // BODY_BYTES):
        line = await connect(http_server)
        await line.send(begun(MESSAGES, key) + b" " * (BODY_BYTES - 1))
        holding.append(line)
    async with within():
        while not (head := await read_early_refusal(http_server, key)):
            continue
    usual = await http_server.client(token).post(MESSAGES, json={"text": "How?"})
    for line in holding:
        line.close()

    assert head.startswith("HTTP/1.1 503")
    assert re.search("retry-after: [1-9]", head)
    assert usual.status_code == 200

    async with within():
        while True:
            large = await http_server.client(token).post(
                MESSAGES, content=b'{"text": "How?"' + b" " * 400_000 + b"}",
                headers={"Content-Type": "application/json"},
            )  # fmt: skip
            if large.status_code == 200:
                break


async def read_early_refusal(http_server: HttpServerFixture, key: str) -> str:
    """Announce a large body; return the head of its refusal, empty while there is room for it."""
    line = await connect(http_server)
    await line.send(begun(MESSAGES, key))
    try:
        async with asyncio.timeout(0.2):
            return await line.head()
    except TimeoutError:
        return ""
    finally:
        line.close()


async def test_a_body_that_breaks_off_is_no_message(http_server: HttpServerFixture) -> None:
    line = await connect(http_server)
    body = b'{"text": "How?", "message_id": "broken"}'
    await line.send(begun(MESSAGES, length=len(body) + 5) + body)
    line.close()
    assert (await http_server.client().post(MESSAGES, json={"text": "How?"})).status_code == 200

    assert await http_server.harness.broker.admin.find_questions("broken") == []


async def test_a_website_may_ask_beforehand_while_redis_is_away() -> None:
    server = FakeServer()
    harness = WorkerHarness(lambda: FakeAsyncRedis(server=server, protocol=2), played=True)
    async with open_http_server(harness) as http_server:
        token = await http_server.public()
        server.connected = False
        asked = {"Origin": WEBSITE, "Access-Control-Request-Method": "POST"}
        answer = await http_server.client(**asked).options(MESSAGES)
        away = await http_server.client(token, Origin=WEBSITE).post(MESSAGES, json={"text": "How?"})
        server.connected = True
    await harness.close()

    assert answer.status_code == 204
    assert (away.status_code, away.json()["error"]["code"]) == (503, "unavailable")


@pytest.mark.parametrize(
    ("method", "path", "options"),
    [
        ("POST", MESSAGES, {"json": {"text": "Hi", CANARY: 1}}),
        ("POST", MESSAGES, {"json": [CANARY]}),
        ("POST", MESSAGES, {"json": {"text": f"{CANARY}?", "message_id": "m1"}}),
        ("POST", MESSAGES, {"json": {"text": "Hi", "language": f"{CANARY}!"}}),
        ("POST", MESSAGES, {"json": {"text": "Hi", "message_id": f"{CANARY} "}}),
        ("POST", MESSAGES, {"content": f'{{"{CANARY}'.encode()}),
        ("POST", MESSAGES, {"json": {"text": "Hi", "message_id": "m1"},
                            "headers": {"Idempotency-Key": CANARY}}),
        ("PATCH", MESSAGES, {"json": {CANARY: 1}}),
        ("GET", f"/v1/conversations/{CANARY}%20", {}),
        ("GET", f"/v1/conversations/c1?assistant={CANARY * 20}", {}),
        ("GET", f"/v1/documents/{CANARY}", {}),
        ("POST", MESSAGES, {"json": {"text": {CANARY: 1}}}),
        ("POST", MESSAGES, {"json": {"text": "Hi", "language": CANARY * 9}}),
        ("POST", MESSAGES, {"json": {"text": "Hi", "message_id": f"{CANARY}/"}}),
        ("POST", MESSAGES, {"content": CANARY.encode()}),
        ("POST", f"{MESSAGES}?assistant={CANARY}", {"json": {"text": "Hi"}}),
        ("POST", MESSAGES, {"json": {"text": "Hi"}, "headers": {"Authorization": CANARY}}),
        ("POST", f"{MESSAGES}/{CANARY}%20/feedback", {"json": {"rating": CANARY}}),
        ("POST", f"{MESSAGES}/m1/feedback", {"json": {"rating": CANARY}}),
        ("POST", f"{MESSAGES}/{CANARY}/cancel", {}),
        ("GET", f"{MESSAGES}/{CANARY}/events", {}),
        ("GET", f"{MESSAGES}/m1/events", {"headers": {"Last-Event-ID": CANARY}}),
        ("GET", f"{MESSAGES}/m1/events", {"headers": {"Last-Event-ID": f"{UNKNOWN_PLACE}-0.0"}}),
        ("GET", f"/v1/conversations/{CANARY}", {}),
        ("GET", f"/v1/models/{CANARY}", {}),
        ("GET", f"/{CANARY}", {}),
        (CANARY.upper(), "/v1/models", {}),
        ("PUT", f"/v1/conversations/{CANARY}", {}),
        ("POST", COMPLETIONS, {"json": {"model": CANARY, "messages": [
            {"role": "user", "content": "Hi"}]}}),
        ("POST", COMPLETIONS, {"json": {"model": "docs", "messages": [{"role": CANARY}]}}),
        ("POST", COMPLETIONS, {"json": {"model": "docs", "messages": [
            {"role": "user", "content": [{"type": CANARY}]}]}}),
    ],
)  # fmt: skip
async def test_a_refusal_repeats_nothing_of_the_request(
    http_server: HttpServerFixture, method: str, path: str, options: dict[str, Any]
) -> None:
    token = await http_server.key()
    await http_server.client(token).post(MESSAGES, json={"text": "Hi", "message_id": "m1"})
    headers = {"Authorization": f"Bearer {token}", **options.pop("headers", {})}

    answer = await http_server.client().request(method, path, headers=headers, **options)

    assert 400 <= answer.status_code < 500
    for sent in (CANARY, UNKNOWN_PLACE):
        assert sent not in answer.text.lower()
        assert sent not in str(answer.headers)
    if answer.headers["content-type"] == "application/json":
        assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"text": NaN}', b'{"text": "a", "text": "b"}', b'{"text": 1e999, "x": Infinity}', b"{",
        b'{"text": ' + b"9" * 10_000 + b"}", b"[" * 100_000, b'{"text": "\xff"}', b'"\xed\xa0\x80"',
    ],
)  # fmt: skip
async def test_json_that_can_be_read_in_two_ways_is_refused_in_one_line(
    http_server: HttpServerFixture, body: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()

    answer = await http_server.client().post(
        MESSAGES, content=body, headers={"Content-Type": "application/json"}
    )

    output = capsys.readouterr()
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_json")
    assert len((output.out + output.err).strip().splitlines()) == 1
    assert json.loads(answer.text)["error"]["request_id"] in output.out + output.err
