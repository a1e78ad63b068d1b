"""Receives events: by HTTP requests of Slack, or over a socket to Slack."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.adapter.starlette.async_handler import to_async_bolt_request, to_starlette_response
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from gateway.chat.errors import reads_foreign_form
from gateway.chat.webhook import webhook
from gateway.connections.bodies import BufferBudget
from gateway.slack.forms import check_form
from gateway.slack.signature import SlackSignature

PATH = "/slack/events"


def make_client(token: str, *, url: str | None = None) -> AsyncWebClient:
    """Return a client; `url` is the address of a proxy for Slack."""
    if url is None:
        return AsyncWebClient(token=token)
    return AsyncWebClient(token=token, base_url=f"{url.rstrip('/')}/")


def slack_webhook(
    app: AsyncApp,
    *,
    signing_secret: str,
    unavailable: tuple[type[Exception], ...],
    budget: BufferBudget | None = None,
) -> Starlette:
    """Return the application for Slack's requests; unsigned requests never reach Bolt."""
    signature = SlackSignature(signing_secret)

    async def handle_request(request: Request, body: bytes) -> Response:
        signature.check_body(request.headers, body)
        check_form(body, request.headers.get("content-type", ""))
        with reads_foreign_form("an event of Slack"):
            event = to_async_bolt_request(request, body)
        return to_starlette_response(await app.async_dispatch(event))

    return webhook(
        PATH, handle_request, check=signature.check_headers, unavailable=unavailable, budget=budget
    )


@asynccontextmanager
async def socket_mode(app: AsyncApp, app_token: str) -> AsyncIterator[None]:
    """Keep a socket open while inside. With several processes, each event reaches one of them."""
    handler = AsyncSocketModeHandler(app, app_token)
    await handler.connect_async()  # type: ignore[no-untyped-call] # of the library
    try:
        yield
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call] # of the library
