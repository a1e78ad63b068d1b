"""Identifies the caller before any byte of a request's body is read."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from broker.errors import BrokerUnavailableError
from gateway.http.access import Guard
from gateway.http.error_responses import away, failure
from gateway.http.errors import HttpError

BODILESS = frozenset({"GET", "HEAD", "OPTIONS"})


class Authentication:
    """Rejects requests with a body from callers without a key, or from foreign websites.

    Every route with a body needs a key, so that this can be decided without knowing the route. The
    guard stores the caller in the request, and routes do not look it up again.
    """

    def __init__(
        self, app: ASGIApp, guard: Guard, *, unavailable: Sequence[type[Exception]] = ()
    ) -> None:
        self._app = app
        self._guard = guard
        self._unavailable: tuple[type[Exception], ...] = (BrokerUnavailableError, *unavailable)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in BODILESS:
            error = await self._check(scope)
            if error is not None:
                request_id = str(scope["state"]["request_id"])
                await failure(error, request_id)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _check(self, scope: Scope) -> HttpError | None:
        try:
            await self._guard.caller(Request(scope))
        except HttpError as error:
            return error
        except self._unavailable:
            return away()
        return None
