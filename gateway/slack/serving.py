"""How events come: Slack calls an address, or a socket is held open to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from gateway.pushing.webhook import webhook

PATH = "/slack/events"


def made_client(token: str, *, url: str | None = None) -> AsyncWebClient:
    """Return a client; `url` of a server that stands in front of Slack."""
    if url is None:
        return AsyncWebClient(token=token)
    return AsyncWebClient(token=token, base_url=f"{url.rstrip('/')}/")


def slack_webhook(app: AsyncApp, *, unavailable: tuple[type[Exception], ...]) -> Starlette:
    """Return the application that Slack calls; signature and age are checked by Bolt."""
    handler = AsyncSlackRequestHandler(app)

    async def heard(request: Request, body: bytes) -> Response:
        async def replay() -> dict[str, object]:
            return {"type": "http.request", "body": body, "more_body": False}

        return await handler.handle(Request(request.scope, replay))

    return webhook(PATH, heard, unavailable=unavailable)


@asynccontextmanager
async def socket_mode(app: AsyncApp, app_token: str) -> AsyncIterator[None]:
    """Hold a socket open while inside; several processes may, and each event comes to one."""
    handler = AsyncSocketModeHandler(app, app_token)
    await handler.connect_async()  # type: ignore[no-untyped-call] # of the library
    try:
        yield
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call] # of the library
