"""Tells browsers which websites may read answers: those of public keys, and no others."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.errors import BrokerUnavailableError
from gateway.http.guard import Guard

METHODS = "GET, POST, DELETE"
SENT = (
    "Authorization, Content-Type, Accept, Accept-Language, Idempotency-Key, Last-Event-ID, "
    "X-Conversation-Token, X-Request-Id"
)
SHOWN = "Location, Retry-After, X-Message-Id, X-Request-Id"
MAX_AGE_SECONDS = "600"
FRESH_SECONDS = 1.0
"""How old the known origins may be: a new key's website works after this time."""
LOOK_SECONDS = 0.5
"""How long a look at the keys may take before what was known before is used."""


class KnownOrigins:
    """The origins of all public keys, looked up at most once a second however many ask.

    While the keys cannot be read the last known origins count, and before they ever were read
    every origin: a browser that asks beforehand learns nothing, and its request is checked itself.
    """

    def __init__(
        self,
        load: Callable[[], Awaitable[frozenset[str]]],
        *,
        unavailable: Sequence[type[Exception]] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._unavailable: tuple[type[Exception], ...] = (
            BrokerUnavailableError,
            TimeoutError,
            *unavailable,
        )
        self._clock = clock
        self._known: frozenset[str] | None = None
        self._fresh_until = float("-inf")

    async def allows(self, origin: str) -> bool:
        """Whether a page of this origin may ask."""
        if self._clock() >= self._fresh_until:
            # Set before the look: whoever comes meanwhile does not look as well.
            self._fresh_until = self._clock() + FRESH_SECONDS
            await self._look()
        return self._known is None or origin in self._known

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                self._known = await self._load()
        except self._unavailable:
            return


class Origins:
    """Answers browsers' questions beforehand; marks the answers that a website may read.

    The guard decides, since it knows the key of a request; beforehand no key is known, and an
    origin counts when any public key has it.
    """

    def __init__(
        self, app: ASGIApp, guard: Guard, *, unavailable: Sequence[type[Exception]] = ()
    ) -> None:
        self._app = app
        self._known = KnownOrigins(guard.origins, unavailable=unavailable)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if scope["type"] != "http" or origin is None:
            await self._app(scope, receive, send)
        elif scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await (await self._beforehand(origin))(scope, receive, send)
        else:
            await self._app(scope, receive, _marking(scope, send))

    async def _beforehand(self, origin: str) -> Response:
        if not await self._known.allows(origin):
            return Response(status_code=403, headers={"Vary": "Origin"})
        return Response(
            status_code=204,
            headers={
                "Access-Control-Allow-Origin": origin,
                "Access-Control-Allow-Methods": METHODS,
                "Access-Control-Allow-Headers": SENT,
                "Access-Control-Max-Age": MAX_AGE_SECONDS,
                "Vary": "Origin",
            },
        )


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
