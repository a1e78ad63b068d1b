"""A server on this machine that answers as the vendors do, each reply from a script."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.vendor_requests import find_refusal


@dataclass(frozen=True)
class Response:
    """What the server sends; `ends` says how the connection goes on after it.

    Of a stream each event is sent `pause_seconds` after the one before; the event at a position of
    `gates` waits until its gate is set.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    ends: Literal["whole", "cut", "never"] = "whole"
    pause_seconds: float = 0.0
    gates: Mapping[int, asyncio.Event] = field(default_factory=dict)


@dataclass(frozen=True)
class Received:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class ModelServer:
    """Plays its responses in order; a request too many gets a status that no vendor sends."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.received: list[Received] = []
        self.refused: list[str] = []
        """Why requests were refused that the real service would refuse."""
        self.responses: deque[Response] = deque()
        self.was_asked = asyncio.Event()
        self.lists_models = True
        """Whether what is asked about models (a GET, as of a check of the key, or a POST for the
        context window) is answered apart from the script."""
        self._connections: list[tuple[asyncio.StreamWriter, asyncio.Future[None]]] = []

    def will_send(self, *responses: Response) -> None:
        self.responses.extend(responses)

    def choose_response(self, _received: Received) -> Response:
        """The next response of the script."""
        return self.responses.popleft() if self.responses else Response(418, b'{"error":{}}')

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended = asyncio.get_running_loop().create_future()
        self._connections.append((writer, ended))
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            writer.close()
            ended.set_result(None)

    async def close(self) -> None:
        """Break every connection and wait until nobody serves any more."""
        for writer, _ in self._connections:
            writer.transport.abort()
        await asyncio.gather(*(ended for _, ended in self._connections))

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        method, path, _ = first.split(" ")
        pairs = (line.split(":", 1) for line in lines)
        headers = {name.lower(): value.strip() for name, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if self.lists_models and method == "GET":
            await _send(writer, Response(body=b'{"object": "list", "data": []}'))
            return True
        if self.lists_models and path == "/api/show":
            await _send(writer, Response(404, b"{}"))
            return True
        received = Received(method, path, headers, json.loads(body or b"{}"))
        self.received.append(received)
        self.was_asked.set()
        if refusal := find_refusal(path, received.body):
            self.refused.append(refusal)
            await _send(writer, Response(400, json.dumps({"error": {"message": refusal}}).encode()))
            return True
        response = self.choose_response(received)
        await _send(writer, response)
        if response.ends == "never":
            await reader.read()
        return response.ends == "whole"


@asynccontextmanager
async def running_server(server: ModelServer | None = None) -> AsyncIterator[ModelServer]:
    """Serve on a free port of the loopback address until the block ends."""
    server = ModelServer("") if server is None else server
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()
        await server.close()
    assert server.refused == []


async def _send(writer: asyncio.StreamWriter, response: Response) -> None:
    if response.ends == "never":
        return
    # A cut response promises more than it sends.
    length = len(response.body) + (1000 if response.ends == "cut" else 0)
    head = [
        f"HTTP/1.1 {response.status} Status",
        f"content-type: {response.content_type}",
        f"content-length: {length}",
        *(f"{name}: {value}" for name, value in response.headers.items()),
    ]
    writer.write("\r\n".join(head).encode() + b"\r\n\r\n")
    if not (response.pause_seconds or response.gates):
        writer.write(response.body)
    else:
        await _send_events(writer, response)
    await writer.drain()


async def _send_events(writer: asyncio.StreamWriter, response: Response) -> None:
    for place, event in enumerate(filter(None, response.body.split(b"\n\n"))):
        if place in response.gates:
            await response.gates[place].wait()
        writer.write(event + b"\n\n")
        await writer.drain()
        await asyncio.sleep(response.pause_seconds)  # noqa: TID251 - the vendor pauses between events
