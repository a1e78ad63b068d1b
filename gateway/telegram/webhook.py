"""Hears updates that Telegram sends; only who knows the secret token is heard."""

import hmac
import json
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from gateway.chat.errors import reads_foreign_form
from gateway.chat.webhook import WebhookRefusedError, webhook
from gateway.connections.bodies import BufferBudget
from gateway.telegram.inbound import Updates

PATH = "/telegram"
HEADER = "X-Telegram-Bot-Api-Secret-Token"


def telegram_webhook(
    updates: Updates,
    *,
    secret: str,
    unavailable: tuple[type[Exception], ...],
    budget: BufferBudget | None = None,
) -> Starlette:
    """Return the application that Telegram calls; an update is confirmed once it was taken in."""

    def check(headers: Headers) -> None:
        told = headers.get(HEADER, "")
        if not hmac.compare_digest(told.encode(), secret.encode()):
            raise WebhookRefusedError(
                401, "secret_token_invalid", "expected the secret token of the webhook"
            )

    async def handle_update(_request: Request, body: bytes) -> Response:
        await updates.take(_update(body))
        return PlainTextResponse("")

    return webhook(PATH, handle_update, check=check, unavailable=unavailable, budget=budget)


def _update(body: bytes) -> dict[str, Any]:
    """Return an update; raises `UnreadableError`."""
    with reads_foreign_form("an update in JSON"):
        try:
            update = json.loads(body)
            # Halves of surrogates can be escaped in JSON, and neither stored nor sent.
            json.dumps(update, ensure_ascii=False).encode()
        except RecursionError as error:
            raise ValueError("too many levels") from error
        if not isinstance(update, dict) or type(update.get("update_id")) is not int:
            raise ValueError("no update")
    return update
