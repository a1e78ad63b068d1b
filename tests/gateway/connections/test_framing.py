"""What one request may cost in bytes, before its body and around it."""

import json
import re

import pytest
from structlog.testing import capture_logs

from tests.gateway.connections.raw_connection import GET, HOST, line_server

KB = 1024


@pytest.mark.parametrize(
    ("name", "head", "status"),
    [
        ("one endless header", b"X: " + b"a" * (2_000 * KB), 431),
        ("an endless header name", b"X" * (2_000 * KB), 431),
        ("many headers", b"".join(b"X-%d: a\r\n" % n for n in range(101)) + b"\r\n", 431),
        (
            "64 kB in several",
            b"".join(b"X-%d: %b\r\n" % (n, b"a" * 8_000) for n in range(9)) + b"\r\n",
            431,
        ),
        ("no end, in lines", b"X: a\r\n" * 400_000, 431),
    ],
)
async def test_a_request_with_too_many_headers_is_refused(
    name: str, head: bytes, status: int
) -> None:
    async with line_server() as server:
        line = await server.line()
        await line.send(b"GET / HTTP/1.1\r\n" + HOST)
        await line.send(head)

        assert await line.status() == status, name
        body = json.loads(await line.rest())
        assert body["error"]["code"] == "headers_too_large"
        assert server.entered == 0


async def test_headers_just_below_the_limit_are_taken() -> None:
    async with line_server() as server:
        line = await server.line()
        many = b"".join(b"X-%d: %b\r\n" % (n, b"a" * 620) for n in range(99))
        await line.send(b"GET / HTTP/1.1\r\n" + HOST + many + b"\r\n")

        assert await line.status() == 200


async def test_a_very_long_address_is_refused() -> None:
    async with line_server() as server:
        line = await server.line()
        await line.send(b"GET /" + b"a" * (1_000 * KB))

        assert await line.status() == 414


@pytest.mark.parametrize("blank", [b"\r\n", b"\n"])
async def test_endless_blank_lines_are_no_request(blank: bytes) -> None:
    async with line_server() as server:
        line = await server.line()
        await line.send(blank * 100_000)

        assert await line.status() in {400, 431}


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a chunk extension", b"1;a=" + b"b" * (200 * KB) + b"\r\nx\r\n0\r\n\r\n"),
        ("an extension of each chunk", b"1;a=bbbbbbbbbbbbbbbbbbbbbbb\r\nx\r\n" * 8_000),
        ("a trailer", b"1\r\nx\r\n0\r\nX: " + b"b" * (200 * KB) + b"\r\n\r\n"),
        ("many trailers", b"1\r\nx\r\n0\r\n" + b"X: b\r\n" * 200 + b"\r\n"),
    ],
)
async def test_chunks_may_not_carry_much_beside_the_body(name: str, body: bytes) -> None:
    async with line_server() as server:
        line = await server.line()
        await line.send(b"POST /read HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HOST + b"\r\n")
        await line.send(body)

        response = await line.rest()
        assert b" 200 " not in response, name


async def test_small_chunks_are_read() -> None:
    async with line_server() as server:
        line = await server.line()
        await line.send(b"POST /read HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HOST + b"\r\n")
        await line.send(b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n")

        assert await line.status() == 200
        assert server.read_bytes == 20_000


async def test_a_trailer_is_no_header() -> None:
    async with line_server() as server:
        line = await server.line()
        await line.send(
            b"POST /headers HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
            + HOST
            + b"\r\n1\r\nx\r\n0\r\nAuthorization: Bearer of-somebody\r\n\r\n"
        )

        assert b"['connection', 'host', 'transfer-encoding'] 1" in await line.rest()


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n",
        b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64,
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST /read HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
        b"POST /read HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
        b"POST /read HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"f" * 17
        + b"\r\n",
    ],
)
async def test_an_invalid_request_is_refused_in_one_form_and_logged_in_one_line(
    request_: bytes,
) -> None:
    with capture_logs() as logged:
        async with line_server() as server:
            line = await server.line()
            await line.send(request_)

            assert await line.status() == 400
            answer = json.loads(await line.rest())["error"]
            assert set(answer) == {"message", "type", "param", "code", "request_id"}
            assert server.entered <= 1

    [entry] = logged
    assert (entry["event"], entry["status"]) == ("request_refused", 400)
    assert entry["request_id"] == answer["request_id"]


async def test_an_upgrade_is_answered_as_a_plain_request_and_ends_the_connection() -> None:
    async with line_server() as server:
        for protocol in (b"websocket", b"h2c"):
            line = await server.line()
            await line.send(
                b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: "
                + protocol
                + b"\r\nSec-WebSocket-Key: dGhlIHNhbXBsZQ==\r\nSec-WebSocket-Version: 13\r\n"
                + HOST
                + b"\r\n"
            )

            response = (await line.rest()).decode()
            assert response.startswith("HTTP/1.1 200")
            assert "connection: close" in response


async def test_requests_that_wait_behind_another_are_few() -> None:
    async with line_server() as server:
        few, many = await server.line(), await server.line()
        await few.send(GET * 8)
        assert [await few.status() for _ in range(1)] == [200]
        assert (await few.reader.read(10)) is not None

        await many.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n" + GET * 500)
        response = await many.rest()

        assert re.findall(rb"HTTP/1.1 (\d+)", response) in ([], [b"400"])


async def test_the_refusal_of_an_invalid_request_never_interrupts_an_earlier_answer() -> None:
    async with line_server() as server:
        line = await server.line()
        await line.send(b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
        assert await line.status() == 200
        await line.send(b"\x00nonsense\r\n\r\n")

        assert b"malformed" not in await line.rest()
