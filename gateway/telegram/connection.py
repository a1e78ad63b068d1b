"""Connects the Telegram channel, including the identity of the bot and the source of updates."""

import asyncio
import hmac
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, NoReturn

import structlog
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from telegram import Bot, BotCommand, Update
from telegram.error import Conflict, InvalidToken, RetryAfter, TelegramError
from telegram.request import HTTPXRequest

from envelope.texts import Texts
from gateway.chat.connector import ChatChannel
from gateway.chat.delivery import Choice
from gateway.chat.platform_calls import raise_if_cancelled, retry
from gateway.chat.ports import Incoming, PushError, reads_foreign_form
from gateway.chat.webhook import WebhookRefusedError, webhook
from gateway.errors import GatewayError
from gateway.telegram.bot_api import TelegramCalls, seconds_of, translate_errors
from gateway.telegram.channel import HELP
from gateway.telegram.updates import ALLOWED, BotIdentity, Pressed, TelegramAudience, read
from memory.presence import RedisDuty

log = structlog.get_logger("gateway")
POLL_SECONDS = 25
AWAY_SECONDS = 1.0
CONFLICT_SECONDS = 3.0
"""How long to wait before the next poll if another process is polling."""
QUIET_SECONDS = 60.0
"""The minimum interval between log lines about failed polls."""
TRIES = 3
DUTY_SECONDS = 6.0
"""The lease of the polling process. If it dies, another one takes over after this time."""
KEEP_SECONDS = 2.0
CONNECTIONS = 64
PATH = "/telegram"
HEADER = "X-Telegram-Bot-Api-Secret-Token"


class Updates:
    """Handles updates from webhooks and polling. After `take` returns, the update is stored."""

    def __init__(
        self,
        calls: TelegramCalls,
        me: BotIdentity,
        chat: ChatChannel,
        audience: TelegramAudience | None = None,
    ) -> None:
        self._audience = TelegramAudience() if audience is None else audience
        self._calls = calls
        self._me = me
        self._chat = chat

    async def take(self, body: Mapping[str, Any]) -> None:
        """Handle an update; raises `UnreadableError`, and the errors of the broker and the
        memory.
        """
        with reads_foreign_form("an update of Telegram"):
            parsed = read(
                Update.de_json(dict(body), self._calls.bot), self._me, self._chat.name_question
            )
        match parsed:
            case Incoming() as incoming:
                await self._accept(incoming)
            case Pressed() as pressed:
                await self._press(pressed)
            case None:
                pass

    async def _accept(self, incoming: Incoming) -> None:
        with reads_foreign_form("an update of Telegram"):
            chat, user = int(incoming.post["chat"]), int(incoming.person)
        if self._audience.admits(chat=chat, user=user):
            await self._chat.intake.accept(incoming)
            return
        # A private chat that is not allowed gets a refusal; such a group gets no reply.
        post = incoming.post if chat == user else None
        language = await self._chat.intake.language(incoming.question, incoming.language)
        await self._chat.declining.decline("not_allowed", incoming.person, post, language)

    async def _press(self, pressed: Pressed) -> None:
        with reads_foreign_form("an update of Telegram"):
            chat = int(pressed.post["chat"])
        if not self._audience.admits(chat=chat, user=pressed.person):
            await self._chat.declining.decline("not_allowed", str(pressed.person), None, "")
            return
        choice = await self._chat.buttons.choice(pressed.token)
        place = self._chat.name_question(pressed.conversation_id, pressed.message_id)
        if choice is None or choice.question.conversation != place.conversation:
            # In a group, each person has a conversation: this is a button of somebody else.
            foreign = choice is not None and choice.answers_pause
            if foreign:
                log.info("pause_reply_refused", channel="telegram", reason="foreign")
            await self._answer(pressed, "pause_foreign" if foreign else "push_expired", choice)
            return
        await self._chat.submit_choice(
            choice,
            post=pressed.post,
            order=pressed.order,
            language=pressed.language,
            person=str(pressed.person),
        )
        await self._answer(pressed, "push_thanks" if choice.rating else "", choice)
        if not choice.rating:
            self._chat.spawn(self._close(pressed))

    async def _answer(self, pressed: Pressed, key: str, choice: Choice | None) -> None:
        """Confirm a button click. Telegram rejects the confirmation of an old click."""
        question = self._chat.name_question(pressed.conversation_id, pressed.message_id)
        language = await self._chat.intake.language(question, pressed.language)
        text = self._chat.texts.text(key, language) if key else None
        try:
            await self._calls.acknowledge_press(pressed.query_id, text)
        except PushError as error:
            log.warning(
                "platform_call_rejected",
                call="answer_callback",
                channel="telegram",
                error=str(error),
            )

    async def _close(self, pressed: Pressed) -> None:
        """Remove the options after one was chosen."""
        chat, id_ = pressed.post["chat"], pressed.message_id
        await retry(lambda: self._calls.without_buttons(chat, id_), call_name="remove_buttons")


