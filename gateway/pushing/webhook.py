"""The web application that a platform calls: one address, small bodies, no word about errors."""

from collections.abc import Awaitable, Callable

import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

log = structlog.get_logger("gateway")

MOST_BYTES = 1024 * 1024
Heard = Callable[[Request, bytes], Awaitable[Response]]


def webhook(path: str, heard: Heard, *, unavailable: tuple[type[Exception], ...]) -> Starlette:
    """Return an application; what `heard` cannot take in now is answered 503, to be sent again."""

    async def receive(request: Request) -> Response:
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                return PlainTextResponse("too large", 413)
        try:
            return await heard(request, body)
        except unavailable as error:
            log.warning("webhook_waits", path=path, error=str(error))
            return PlainTextResponse("try again", 503, headers={"Retry-After": "1"})

    async def alive(_request: Request) -> Response:
        return PlainTextResponse("ok")

    app = Starlette(
        routes=[Route(path, receive, methods=["POST"]), Route("/healthz", alive, methods=["GET"])]
    )
    # A redirect would lead to whatever host the request names.
    app.router.redirect_slashes = False
    return app
