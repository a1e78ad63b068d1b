"""The HTTP middleware: authentication, CORS, body limits, and the request log.

Bodies with `NaN` or with repeated names are rejected. Python's parser accepts them, but another
parser may not, or may use a different one of the repeated values.

A log line contains the route, but not the requested URL, any text, a key, or a token. Key IDs are
not secret.
"""

import json
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, NoReturn
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.errors import BrokerUnavailableError
from gateway.connections.bodies import (
    RETRY_SECONDS,
    BodyError,
    BodyTooLargeError,
    BodyTooSlowError,
    BufferBudget,
    CallerGoneError,
    read_body,
)
from gateway.http.access import Guard, Principal
from gateway.http.context import HttpMeter
from gateway.http.errors import (
    ForbiddenError,
    HttpError,
    InvalidRequestError,
    UnavailableError,
    away,
    failure,
)

BODILESS = frozenset({"GET", "HEAD", "OPTIONS"})
CONSOLE_FORMS = "/console/"
CONSOLE_UPLOAD = "/console/documents/upload"
INDEX_UPLOAD = "/v1/documents"
HasSession = Callable[[Request], Awaitable[bool]]
UPLOADS = re.compile(r"/v1/(?:reviews|conversations/[^/]{1,200}/documents)")
"""The paths of uploads, which may be larger than messages and are not available to public keys."""
METHODS = "GET, POST, DELETE"
SENT = (
    "Authorization, Content-Type, Accept, Accept-Language, Idempotency-Key, Last-Event-ID, "
    "X-Conversation-Token, X-Person-Token, X-Request-Id"
)
SHOWN = "Location, Retry-After, X-Message-Id, X-Request-Id"
MAX_AGE_SECONDS = "600"
BEFOREHAND = Response(
    status_code=204,
    headers={
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": SENT,
        "Access-Control-Max-Age": MAX_AGE_SECONDS,
    },
)
log = structlog.get_logger("gateway")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
CLIENT_CLOSED = 499
"""The status in the log for a request that ended before a response began, as in nginx."""
UNLOGGED_ROUTES = frozenset({"/healthz", "/readyz", "/metrics"})
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Authentication:
    """Rejects requests with a body from callers without a key, and from foreign websites.

    Every route with a body requires a key, or a URL that was signed here (`is_signed`), so that
    this can be decided without knowing the route. The guard stores the caller in the request, and
    routes do not look it up again. A form of the console is sent with a session instead, which
    `has_session` checks; without a session, the body is not read.
    """

    def __init__(
        self,
        app: ASGIApp,
        guard: Guard,
        *,
        unavailable: Sequence[type[Exception]] = (),
        has_session: HasSession | None = None,
        is_signed: Callable[[str], bool] = lambda _path: False,
    ) -> None:
        self._app = app
        self._guard = guard
        self._has_session = has_session
        self._is_signed = is_signed
        self._unavailable: tuple[type[Exception], ...] = (BrokerUnavailableError, *unavailable)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_body = scope["type"] == "http" and scope["method"] not in BODILESS
        if has_body and not self._is_signed(scope["path"]):
            if self._has_session is not None and scope["path"].startswith(CONSOLE_FORMS):
                is_open = await self._find_session(self._has_session, scope)
                await self._app(scope, receive if is_open else _replay(b"", receive), send)
                return
            error = await self._check(scope)
            if error is not None:
                request_id = str(scope["state"]["request_id"])
                await failure(error, request_id)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _find_session(self, has_session: HasSession, scope: Scope) -> bool:
        try:
            return await has_session(Request(scope))
        except self._unavailable:
            return False

    async def _check(self, scope: Scope) -> HttpError | None:
        try:
            await self._guard.caller(Request(scope))
        except HttpError as error:
            return error
        except self._unavailable:
            return away()
        return None


