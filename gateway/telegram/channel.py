"""Speaks to Telegram's Bot API."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import structlog

# The library warns whoever reads the seconds of a flood limit as a number, unless told so.
os.environ.setdefault("PTB_TIMEDELTA", "1")

from telegram import Bot, InlineKeyboardMarkup, MessageEntity, ReplyParameters
from telegram.error import BadRequest, Forbidden, NetworkError, RetryAfter, TelegramError

from broker.port import Fields
from envelope.question import Question
from gateway.pushing.errors import AlreadyError, GoneError, LaterError, NeverError
from gateway.pushing.port import Shown, Texts
from gateway.telegram.rendering import keyboard, messages

log = structlog.get_logger("gateway")

TYPING_SECONDS = 4.0
"""Telegram shows an action for at most five."""
NOT_MODIFIED = "not modified"
GONE = ("message to edit not found", "message can't be edited", "message_id_invalid")
GONE_TOPIC = "message thread not found"
DELETED = ("message to delete not found", "message can't be deleted")
UNREADABLE = ("can't parse entities", "entity", "entities")
HELP = ("language", "help_set_language"), ("clear", "help_clear_history"), ("help", "help_help")


class TelegramChannel:
    """A `gateway.pushing.port.Channel`."""

    name = "telegram"
    sign_seconds: float | None = TYPING_SECONDS

    def __init__(self, bot: Bot, texts: Texts) -> None:
        self.bot = bot
        self._texts = texts

    async def working(self, question: Question, post: Mapping[str, str]) -> None:
        async with understood():
            await self.bot.send_chat_action(
                post["chat"], "typing", message_thread_id=_number(post, "thread")
            )

    async def rested(self, question: Question, post: Mapping[str, str]) -> None:
        """Typing ends by itself."""

    def parts(self, shown: Shown) -> Sequence[Fields]:
        text = self._fixed(shown) or shown.answer.text
        sources = () if shown.fixed else shown.answer.sources
        title = self._texts.text("push_sources", shown.language)
        made = messages(text, sources, title=title)
        rows = keyboard(shown.buttons)
        if rows:
            made[-1]["keyboard"] = rows  # type: ignore[assignment] # rows of JSON objects are JSON
        return made

    async def placeholder(self, post: Mapping[str, str], text: str, *, soon: bool = False) -> str:
        reply_to = _number(post, "reply_to")
        async with understood():
            sent = await self.bot.send_message(
                post["chat"],
                text,
                message_thread_id=_number(post, "thread"),
                reply_parameters=None
                if reply_to is None
                else ReplyParameters(reply_to, allow_sending_without_reply=True),
            )
        return str(sent.message_id)

    async def edit(self, post: Mapping[str, str], id_: str, part: Fields) -> None:
        rows: Any = part.get("keyboard")
        markup = InlineKeyboardMarkup.de_json({"inline_keyboard": rows}) if rows else None
        entities = MessageEntity.de_list(part["entities"])  # type: ignore[arg-type] # JSON
        try:
            await self._edit(post["chat"], id_, str(part["text"]), entities, markup)
        except BadRequest as error:
            log.warning("entities_refused", channel=self.name, error=error.message)
            async with understood():
                await self._edit(post["chat"], id_, str(part["text"]), (), markup)

    async def remove(self, post: Mapping[str, str], id_: str) -> None:
        async with understood():
            await self.bot.delete_message(post["chat"], int(id_))

    async def _edit(
        self,
        chat: str,
        id_: str,
        text: str,
        entities: Sequence[MessageEntity],
        markup: InlineKeyboardMarkup | None,
    ) -> None:
        async with understood(unless=UNREADABLE if entities else ()):
            await self.bot.edit_message_text(
                text,
                chat_id=chat,
                message_id=int(id_),
                entities=entities or None,
                reply_markup=markup,
            )

    def _fixed(self, shown: Shown) -> str:
        def text(key: str) -> str:
            return self._texts.text(key, shown.language)

        match shown.fixed:
            case "start" | "help":
                lines = [f"/{command} – {text(key)}" for command, key in HELP]
                first = text("push_start") if shown.fixed == "start" else text("help_title")
                return "\n".join((first, "", *lines))
            case "language":
                return text("push_language")
            case _:
                return ""


@asynccontextmanager
async def understood(*, unless: Sequence[str] = ()) -> AsyncIterator[None]:
    """Tell Telegram's errors in our words; those that say one of `unless` are left as they are."""
    try:
        yield
    except RetryAfter as error:
        told = error.retry_after
        seconds = told.total_seconds() if isinstance(told, timedelta) else float(told)
        raise LaterError(str(error), seconds, told=True) from error
    except BadRequest as error:
        if _says(error, unless):
            raise
        raise _refusal(error) from error
    except NetworkError as error:
        raise LaterError(f"Telegram does not answer: {error}", 0.25) from error
    except Forbidden as error:
        raise NeverError(f"Telegram forbids it: {error}") from error
    except TelegramError as error:
        raise NeverError(f"Telegram refuses it: {error}") from error


def _refusal(error: BadRequest) -> Exception:
    if _says(error, (NOT_MODIFIED, *DELETED)):
        return AlreadyError(error.message)
    return (GoneError if _says(error, GONE) else NeverError)(f"Telegram refuses it: {error}")


def _says(error: TelegramError, phrases: Sequence[str]) -> bool:
    return any(phrase in error.message.lower() for phrase in phrases)


def _number(post: Mapping[str, str], name: str) -> int | None:
    return int(post[name]) if name in post else None
