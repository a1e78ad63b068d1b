"""Serves an application on a socket until `stopping` is set, within the connection limits."""

import asyncio
import contextlib
import math
import resource
import socket
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, cast
from uuid import uuid4

import structlog
import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.connections.limits import BUSY, READ_BYTES, ConnectionLimits
from gateway.connections.protocol import CONNECTION, BoundedProtocol, new_buffer
from gateway.connections.registry import ConnectionRegistry, RareLog
from gateway.errors import GatewayError

MOST_DESCRIPTORS = 65_536
"""The limit that is used instead of an unlimited one, and the highest limit that is requested."""
MESSAGE = "socket.accept() out of system resource"
"""The message with which asyncio calls its exception handler if it cannot accept a connection; it
tries again after a second.
"""
log = structlog.get_logger("gateway")

PIECE_BYTES = 32 * 1024
"""The size of the pieces in which a large response is sent, so that the buffer for a slow reader
contains only one of them.
"""
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
GRACE_SECONDS = 5
"""How long running requests may take to finish when the process stops."""
BACKLOG = 1024


class BoundedResponses:
    """Wraps an application: sends large responses in pieces, and reports to the connection when a
    body is read and when a response has ended.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        connection: BoundedProtocol = scope["state"].pop(CONNECTION)
        scope["headers"] = connection.begin_request(scope["headers"])
        exchange = _Exchange(Headers(scope=scope), receive, send, connection)
        try:
            if connection.is_for_probes and scope["path"] not in PROBES:
                await _refuse(exchange.send)
            else:
                await self._app(scope, exchange.receive, exchange.send)
        finally:
            exchange.end()


class PortTakenError(GatewayError):
    """The address cannot be used for listening."""


class _Exchange:
    """A request and its response."""

    def __init__(
        self,
        headers: Mapping[str, str],
        receive: Receive,
        send: Send,
        connection: BoundedProtocol,
    ) -> None:
        self._receive = receive
        self._send = send
        self._connection = connection
        self._is_unread = _is_worth_ending(headers)
        self._is_upgrade = "upgrade" in headers
        self._has_ended = False

    async def receive(self) -> Message:
        self._connection.want_body()
        message = await self._receive()
        if not message.get("more_body", False):
            self._is_unread = False
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._connection.begin_answer()
            if self._is_unread or self._is_upgrade:
                MutableHeaders(scope=message)["Connection"] = "close"
            await self._send(message)
            return
        body = message.get("body", b"")
        more = message.get("more_body", False)
        for start in range(0, len(body) - PIECE_BYTES, PIECE_BYTES):
            piece = body[start : start + PIECE_BYTES]
            await self._send({**message, "body": piece, "more_body": True})
        left = max(0, -(-len(body) // PIECE_BYTES) - 1) * PIECE_BYTES
        await self._send({**message, "body": body[left:], "more_body": more})
        if not more:
            self.end()

    def end(self) -> None:
        """Tell the connection, once, that the response is complete or that there will be none."""
        if not self._has_ended:
            self._has_ended = True
            self._connection.end_answer()


class _UvicornServer(uvicorn.Server):
    """A uvicorn server that leaves signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def raise_descriptor_limit() -> int:
    """Raise the soft limit to the hard limit, but at most to `MOST_DESCRIPTORS`; return the limit.

    A soft limit that is already higher is kept; for an unlimited one, `MOST_DESCRIPTORS` is
    returned.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


@contextmanager
def accept_errors_logged_rarely() -> Iterator[None]:
    """Rate-limit the logging of asyncio's errors about failed accepts inside the context; pass on
    all other errors.
    """
    loop = asyncio.get_running_loop()
    previous = loop.get_exception_handler()
    rare = RareLog("accept_failed")

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if context.get("message") == MESSAGE:
            error = context.get("exception")
            reason = error.strerror if isinstance(error, OSError) else None
            rare.count("unknown" if reason is None else reason)
        elif previous is None:
            loop.default_exception_handler(context)
        else:
            previous(loop, context)

    loop.set_exception_handler(handle)
    try:
        yield
    finally:
        loop.set_exception_handler(previous)


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket; raises `PortTakenError`.

    Its connections send small pieces immediately (TCP_NODELAY), which asyncio sets only for a
    socket that names its protocol. Headers and body are sent in two pieces, and the second would
    otherwise wait 40 ms for the client's delayed acknowledgement of the first.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise PortTakenError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


@asynccontextmanager
async def serving(
    app: ASGIApp,
    listener: socket.socket,
    stopping: asyncio.Event,
    *,
    trusted_proxies: Sequence[str] = (),
    limits: ConnectionLimits | None = None,
) -> AsyncIterator[ConnectionRegistry]:
    """Serve inside the context; when it exits, `stopping` is set, and running requests may finish.

    Only `trusted_proxies` (addresses or networks) are trusted to name their callers. The caller is
    the last address in `X-Forwarded-For` that does not belong to a trusted proxy. Trusted proxies
    have no limit per address.
    """
    limits = ConnectionLimits() if limits is None else limits
    registry = ConnectionRegistry(limits, trusted_proxies=trusted_proxies)
    protocol = partial(BoundedProtocol, registry=registry, buffer=new_buffer())
    config = uvicorn.Config(
        BoundedResponses(app),
        http=cast("type[asyncio.Protocol]", protocol),
        ws="none",
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=math.ceil(limits.idle_seconds),
        log_level="error",  # not each attempt to speak another protocol
    )
    server = _UvicornServer(config)
    with accept_errors_logged_rarely():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve(sockets=[listener]))
            try:
                yield registry
            finally:
                stopping.set()
                server.should_exit = True


def _is_worth_ending(headers: Mapping[str, str]) -> bool:
    """Return whether the connection must be closed if the body is not read; a short body is read to
    the end instead.
    """
    length = headers.get("content-length", "0")
    is_short = length.isdecimal() and int(length[:20]) <= READ_BYTES
    return "transfer-encoding" in headers or "expect" in headers or not is_short


async def _refuse(send: Send) -> None:
    request_id = uuid4().hex
    log.info("request_refused", status=BUSY.status, code=BUSY.code, request_id=request_id)
    headers = [
        (b"content-type", b"application/json"),
        (b"retry-after", b"2"),
        (b"x-request-id", request_id.encode()),
        (b"connection", b"close"),
    ]
    start = {
        "type": "http.response.start",
        "status": HTTPStatus.SERVICE_UNAVAILABLE,
        "headers": headers,
    }
    await send(start)
    await send({"type": "http.response.body", "body": BUSY.body(request_id)})
