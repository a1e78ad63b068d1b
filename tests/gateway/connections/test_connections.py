"""How long and how often a connection may be open, and who gives way at a limit."""

import asyncio
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send
from structlog.testing import capture_logs

from gateway.connections.limits import LINGER_BYTES, ConnectionLimits
from gateway.connections.registry import TrustedNetworks, group_address
from gateway.connections.server import raise_descriptor_limit
from tests.gateway.connections.raw_connection import (
    GET,
    HOST,
    LineServer,
    RawConnection,
    line_server,
)
from tests.support.waiting import wait_until, within

WAIT = b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"


SHORT = ConnectionLimits(head_seconds=0.3, write_seconds=0.5)


async def test_every_connection_sends_small_pieces_at_once() -> None:
    async with line_server() as server:
        line = await server.line()
        await line.send(GET)
        await line.status()
        [connection] = server.registry._places  # noqa: SLF001 - what it holds is meant

        accepted = connection.transport.get_extra_info("socket")  # type: ignore[attr-defined] # of the protocol
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: a\r\nX: "])
async def test_half_open_connections_end(sent: bytes) -> None:
    async with line_server(limits=SHORT) as server:
        line = await server.line()
        await line.send(sent)

        response = await line.rest()

        assert response.startswith(b"HTTP/1.1 408") if sent else response == b""
        await server.until(0)


async def test_headers_that_trickle_do_not_gain_time() -> None:
    async with line_server(limits=SHORT) as server:
        line = await server.line()
        await line.send(b"GET / HTTP/1.1\r\n")

        async def send_more() -> bool:
            await line.send(b"X: a\r\n")
            return not len(server.registry)

        await wait_until(send_more)


async def test_a_second_request_has_its_own_time() -> None:
    async with line_server(limits=SHORT) as server:
        line = await server.line()
        await line.send(GET)
        assert await line.status() == 200
        await line.reader.readexactly(2)
        # Idle for longer than headers may take: those of another connection were too slow since.
        await time_out(server)
        await line.send(GET[:20])
        await line.send(GET[20:])
        assert await line.status() == 200
        await line.reader.readexactly(2)

        await line.send(GET[:20])

        assert await line.status() == 408


