"""Receives every request: gives it an id, bounds its body, and writes its one log line.

A log line names the route, never the address that was asked for; no text, no key and no token. Ids
of keys are no secrets.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import MutableMapping
from typing import Any
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.http.door import Meter
from gateway.http.errors import HttpError, InvalidRequestError
from gateway.http.failures import failure

log = structlog.get_logger("gateway")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
DRAINED_BYTES = 8 * 1024 * 1024
DRAINED_SECONDS = 2.0
BODY_SECONDS = 20.0
"""How long a request's body may take to arrive."""
QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Reception:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, *, meter: Meter) -> None:
        self._app = app
        self._meter = meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(Headers(scope=scope))
        state: MutableMapping[str, Any] = scope.setdefault("state", {})
        state["request_id"] = request_id
        began, status = time.perf_counter(), 499

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                for name, value in SECURITY.items():
                    headers.setdefault(name, value)
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, answer)
            except Exception as error:
                log.error("request_failed", exc_info=error)
            finally:
                self._told(scope, status, time.perf_counter() - began)

    def _told(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "")
        self._meter.answered(route, status, seconds)
        if route not in QUIET:
            log.info(
                "request",
                method=scope["method"],
                route=route,
                status=status,
                milliseconds=round(seconds * 1000, 1),
            )


class BodyLimit:
    """Reads a request's body before anybody works on it; refuses what is too large or too slow."""

    def __init__(self, app: ASGIApp, *, bytes_: int) -> None:
        self._app = app
        self._bytes = bytes_

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in {"GET", "HEAD", "OPTIONS"}:
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await self._read(Headers(scope=scope), receive)
        except TimeoutError:
            error = InvalidRequestError("the body came too slowly", code="timeout", status=408)
            await self._refuse(error, scope, receive, send)
        except HttpError as error:
            await self._refuse(error, scope, receive, send)
        else:
            await self._app(scope, _replayed(body, receive), send)

    async def _read(self, headers: Headers, receive: Receive) -> bytes:
        told = headers.get("content-length", "0")
        if told.isdecimal() and int(told[:20]) > self._bytes:
            raise self._too_large()
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return body
            body += bytes(message.get("body", b""))
            if len(body) > self._bytes:
                raise self._too_large()
            if not message.get("more_body", False):
                return body

    def _too_large(self) -> HttpError:
        return InvalidRequestError(
            f"expected a body of at most {self._bytes:,} bytes", code="too_large", status=413
        )

    async def _refuse(self, error: HttpError, scope: Scope, receive: Receive, send: Send) -> None:
        await _drained(receive)
        answer = failure(error, str(scope["state"]["request_id"]))
        answer.headers["Connection"] = "close"
        await answer(scope, receive, send)


async def _drained(receive: Receive) -> None:
    """Read on for a while: many clients hear nothing before they have said everything."""
    left, more = DRAINED_BYTES, True
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAINED_SECONDS):
            while more and left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                more = bool(message.get("more_body", False))


def _replayed(body: bytes, receive: Receive) -> Receive:
    told = False

    async def replay() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else uuid4().hex
