"""Receives updates by HTTP; a request must have the secret token of the webhook."""

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
    """Return the application for Telegram's requests; it confirms an update after storing it."""

    def check(headers: Headers) -> None:
        given = headers.get(HEADER, "")
        if not hmac.compare_digest(given.encode(), secret.encode()):
            raise WebhookRefusedError(
                401, "secret_token_invalid", "expected the secret token of the webhook"
            )

    async def handle_update(_request: Request, body: bytes) -> Response:
        await updates.take(_update(body))
        return PlainTextResponse("")

    return webhook(PATH, handle_update, check=check, unavailable=unavailable, budget=budget)


def _update(body: bytes) -> dict[str, Any]:
    """Return the update in a body; raises `UnreadableError`."""
    with reads_foreign_form("an update in JSON"):
        try:
            update = json.loads(body)
            # JSON can escape lone surrogates, but they can be neither stored nor sent.
            json.dumps(update, ensure_ascii=False).encode()
        except RecursionError as error:
            raise ValueError("too many levels") from error
        if not isinstance(update, dict) or type(update.get("update_id")) is not int:
            raise ValueError("no update")
    return update
