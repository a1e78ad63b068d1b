"""Sends answers in pieces, and closes connections whose request was not read completely."""

from collections.abc import Mapping
from http import HTTPStatus
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.connections.limits import READ_BYTES
from gateway.connections.protocol import CONNECTION, BoundedConnection
from gateway.connections.refusals import BUSY

log = structlog.get_logger("gateway")

PIECE_BYTES = 32 * 1024
"""A slow reader holds this much of a large answer in the buffer of its connection, not all."""
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})


class BoundedResponses:
    """Wraps an application for the server."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        connection: BoundedConnection = scope["state"].pop(CONNECTION)
        scope["headers"] = connection.begin_request(scope["headers"])
        exchange = _Exchange(Headers(scope=scope), receive, send, connection)
        try:
            if connection.is_for_probes and scope["path"] not in PROBES:
                await _refuse(exchange.send)
            else:
                await self._app(scope, exchange.receive, exchange.send)
        finally:
            exchange.end()


class _Exchange:
    """One request and its answer."""

    def __init__(
        self,
        headers: Mapping[str, str],
        receive: Receive,
        send: Send,
        connection: BoundedConnection,
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
        """Tell the connection once that the answer is complete, or that there will be none."""
        if not self._has_ended:
            self._has_ended = True
            self._connection.end_answer()


def _is_worth_ending(headers: Mapping[str, str]) -> bool:
    """Whether the connection must end where the body is not read: a short one is read on."""
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
