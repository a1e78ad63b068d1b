"""Connects the Telegram channel: the identity of the bot, and the source of updates."""

import asyncio
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from telegram import Bot, BotCommand
from telegram.error import InvalidToken, TelegramError
from telegram.request import HTTPXRequest

from envelope.texts import Texts
from gateway.chat.connector import ChatChannel
from gateway.chat.errors import reads_foreign_form
from gateway.chat.platform_calls import retry
from gateway.chat.webhook import WebhookRefusedError, webhook
from gateway.connections.bodies import BufferBudget
from gateway.errors import GatewayError
from gateway.telegram.bot_api import TelegramCalls, translate_errors
from gateway.telegram.channel import HELP
from gateway.telegram.inbound import Updates
from gateway.telegram.polling import Duty, Polling
from gateway.telegram.updates import ALLOWED, BotIdentity, TelegramAudience

CONNECTIONS = 64


class BotError(GatewayError):
    """Telegram rejects the token of this bot."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """The address for Telegram's updates, and the secret that Telegram sends with them."""

    url: str
    secret: str


def make_bot(token: str, *, url: str | None = None) -> Bot:
    """Return a bot without a connection; `url` is the address of another Bot API server."""
    request = HTTPXRequest(connection_pool_size=CONNECTIONS)
    if url is None:
        return Bot(token, request=request)
    return Bot(token, base_url=f"{url}/bot", base_file_url=f"{url}/file/bot", request=request)


@asynccontextmanager
async def connect_bot(bot: Bot) -> AsyncIterator[BotIdentity]:
    """Connect the bot while inside; raises `BotError` if Telegram rejects the token."""
    try:
        await bot.initialize()
    except InvalidToken as error:
        raise BotError("expected the token of a Telegram bot: Telegram refuses this one") from error
    except TelegramError as error:
        raise BotError(f"Telegram cannot be reached: {error}") from error
    try:
        yield BotIdentity(bot.id, bot.username)
    finally:
        await bot.shutdown()


@asynccontextmanager
async def receive_updates(
    calls: TelegramCalls,
    me: BotIdentity,
    chat_channel: ChatChannel,
    texts: Texts,
    *,
    how: Webhook | Duty,
    audience: TelegramAudience | None = None,
    budget: BufferBudget | None = None,
) -> AsyncIterator[Starlette | None]:
    """Receive updates while inside: by polling, or by a webhook, whose application is returned."""
    hook = how if isinstance(how, Webhook) else None
    updates = Updates(calls, me, chat_channel, audience)
    await retry(lambda: _register_updates(calls.bot, hook), call_name="register_updates")
    chat_channel.spawn(_register_commands(calls.bot, texts))
    if isinstance(how, Webhook):
        yield telegram_webhook(
            updates, secret=how.secret, unavailable=chat_channel.unavailable, budget=budget
        )
        return
    async with asyncio.TaskGroup() as tasks:
        polling = Polling(calls.bot, updates, duty=how, unavailable=chat_channel.unavailable)
        task = tasks.create_task(polling.run())
        try:
            yield None
        finally:
            task.cancel()


async def _register_updates(bot: Bot, hook: Webhook | None) -> None:
    async with translate_errors():
        if hook is None:
            await bot.delete_webhook()
        else:
            await bot.set_webhook(
                hook.url, secret_token=hook.secret, allowed_updates=ALLOWED, max_connections=40
            )


async def _register_commands(bot: Bot, texts: Texts) -> None:
    """Register the commands in every language; Telegram shows English for other languages."""
    for language in (None, *texts.languages):
        commands = [BotCommand(name, texts.text(key, language or "en")) for name, key in HELP]
        async with translate_errors():
            await bot.set_my_commands(commands, language_code=language)


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
