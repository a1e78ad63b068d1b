"""Hears updates that Telegram sends; only who knows the secret token is heard."""

import hmac
import json

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from gateway.pushing.webhook import webhook
from gateway.telegram.taking import Updates

PATH = "/telegram"
HEADER = "X-Telegram-Bot-Api-Secret-Token"


def telegram_webhook(
    updates: Updates, *, secret: str, unavailable: tuple[type[Exception], ...]
) -> Starlette:
    """Return the application that Telegram calls; an update is confirmed once it was taken in."""

    async def heard(request: Request, body: bytes) -> Response:
        told = request.headers.get(HEADER, "")
        if not hmac.compare_digest(told.encode(), secret.encode()):
            return PlainTextResponse("unauthorized", 401)
        try:
            update = json.loads(body)
        except ValueError:
            return PlainTextResponse("expected JSON", 400)
        if not isinstance(update, dict) or not isinstance(update.get("update_id"), int):
            return PlainTextResponse("expected an update", 400)
        await updates.take(update)
        return PlainTextResponse("")

    return webhook(PATH, heard, unavailable=unavailable)