class BodyLimit:
    """Rejects request bodies that are too large, arrive too slowly, or are not valid JSON, and
    limits how many are received concurrently.

    An uploaded document may be as large as the limit on all bodies of one client address.
    """

    def __init__(self, app: ASGIApp, *, longest_bytes: int, budget: BufferBudget) -> None:
        self._app = app
        self._longest_bytes = longest_bytes
        self._budget = budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in BODILESS:
            await self._app(scope, receive, send)
            return
        is_upload = _is_upload(scope["method"], scope["path"])
        caller = scope["state"].get("caller")
        if is_upload and isinstance(caller, Principal) and caller.public:
            # Before the body: everybody could fill the memory with bodies that end with a refusal.
            await _refuse(visitors_refused(), scope, receive, send)
            return
        longest = self._budget.largest_body if is_upload else self._longest_bytes
        with self._budget.lease(scope) as lease:
            try:
                body = await read_body(scope, receive, lease, longest_bytes=longest)
                check_json(scope, body)
            except CallerGoneError:
                return
            except BodyError as error:
                await _refuse(_translate_error(error), scope, receive, send)
            except HttpError as error:
                await _refuse(error, scope, receive, send)
            else:
                await self._app(scope, _replay(body, receive), send)


class Origins:
    """Answers preflight requests, and marks the responses that a website may read.

    The guard makes the decision, because it knows the key of a request. A preflight request has no
    key, and every page may send one, so that a rejected page can read the reason. This does not
    admit anybody, because the request itself is checked again. A preflight request requires neither
    Redis nor a key lookup.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if scope["type"] != "http" or origin is None:
            await self._app(scope, receive, send)
        elif scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await BEFOREHAND(scope, receive, send)
        else:
            await self._app(scope, receive, _marking(scope, send))


class RequestLog:
    """Logs and counts requests, including all exceptions that the inner layers raise."""

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


def visitors_refused() -> ForbiddenError:
    """Return the error for a public key that uploads a document or starts a review."""
    return ForbiddenError(
        "this request requires a secret key; documents and reviews are not available with a "
        "public key",
        code="secret_key_required",
    )


def check_json(scope: Scope, body: bytes) -> None:
    """Raise `InvalidRequestError` for an invalid JSON body; other content types pass."""
    kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
    if not body or not (kind == "application/json" or kind.endswith("+json")):
        return
    try:
        # Decoded here: Python's parser would accept lone surrogates, and guess the encoding.
        json.loads(body.decode(), object_pairs_hook=_check_names, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        # The message does not repeat the body, and neither does Python's chained error.
        message = (
            "the body is not valid JSON in UTF-8, contains duplicate names or very large "
            "numbers, or is nested too deeply"
        )
        if isinstance(error, json.JSONDecodeError):
            place = f"line {error.lineno}, column {error.colno}"
            message = f"the body is not valid JSON: {error.msg} at {place}"
        raise InvalidRequestError(message, code="invalid_json") from error


def _is_upload(method: str, path: str) -> bool:
    is_form = path == CONSOLE_UPLOAD or UPLOADS.fullmatch(path) is not None
    return is_form or (method, path) == ("POST", INDEX_UPLOAD)


def _translate_error(error: BodyError) -> HttpError:
    if isinstance(error, BodyTooLargeError):
        return InvalidRequestError(str(error), code="body_too_large", status=413)
    if isinstance(error, BodyTooSlowError):
        return InvalidRequestError(str(error), code="timeout", status=408)
    return UnavailableError(str(error), code="busy", retry_after_seconds=RETRY_SECONDS)


async def _refuse(error: HttpError, scope: Scope, receive: Receive, send: Send) -> None:
    await failure(error, str(scope["state"]["request_id"]))(scope, receive, send)


def _replay(body: bytes, receive: Receive) -> Receive:
    is_delivered = False

    async def replay() -> Message:
        nonlocal is_delivered
        if is_delivered:
            return await receive()
        is_delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _check_names(pairs: Sequence[tuple[str, object]]) -> None:
    """Raise an error for repeated names. Returns nothing, because the parsed value is not used."""
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError("a duplicate name")


def _refuse_constant(_name: str) -> NoReturn:
    raise ValueError("a number that is not valid in JSON")


def _marking(scope: Scope, send: Send) -> Send:
    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.add_vary_header("Origin")
            allowed = scope["state"].get("allowed_origin")
            if allowed is not None:
                headers["Access-Control-Allow-Origin"] = allowed
                headers["Access-Control-Expose-Headers"] = SHOWN
        await send(message)

    return answer


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else uuid4().hex
