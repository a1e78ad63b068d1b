"""Calls Telegram's Bot API within its rate limits, and converts its errors."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

# Without this setting the library warns if the seconds of a flood limit are read as a number.
os.environ.setdefault("PTB_TIMEDELTA", "1")

from telegram import (
    Bot,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    MessageEntity,
    ReplyParameters,
)
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
)

from gateway.chat.platform_calls import Pacer, Rate
from gateway.chat.ports import (
    NoOpError,
    PermanentError,
    PostNotFoundError,
    PushError,
    RetryableError,
)

T = TypeVar("T")
Rows = Sequence[Sequence[dict[str, Any]]]
RATES = {
    "private": Rate(54, at_once=3, each_place=True, soon_seconds=0.0),
    "group": Rate(16, at_once=3, each_place=True, soon_seconds=0.0),
    "typing": Rate(15, each_place=True, soon_seconds=0.0),
    "all": Rate(24 * 60, at_once=4),
}
"""Rates below Telegram's limits for a bot: one message per second in a chat after a small burst; 20
per minute in a group, where edits and deletions count as messages; 30 calls per second in total.
One typing action applies to all questions in its chat, so it is sent only every four seconds. A
placeholder does not wait for a turn in a chat, because the outcome may need that turn.
"""
DRAFT_LEAVES = {"private": 1, "group": 2, "all": 2}
"""The number of turns that a draft leaves for outcomes. A group gets a draft only if it had no
recent message.
"""
ALREADY = (
    "not modified",
    "message to delete not found",
    "message can't be deleted",
    "query is too old",
)
GONE = ("message to edit not found", "message can't be edited", "message_id_invalid")
GONE_TOPIC = ("message thread not found",)
FORM = ("entit", "button", "keyboard", "reply markup")
NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


class FormError(PermanentError):
    """Telegram rejects the entities or buttons of a message."""


class TelegramCalls:
    """The methods that the channel uses. Each waits for its turn, but only for a short time if
    `soon` is true.
    """

    def __init__(self, bot: Bot, pacer: Pacer) -> None:
        self.bot = bot
        self._pacer = pacer

    async def typing(self, chat: str, thread: int | None) -> None:
        """Show the typing action, or skip it if the rate limit would delay it."""
        async with self._turn("typing", f"{chat}:{thread or 0}", soon=True), translate_errors():
            await self.bot.send_chat_action(chat, "typing", message_thread_id=thread)

    async def send(
        self, chat: str, thread: int | None, text: str, *, reply_to: int | None, soon: bool
    ) -> str:
        """Send a message, or send it to the chat itself if the topic no longer exists; return its
        id.
        """
        to = None if reply_to is None else ReplyParameters(reply_to, None, True)

        async def send(chat: str, thread: int | None = None) -> str:
            sent = await self.bot.send_message(
                chat, text, message_thread_id=thread, reply_parameters=to,
                link_preview_options=NO_PREVIEW,
            )  # fmt: skip
            return str(sent.message_id)

        if thread is None:
            return await self._in(chat, send, soon=soon)
        try:
            return await self._in(chat, lambda at: send(at, thread), soon=soon, unless=GONE_TOPIC)
        except BadRequest:
            return await self._in(chat, send, soon=soon)

    async def edit(
        self,
        chat: str,
        id_: str,
        text: str,
        entities: Sequence[MessageEntity],
        rows: Rows,
        *,
        is_draft: bool = False,
    ) -> None:
        """Replace a message; raises `FormError` if Telegram rejects entities or buttons."""
        markup = InlineKeyboardMarkup.de_json({"inline_keyboard": rows}) if rows else None

        async def edit(chat: str) -> None:
            await self.bot.edit_message_text(
                text, chat_id=chat, message_id=int(id_), entities=entities or None,
                reply_markup=markup, link_preview_options=NO_PREVIEW,
            )  # fmt: skip

        await self._in(chat, edit, is_draft=is_draft)

    async def without_buttons(self, chat: str, id_: str) -> None:
        """Remove the buttons of a message."""

        async def mark(chat: str) -> None:
            await self.bot.edit_message_reply_markup(chat, int(id_), reply_markup=None)

        await self._in(chat, mark)

    async def delete(self, chat: str, id_: str) -> None:
        """Delete a message of the bot."""

        async def delete(chat: str) -> None:
            await self.bot.delete_message(chat, int(id_))

        await self._in(chat, delete)

    async def acknowledge_press(self, query_id: str, text: str | None) -> None:
        """Confirm a button click, or skip it if the rate limit would delay it."""
        async with self._pacer.turn("all", soon=True), translate_errors():
            await self.bot.answer_callback_query(query_id, text)

    async def _in(
        self,
        chat: str,
        call: Callable[[str], Awaitable[T]],
        *,
        soon: bool = False,
        is_draft: bool = False,
        unless: Sequence[str] = (),
    ) -> T:
        """Call a method for a chat, or for the supergroup that replaced the chat."""
        try:
            turn = self._turn(_kind(chat), chat, soon=soon, is_draft=is_draft)
            async with turn, translate_errors(unless=unless):
                return await call(chat)
        except ChatMigrated as moved:
            chat = str(moved.new_chat_id)
        turn = self._turn("group", chat, soon=soon, is_draft=is_draft)
        async with turn, translate_errors(unless=unless):
            return await call(chat)

    @asynccontextmanager
    async def _turn(
        self, name: str, place: str, *, soon: bool, is_draft: bool = False
    ) -> AsyncIterator[None]:
        """Wait for a turn in the chat, which may take minutes, then for a turn of the bot.

        A rate limit that Telegram reports blocks only that chat. If it applies to the whole bot, it
        is reported for the other chats as well.
        """
        leaves = DRAFT_LEAVES if is_draft else {}
        async with self._pacer.turn(name, place, soon=soon, leaves=leaves.get(name, 0)):
            async with self._pacer.turn("all", soon=soon, leaves=leaves.get("all", 0)):
                pass
            yield


@asynccontextmanager
async def translate_errors(*, unless: Sequence[str] = ()) -> AsyncIterator[None]:
    """Convert Telegram's errors into `PushError`, except errors whose message contains a text in
    `unless`.

    `ChatMigrated` is not converted either, because the caller repeats the call in the new chat.
    """
    try:
        yield
    except TelegramError as error:
        is_left = isinstance(error, BadRequest) and _says(error, unless)
        if is_left or isinstance(error, ChatMigrated):
            raise
        raise _translate_error(error) from error


def seconds_of(error: RetryAfter) -> float:
    """Return the seconds to wait that Telegram requires."""
    seconds = error.retry_after
    return seconds.total_seconds() if isinstance(seconds, timedelta) else float(seconds)


def _translate_error(error: TelegramError) -> PushError:
    match error:
        case RetryAfter():
            return RetryableError(str(error), seconds_of(error), by_platform=True)
        case BadRequest():
            return _refusal(error)
        case InvalidToken():
            # Undelivered replies wait for a process with a valid token.
            return RetryableError(f"Telegram does not accept the token of the bot: {error}", 0.25)
        case NetworkError():
            return RetryableError(f"Telegram does not respond: {error}", 0.25)
        case Forbidden():
            return PermanentError(f"Telegram does not allow the request: {error}")
    return PermanentError(f"Telegram rejected the request: {error}")


def _refusal(error: BadRequest) -> PushError:
    if _says(error, ALREADY):
        return NoOpError(error.message)
    if _says(error, GONE):
        return PostNotFoundError(f"Telegram rejected the request: {error}")
    return (FormError if _says(error, FORM) else PermanentError)(
        f"Telegram rejected the request: {error}"
    )


def _says(error: TelegramError, phrases: Sequence[str]) -> bool:
    return any(phrase in error.message.lower() for phrase in phrases)


def _kind(chat: str) -> str:
    """Return the name of the rate for a chat; group chats have negative ids."""
    return "group" if chat.startswith("-") else "private"
