"""Informs browsers which websites may read answers: those of public keys; all may read errors."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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


class Origins:
    """Answers preflight requests, and marks the answers that a website may read.

    The guard decides, because it knows the key of a request. A preflight request has no key, and
    every page may send one, so that a rejected page can read the reason. This admits nobody,
    because the request itself is checked again, and needs neither Redis nor a lookup of a key.
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
