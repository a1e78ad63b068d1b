"""The open Telegram door: knows who it is, and how updates come."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.applications import Starlette
from telegram import Bot, BotCommand
from telegram.error import InvalidToken, TelegramError
from telegram.request import HTTPXRequest

from gateway.connections.bodies import BufferBudget
from gateway.errors import GatewayError
from gateway.pushing.door import PushDoor
from gateway.pushing.patience import patiently
from gateway.pushing.port import Texts
from gateway.telegram.audience import TelegramAudience
from gateway.telegram.calls import TelegramCalls, understood
from gateway.telegram.channel import HELP
from gateway.telegram.polling import Duty, Polling
from gateway.telegram.taking import Updates
from gateway.telegram.updates import ALLOWED, Me
from gateway.telegram.webhook import telegram_webhook

CONNECTIONS = 64


class BotError(GatewayError):
    """Telegram does not know this bot."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where Telegram is to send updates, and the secret that it sends with them."""

    url: str
    secret: str


def made_bot(token: str, *, url: str | None = None) -> Bot:
    """Return a bot that is not connected yet; `url` of a server of the Bot API of one's own."""
    request = HTTPXRequest(connection_pool_size=CONNECTIONS)
    if url is None:
        return Bot(token, request=request)
    return Bot(token, base_url=f"{url}/bot", base_file_url=f"{url}/file/bot", request=request)


@asynccontextmanager
async def known(bot: Bot) -> AsyncIterator[Me]:
    """Be connected while inside; raises `BotError` when Telegram does not know the token."""
    try:
        await bot.initialize()
    except InvalidToken as error:
        raise BotError("expected the token of a Telegram bot: Telegram refuses this one") from error
    except TelegramError as error:
        raise BotError(f"Telegram cannot be reached: {error}") from error
    try:
        yield Me(bot.id, bot.username)
    finally:
        await bot.shutdown()


@asynccontextmanager
async def hearing(
    calls: TelegramCalls,
    me: Me,
    door: PushDoor,
    texts: Texts,
    *,
    how: Webhook | Duty,
    audience: TelegramAudience | None = None,
    budget: BufferBudget | None = None,
) -> AsyncIterator[Starlette | None]:
    """Hear updates while inside: by a webhook, then the application is returned, or by polling."""
    hook = how if isinstance(how, Webhook) else None
    updates = Updates(calls, me, door, audience)
    await patiently(lambda: _heard(calls.bot, hook), what="introduce")
    door.beside(_introduced(calls.bot, texts))
    if isinstance(how, Webhook):
        yield telegram_webhook(
            updates, secret=how.secret, unavailable=door.unavailable, budget=budget
        )
        return
    async with asyncio.TaskGroup() as tasks:
        polling = Polling(calls.bot, updates, duty=how, unavailable=door.unavailable)
        task = tasks.create_task(polling.run())
        try:
            yield None
        finally:
            task.cancel()


async def _heard(bot: Bot, hook: Webhook | None) -> None:
    async with understood():
        if hook is None:
            await bot.delete_webhook()
        else:
            await bot.set_webhook(
                hook.url, secret_token=hook.secret, allowed_updates=ALLOWED, max_connections=40
            )


async def _introduced(bot: Bot, texts: Texts) -> None:
    """Tell what may be commanded, in the language of each person's Telegram, else in English."""
    for language in (None, *texts.languages):
        said = [BotCommand(name, texts.text(key, language or "en")) for name, key in HELP]
        async with understood():
            await bot.set_my_commands(said, language_code=language)
