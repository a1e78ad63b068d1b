"""Receives events, either from HTTP requests by Slack or over a socket to Slack."""

import hashlib
import hmac
import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any
from urllib.parse import parse_qsl

from pydantic import BaseModel, Field, StrictBool, StrictStr
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.adapter.starlette.async_handler import to_async_bolt_request, to_starlette_response
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from gateway.chat.ports import reads_foreign_form
from gateway.chat.webhook import WebhookRefusedError, webhook

PATH = "/slack/events"
TIME_HEADER = "X-Slack-Request-Timestamp"
SIGNATURE_HEADER = "X-Slack-Signature"
FRESH_SECONDS = 300
"""Slack's limit to prevent replayed requests: a request with an older timestamp is rejected."""
_TIME = re.compile(r"[0-9]{1,12}", re.ASCII)
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}", re.ASCII)
Object = dict[str, Any]
Place = Object | StrictStr | None


class SlackSignature:
    """Verifies requests with the signing secret; each check raises `WebhookRefusedError`."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def check_headers(self, headers: Mapping[str, str]) -> None:
        """Reject a request without a signature, or with an old one, before reading the body."""
        at, signature = headers.get(TIME_HEADER, ""), headers.get(SIGNATURE_HEADER, "")
        if not _TIME.fullmatch(at) or not _SIGNATURE.fullmatch(signature):
            raise WebhookRefusedError(
                401, "signature_invalid", "the signature of Slack is missing or invalid"
            )
        if abs(time.time() - int(at)) > FRESH_SECONDS:
            raise WebhookRefusedError(401, "signature_expired", "the signature of Slack is too old")

    def check_body(self, headers: Mapping[str, str], body: bytes) -> None:
        """Reject a body that does not match the signature."""
        signed = f"v0:{headers[TIME_HEADER]}:".encode() + body
        digest = hmac.new(self._secret, signed, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(f"v0={digest}", headers[SIGNATURE_HEADER]):
            raise WebhookRefusedError(
                401, "signature_invalid", "the signature of Slack is missing or invalid"
            )


class _PressedAction(BaseModel, extra="ignore"):
    """A click on a button."""

    action_id: StrictStr
    block_id: StrictStr | None = None
    type: StrictStr | None = None


class _Form(BaseModel, extra="ignore"):
    """The common part of events and actions."""

    type: StrictStr | None = None
    token: StrictStr | None = None
    team_id: StrictStr | None = None
    enterprise_id: StrictStr | None = None
    enterprise: Place = None
    team: Place = None
    user: Place = None
    channel: Place = None
    user_id: StrictStr | None = None
    channel_id: StrictStr | None = None
    is_enterprise_install: StrictBool | StrictStr | None = None
    authorizations: list[Object] = []
    event: Object = {}
    actions: Annotated[list[_PressedAction], Field(min_length=1)] = []
    message: Object | None = None
    view: Object | None = None
    container: Object | None = None


def make_client(token: str, *, url: str | None = None) -> AsyncWebClient:
    """Return a client; `url` is the URL of a proxy for Slack."""
    if url is None:
        return AsyncWebClient(token=token)
    return AsyncWebClient(token=token, base_url=f"{url.rstrip('/')}/")


def slack_webhook(
    app: AsyncApp,
    *,
    signing_secret: str,
    unavailable: tuple[type[Exception], ...],
) -> Starlette:
    """Return the application for Slack's requests. Unsigned requests never reach Bolt."""
    signature = SlackSignature(signing_secret)

    async def handle_request(request: Request, body: bytes) -> Response:
        signature.check_body(request.headers, body)
        check_form(body, request.headers.get("content-type", ""))
        with reads_foreign_form("an event of Slack"):
            event = to_async_bolt_request(request, body)
        return to_starlette_response(await app.async_dispatch(event))

    return webhook(PATH, handle_request, check=signature.check_headers, unavailable=unavailable)


@asynccontextmanager
async def socket_mode(app: AsyncApp, app_token: str) -> AsyncIterator[None]:
    """Keep a socket open inside the context. With several processes, each event reaches one of
    them.
    """
    handler = AsyncSocketModeHandler(app, app_token)
    await handler.connect_async()  # type: ignore[no-untyped-call] # of the library
    try:
        yield
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call] # of the library


def check_form(body: bytes, kind: str) -> None:
    """Raise `UnreadableError` for an event or action in an unexpected format, encoded as JSON or as
    a form.
    """
    with reads_foreign_form("an event of Slack"):
        text = body.decode()
        if kind == "application/json" or text.startswith("{"):
            _Form.model_validate(_object(text))
            return
        fields = dict(parse_qsl(text, keep_blank_values=True))
        if "payload" in fields:
            _Form.model_validate(_object(fields["payload"]))


def check_press(body: Mapping[str, Any]) -> None:
    """Raise `UnreadableError` unless an action contains its button, its message, and its user."""
    with reads_foreign_form("a pressed button"):
        action, message = body["actions"][0], body.get("message") or {}
        float(action["action_ts"])
        str(body["channel"]["id"])
        str(body["user"]["id"])
        message.get("thread_ts")


def _object(text: str) -> object:
    try:
        parsed = json.loads(text)
        # JSON can escape lone surrogates, but they can be neither stored nor sent.
        json.dumps(parsed, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("too many levels") from error
    return parsed
