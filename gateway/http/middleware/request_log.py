"""Gives every request an id and its answer the security headers, and writes its one log line.

A log line contains the route, never the requested address; no text, no key and no token. Ids of
keys are not secret.
"""

import re
import time
from collections.abc import MutableMapping
from typing import Any
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.http.context import HttpMeter

log = structlog.get_logger("gateway")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
CLIENT_CLOSED = 499
"""The status in the log of a request that ended before an answer began, as nginx has it."""
UNLOGGED_ROUTES = frozenset({"/healthz", "/readyz", "/metrics"})
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class RequestLog:
    """The outermost middleware: whatever the layers inside raise is logged here, and counted."""

    def __init__(self, app: ASGIApp, *, meter: HttpMeter) -> None:
        self._app = app
        self._meter = meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(Headers(scope=scope))
        state: MutableMapping[str, Any] = scope.setdefault("state", {})
        state["request_id"] = request_id
        began, status = time.perf_counter(), CLIENT_CLOSED

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, answer)
            except Exception as error:
                log.error("request_failed", exc_info=error)
            finally:
                self._log_request(scope, status, time.perf_counter() - began)

    def _log_request(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "")
        self._meter.count_request(route, status, seconds)
        if route not in UNLOGGED_ROUTES:
            log.info(
                "request",
                method=scope["method"],
                route=route,
                status=status,
                milliseconds=round(seconds * 1000, 1),
            )


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else uuid4().hex