async def test_waiting_for_an_answer_has_no_limit_here() -> None:
    async with line_server(limits=SHORT) as server:
        waiting, streaming = await server.line(), await server.line()
        await waiting.send(WAIT)
        await streaming.send(b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
        assert await streaming.status() == 200
        # Twice the time of headers passes meanwhile, and the application answers later still.
        await time_out(server)
        await time_out(server)
        server.gate.set()

        assert await waiting.status() == 200
        assert b"last" in await streaming.reader.readuntil(b"0\r\n\r\n")


async def test_an_idle_connection_ends() -> None:
    async with line_server(limits=ConnectionLimits(idle_seconds=0.3)) as server:
        line = await server.line()
        await line.send(GET)
        assert await line.status() == 200

        await line.rest()

        await server.until(0)


@pytest.mark.parametrize("path", [b"/much", b"/much?pipelined"])
async def test_a_client_that_never_reads_its_answer_is_disconnected(path: bytes) -> None:
    async with line_server(limits=SHORT) as server:
        line = await server.line(receive_bytes=4096)
        times = 8 if b"?" in path else 1
        await line.send((b"GET " + path + b" HTTP/1.1\r\nHost: a\r\n\r\n") * times)

        await server.until(0)


async def test_a_large_answer_reaches_a_reader_who_takes_it() -> None:
    async with line_server(limits=SHORT) as server:
        line = await server.line()
        await line.send(b"GET /much HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

        assert len((await line.rest()).partition(b"\r\n\r\n")[2]) == 16_000_000


async def test_an_answer_before_the_end_of_the_body_arrives() -> None:
    async with line_server() as server:
        line = await server.line()
        await line.send(b"POST / HTTP/1.1\r\nContent-Length: 2000000\r\n" + HOST + b"\r\n")
        await line.send(b"x" * 2_000_000)

        response = await line.rest()

        assert response.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in response


async def test_an_application_that_fails_leaves_no_connection_busy() -> None:
    async def fail(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("a fault")

    async with line_server(app=fail) as server:
        line = await server.line()
        await line.send(GET)

        assert (await line.rest()).startswith(b"HTTP/1.1 500")
        await server.until(0)


async def test_requests_that_wait_behind_another_are_answered_in_order() -> None:
    async with line_server() as server:
        line = await server.line()
        post = b"POST /read HTTP/1.1\r\nContent-Length: 5\r\n" + HOST + b"\r\nabcde"
        await line.send(WAIT + post + post + GET)
        await busy(server, 1)
        server.gate.set()

        for body in (b"waited", b"read", b"read", b"ok"):
            assert await line.status() == 200
            assert await line.reader.readexactly(len(body)) == body
        assert server.read_bytes == 10


async def test_a_short_body_that_nobody_reads_costs_no_connection() -> None:
    async with line_server() as server:
        line = await server.line()
        for _ in range(3):
            await line.send(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n" + HOST + b"\r\n")
            assert await line.status() == 200
            await line.reader.readexactly(2)
            await line.send(b"abcde")
        await line.send(GET)

        assert await line.status() == 200


async def test_a_body_without_end_is_not_read_for_ever_once_it_is_refused() -> None:
    async with line_server() as server:
        line = await server.line()
        await line.send(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HOST + b"\r\n")
        piece = b"%x\r\n" % 100_000 + b"x" * 100_000 + b"\r\n"
        for _ in range(2 * LINGER_BYTES // 100_000):
            await line.send(piece)

        await server.until(0)


async def test_a_client_that_asks_first_sends_nothing_that_is_refused() -> None:
    async with line_server() as server:
        refused, read = await server.line(), await server.line()
        asked = b"Expect: 100-continue\r\nContent-Length: 5\r\n" + HOST + b"\r\n"
        await refused.send(b"POST / HTTP/1.1\r\n" + asked)
        await read.send(b"POST /read HTTP/1.1\r\n" + asked)

        response = await refused.head()
        assert response.startswith("HTTP/1.1 200")
        assert "connection: close" in response
        assert await read.status() == 100
        await read.send(b"abcde")
        assert await read.status() == 200


async def test_a_body_waits_outside_until_the_application_wants_it() -> None:
    async with line_server() as server:
        line = await server.line()
        await line.send(b"POST /wait HTTP/1.1\r\nContent-Length: 9000000\r\n" + HOST + b"\r\n")
        writing = asyncio.get_running_loop().create_task(line.send(b"x" * 9_000_000))
        await busy(server, 1)
        [connection] = server.registry._places  # noqa: SLF001 - what it holds is meant

        # Nothing more is read of the body; what was read before waits for the application.
        await wait_until(lambda: not connection.transport.is_reading())  # type: ignore[attr-defined]

        assert connection._framing.read_bytes <= 16 * 1024  # type: ignore[attr-defined] # noqa: SLF001
        writing.cancel()


async def test_at_the_limit_of_an_address_its_oldest_idle_connection_gives_way() -> None:
    limits = ConnectionLimits(connections_per_address=3)
    async with line_server(limits=limits) as server:
        oldest, *_ = [await server.line() for _ in range(3)]
        other = await server.line(source="127.0.0.2")
        newest = await server.line()
        await newest.send(GET)
        await other.send(GET)

        assert await newest.status() == 200
        assert await other.status() == 200
        assert await oldest.rest() == b""


async def test_an_address_whose_requests_are_all_at_work_gets_no_further_connection() -> None:
    limits = ConnectionLimits(connections_per_address=3)
    with capture_logs() as logged:
        async with line_server(limits=limits) as server:
            await at_work(server, 3, "127.0.0.1")
            for _ in range(5):
                refused = await server.line()
                assert (await refused.rest()).startswith(b"HTTP/1.1 503")
            elsewhere = await server.line(source="127.0.0.2")
            await elsewhere.send(GET)
            assert await elsewhere.status() == 200

    [refusal] = [line for line in logged if line["event"] == "connections_refused"]
    assert refusal["reason"] == "per_address"
    assert refusal["setting"] == "HTTP_CONNECTIONS_PER_ADDRESS"


async def test_a_trusted_proxy_has_no_limit_of_its_own() -> None:
    limits = ConnectionLimits(connections_per_address=2)
    proxies = ("127.0.0.8/29",)
    async with line_server(limits=limits, trusted_proxies=proxies) as server:
        waiting = await at_work(server, 6, "127.0.0.9")
        server.gate.set()

        assert [await line.status() for line in waiting] == [200] * 6


async def test_half_open_connections_give_way_to_visitors() -> None:
    limits = ConnectionLimits(connections=20)
    async with line_server(limits=limits) as server:
        for number in range(100):
            line = await server.line(source=f"127.0.1.{number + 1}")
            await line.send(GET[:20])
        visitors = [await server.line(source=f"127.0.2.{n + 1}") for n in range(10)]
        for visitor in visitors:
            await visitor.send(GET)

        assert [await visitor.status() for visitor in visitors] == [200] * 10
        assert len(server.registry) <= 20


async def test_probes_are_answered_when_every_connection_is_at_work() -> None:
    limits = ConnectionLimits(connections=4)
    async with line_server(limits=limits) as server:
        await at_work(server, 4, "127.0.0.1")
        visitor, probe = await server.line(), await server.line()
        await visitor.send(GET)
        await probe.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")

        assert await visitor.status() == 503
        assert await probe.status() == 200


async def test_beyond_the_places_of_probes_connections_are_refused() -> None:
    limits = ConnectionLimits(connections=2)
    async with line_server(limits=limits) as server:
        waiting = await at_work(server, 2, "127.0.0.1")
        for _ in range(40):
            await server.line()
        probe = await server.line()
        await probe.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert await probe.status() == 200
        server.gate.set()

        assert [await line.status() for line in waiting] == [200] * 2


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::9", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("somewhere", "somewhere"),
        ("", ""),
    ],
)
def test_an_address_of_ipv6_stands_for_its_network(host: str, group: str) -> None:
    assert group_address(host) == group


def test_a_mapped_address_of_a_proxy_is_the_proxys() -> None:
    trusted = TrustedNetworks(("10.0.0.0/8", "2001:db8::/32"))

    assert "10.1.2.3" in trusted
    assert "::ffff:10.1.2.3" in trusted
    assert "2001:db8::1" in trusted
    assert "11.1.2.3" not in trusted
    assert "proxy" not in trusted


def test_connections_leave_files_to_the_rest_of_the_process() -> None:
    assert ConnectionLimits(connections=4096).within(1024).connections == 752
    assert ConnectionLimits(connections=10).within(1024).connections == 10


async def at_work(server: LineServer, count: int, source: str) -> list[RawConnection]:
    """Open connections whose requests wait for the gate."""
    lines = [await server.line(source=source) for _ in range(count)]
    for line in lines:
        await line.send(WAIT)
    await busy(server, count)
    return lines


async def time_out(server: LineServer) -> None:
    """Wait until the server ends a connection whose headers are too slow."""
    line = await server.line()
    await line.send(GET[:20])
    assert await line.status() == 408


async def busy(server: LineServer, count: int) -> None:
    """Wait until that many requests have reached the application."""
    await wait_until(lambda: server.entered >= count)


ROOT = Path(__file__).parent.parent.parent.parent


CLOSING = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


@pytest.mark.slow
async def test_a_process_without_descriptors_logs_it_once_and_recovers(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.gateway.connections.exhausted_server",
            cwd=ROOT, stdout=subprocess.PIPE, stderr=errors,
        )  # fmt: skip
    try:
        assert process.stdout is not None
        port = int(await process.stdout.readline())
        taken = await ask_and_wait(port, CLOSING.replace(b"GET /", b"GET /starve"))
        answers = await asyncio.gather(*(ask_and_wait(port, CLOSING) for _ in range(20)))
    finally:
        process.kill()
        await process.wait()

    logged = log.read_bytes()
    assert b" 200 " in taken
    assert all(b" 200 " in answer for answer in answers)
    assert logged.count(b"accept_failed") == 1
    assert b"Traceback" not in logged
    assert len(logged) < 2_000


async def ask_and_wait(port: int, request: bytes) -> bytes:
    """Return the answer, however long it is waited for."""
    async with within():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        try:
            return await reader.read()
        finally:
            writer.close()


def test_the_limit_of_descriptors_is_raised_as_far_as_it_may_be() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
    try:
        assert raise_descriptor_limit() == min(before[1], 65_536)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(before[1], 65_536)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
