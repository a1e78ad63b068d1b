"""In which order a request is looked at, and what a refusal says: nothing of what was sent."""

import asyncio
import json
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from fakeredis import FakeAsyncRedis, FakeServer

from gateway.connections.bodies import BUFFERED_BYTES_PER_ADDRESS
from tests.gateway.connections.raw_connection import RawConnection
from tests.support.http_server import WEBSITE, HttpServerFixture, open_http_server
from tests.support.worker_harness import WorkerHarness

MESSAGES = "/v1/conversations/c1/messages"
COMPLETIONS = "/v1/chat/completions"
CANARY = "marimba"
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
async def test_who_has_no_key_is_refused_before_the_body_is_read(
    http_server: HttpServerFixture, path: str, headers: tuple[str, ...], status: int
) -> None:
    public = await http_server.public()
    line = await connect(http_server)
    await line.send(begun(path, *(one.format(public=public) for one in headers)))

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


async def test_a_key_is_looked_up_once_for_a_request(http_server: HttpServerFixture) -> None:
    client, looked, get = await http_server.secret(), 0, http_server.keys.get

    async def count_metric(key_id: str) -> Any:
        nonlocal looked
        looked += 1
        return await get(key_id)

    http_server.keys.get = count_metric  # type: ignore[method-assign] # counts what it passes on
    answer = await client.post(MESSAGES, json={"text": "How?"})

    assert answer.status_code == 200
    assert looked == 1


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
    async with asyncio.timeout(20):
        while not (head := await read_early_refusal(http_server, key)):
            continue
    usual = await http_server.client(token).post(MESSAGES, json={"text": "How?"})
    for line in holding:
        line.close()

    assert head.startswith("HTTP/1.1 503")
    assert re.search("retry-after: [1-9]", head)
    assert usual.status_code == 200

    async with asyncio.timeout(20):
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
    assert CANARY not in answer.text.lower()
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