class Polling:
    """The polling loop of a process.

    Telegram serves one poll at a time, and closes the older one if there are two. Therefore, only
    the process that holds the lease polls. If two processes poll nevertheless, an update that both
    receive is stored once.
    """

    def __init__(
        self,
        bot: Bot,
        updates: Updates,
        *,
        duty: RedisDuty,
        unavailable: tuple[type[Exception], ...],
        conflict_seconds: float = CONFLICT_SECONDS,
        keep_seconds: float = KEEP_SECONDS,
    ) -> None:
        self._bot = bot
        self._updates = updates
        self._duty = duty
        self._unavailable = unavailable
        self._conflict_seconds = conflict_seconds
        self._keep_seconds = keep_seconds
        self._on_duty = asyncio.Event()
        self._quiet_until = float("-inf")
        self._offset = 0
        self._failed: dict[int, int] = {}

    async def run(self) -> None:
        """Poll while this process holds the lease, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep())
            tasks.create_task(self._poll())

    async def _keep(self) -> NoReturn:
        try:
            while True:
                raise_if_cancelled()
                # Without Redis no update can be stored, so none is fetched.
                with suppress(*self._unavailable):
                    if await self._duty.keep(DUTY_SECONDS):
                        self._on_duty.set()
                    else:
                        self._on_duty.clear()
                await asyncio.sleep(self._keep_seconds)
        finally:
            with suppress(*self._unavailable):
                await self._duty.leave()

    async def _poll(self) -> NoReturn:
        while True:
            raise_if_cancelled()
            await self._on_duty.wait()
            for update in await self._fetch():
                if not await self._take(update):
                    await asyncio.sleep(AWAY_SECONDS)
                    break
                self._offset = int(update["update_id"]) + 1

    async def _fetch(self) -> list[dict[str, Any]]:
        try:
            updates = await self._bot.get_updates(
                offset=self._offset, timeout=POLL_SECONDS, allowed_updates=ALLOWED
            )
        except Conflict as error:
            self._log_conflict(error)
            await asyncio.sleep(self._conflict_seconds)
            return []
        except TelegramError as error:
            log.warning("polling_failed", channel="telegram", error=str(error))
            await asyncio.sleep(_pause(error))
            return []
        return [update.to_dict() for update in updates]

    def _log_conflict(self, error: Conflict) -> None:
        """Log at intervals, in one short line, why this process does not receive updates."""
        if time.monotonic() < self._quiet_until:
            return
        self._quiet_until = time.monotonic() + QUIET_SECONDS
        hooked = "webhook" in error.message.casefold()
        log.warning("polling_blocked_by_webhook" if hooked else "polling_conflict")

    async def _take(self, update: dict[str, Any]) -> bool:
        """Return whether an update was stored, or dropped because it cannot be read."""
        number = int(update["update_id"])
        try:
            await self._updates.take(update)
        except self._unavailable as error:
            log.warning("update_deferred", channel="telegram", update_id=number, error=str(error))
            return False
        except Exception as error:
            self._failed[number] = self._failed.get(number, 0) + 1
            log.error("update_failed", channel="telegram", update_id=number, exc_info=error)
            return self._failed[number] >= TRIES
        return True


class BotError(GatewayError):
    """Telegram rejects the token of this bot."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """The URL for Telegram's updates, and the secret that Telegram sends with them."""

    url: str
    secret: str


def make_bot(token: str, *, url: str | None = None) -> Bot:
    """Return a bot without a connection; `url` is the URL of a different Bot API server."""
    request = HTTPXRequest(connection_pool_size=CONNECTIONS)
    if url is None:
        return Bot(token, request=request)
    return Bot(token, base_url=f"{url}/bot", base_file_url=f"{url}/file/bot", request=request)


@asynccontextmanager
async def connect_bot(bot: Bot) -> AsyncIterator[BotIdentity]:
    """Connect the bot inside the context; raises `BotError` if Telegram rejects the token."""
    try:
        await bot.initialize()
    except InvalidToken as error:
        raise BotError("Telegram rejects the token of the bot") from error
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
    how: Webhook | RedisDuty,
    audience: TelegramAudience | None = None,
) -> AsyncIterator[Starlette | None]:
    """Receive updates inside the context. Yields the application of the webhook, or None for
    polling.
    """
    hook = how if isinstance(how, Webhook) else None
    updates = Updates(calls, me, chat_channel, audience)
    await retry(lambda: _register_updates(calls.bot, hook), call_name="register_updates")
    chat_channel.spawn(_register_commands(calls.bot, texts))
    if isinstance(how, Webhook):
        yield telegram_webhook(updates, secret=how.secret, unavailable=chat_channel.unavailable)
        return
    polling = Polling(calls.bot, updates, duty=how, unavailable=chat_channel.unavailable)
    async with chat_channel.jobs.running("polling", polling.run):
        yield None


def telegram_webhook(
    updates: Updates,
    *,
    secret: str,
    unavailable: tuple[type[Exception], ...],
) -> Starlette:
    """Return the application for Telegram's requests; it confirms an update after storing it."""

    def check(headers: Headers) -> None:
        given = headers.get(HEADER, "")
        if not hmac.compare_digest(given.encode(), secret.encode()):
            raise WebhookRefusedError(
                401, "secret_token_invalid", "the secret token of the webhook is missing or invalid"
            )

    async def handle_update(_request: Request, body: bytes) -> Response:
        await updates.take(_update(body))
        return PlainTextResponse("")

    return webhook(PATH, handle_update, check=check, unavailable=unavailable)


def _pause(error: TelegramError) -> float:
    return seconds_of(error) if isinstance(error, RetryAfter) else AWAY_SECONDS


async def _register_updates(bot: Bot, hook: Webhook | None) -> None:
    async with translate_errors():
        if hook is None:
            await bot.delete_webhook()
        else:
            await bot.set_webhook(
                hook.url, secret_token=hook.secret, allowed_updates=ALLOWED, max_connections=40
            )


async def _register_commands(bot: Bot, texts: Texts) -> None:
    """Register the commands in every language; Telegram shows English for other languages.

    Telegram identifies languages without their script.
    """
    for language in (None, *(language for language in texts.languages if "-" not in language)):
        commands = [BotCommand(name, texts.text(key, language or "en")) for name, key in HELP]
        async with translate_errors():
            await bot.set_my_commands(commands, language_code=language)


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
