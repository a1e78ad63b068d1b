"""A server on a real socket, and plain sockets that talk to it as no library would."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from gateway.connections.limits import ConnectionLimits
from gateway.connections.registry import ConnectionRegistry
from gateway.connections.server import listening, serving
from tests.support.waiting import wait_until, within

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
HOST = b"Host: a\r\n"


@dataclass
class RawConnection:
    """One connection of a client."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Send, also when the server does not want it any more."""
        try:
            self.writer.write(data)
            await self.writer.drain()
        except ConnectionError:
            return

    async def head(self) -> str:
        """Return the next answer's head."""
        async with within():
            return (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")

    async def status(self) -> int:
        """Return the status of the next answer."""
        return int((await self.head()).split(" ")[1])

    async def rest(self) -> bytes:
        """Return everything until the server closes."""
        async with within():
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    def close(self) -> None:
        self.writer.transport.abort()


@dataclass
class LineServer:
    """A server of the test's own application."""

    port: int
    registry: ConnectionRegistry
    stopping: asyncio.Event
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    entered: int = 0
    read_bytes: int = 0
    lines: list[RawConnection] = field(default_factory=list)

    async def line(self, *, source: str = "127.0.0.1", receive_bytes: int = 0) -> RawConnection:
        """Connect, from an address of this machine; `receive_bytes` makes a small window."""
        mine = socket.socket()
        if receive_bytes:
            mine.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        mine.setblocking(False)
        mine.bind((source, 0))
        await asyncio.get_running_loop().sock_connect(mine, ("127.0.0.1", self.port))
        limit = receive_bytes or 2**16
        line = RawConnection(*await asyncio.open_connection(sock=mine, limit=limit))
        self.lines.append(line)
        return line

    async def until(self, count: int) -> None:
        """Wait until that many connections are open."""
        await wait_until(lambda: len(self.registry) == count)


@asynccontextmanager
async def line_server(
    *, limits: ConnectionLimits | None = None, app: ASGIApp | None = None, **options: object
) -> AsyncIterator[LineServer]:
    """Serve while inside."""
    listener = listening("127.0.0.1", 0)
    stopping = asyncio.Event()
    server = LineServer(listener.getsockname()[1], None, stopping)  # type: ignore[arg-type] # below
    made = application(server) if app is None else app
    try:
        async with serving(made, listener, stopping, limits=limits, **options) as registry:  # type: ignore[arg-type] # passed on
            server.registry = registry
            try:
                yield server
            finally:
                server.gate.set()
                for line in server.lines:
                    line.close()
    finally:
        listener.close()


class Application:
    """Answers at once, waits for the gate, reads what comes, or says much."""

    def __init__(self, server: LineServer) -> None:
        self._server = server

    async def now(self, _request: Request) -> Response:
        self._server.entered += 1
        return PlainTextResponse("ok")

    async def wait(self, _request: Request) -> Response:
        self._server.entered += 1
        await self._server.gate.wait()
        return PlainTextResponse("waited")

    async def read(self, request: Request) -> Response:
        self._server.entered += 1
        with suppress(ClientDisconnect):
            async for chunk in request.stream():
                self._server.read_bytes += len(chunk)
        return PlainTextResponse("read")

    async def headers(self, request: Request) -> Response:
        body = await request.body()
        return PlainTextResponse(f"{sorted(request.headers.keys())} {len(body)}")

    async def much(self, _request: Request) -> Response:
        return PlainTextResponse("x" * 16_000_000)

    async def stream(self, _request: Request) -> Response:
        async def pieces() -> AsyncIterator[str]:
            yield "first\n"
            await self._server.gate.wait()
            yield "last\n"

        return StreamingResponse(pieces())


def application(server: LineServer) -> Starlette:
    """Return the application of a server."""
    made = Application(server)
    return Starlette(
        routes=[
            Route("/", made.now, methods=["GET", "POST"]),
            Route("/healthz", made.now),
            Route("/wait", made.wait, methods=["GET", "POST"]),
            Route("/read", made.read, methods=["POST"]),
            Route("/headers", made.headers, methods=["GET", "POST"]),
            Route("/much", made.much),
            Route("/stream", made.stream),
        ]
    )
