"""Tells browsers which websites may read answers: those of public keys, and no others."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.http.guard import Guard

METHODS = "GET, POST, DELETE"
SENT = (
    "Authorization, Content-Type, Accept, Accept-Language, Idempotency-Key, Last-Event-ID, "
    "X-Conversation-Token, X-Request-Id"
)
SHOWN = "Location, Retry-After, X-Message-Id, X-Request-Id"
MAX_AGE_SECONDS = "600"


class Origins:
    """Answers browsers' questions beforehand; marks the answers that a website may read.

    The guard decides, since it knows the key of a request; beforehand no key is known, and an
    origin counts when any public key has it.
    """

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

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
        if origin not in await self._guard.origins():
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
