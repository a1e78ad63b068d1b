"""Tells browsers which websites may read answers: those of public keys; refusals every page may."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = "GET, POST, DELETE"
SENT = (
    "Authorization, Content-Type, Accept, Accept-Language, Idempotency-Key, Last-Event-ID, "
    "X-Conversation-Token, X-Request-Id"
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
    """Answers browsers' questions beforehand; marks the answers that a website may read.

    The guard decides, since it knows the key of a request. Beforehand no key is known, and every
    page may ask: so a page that is refused can read why. That lets nobody in, because what a key
    opens is decided again when it comes, and needs neither Redis nor a look at any key.
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
