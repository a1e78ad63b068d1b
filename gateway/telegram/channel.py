"""Shows outcomes in Telegram: a typing action and a placeholder, then the answer's text."""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from telegram import MessageEntity

from broker.values import Fields
from envelope.question import Question
from envelope.texts import Texts
from gateway.answer import split_off_passages
from gateway.chat.ports import Shown
from gateway.telegram.bot_api import FormError, Rows, TelegramCalls
from gateway.telegram.rendering import keyboard, messages

log = structlog.get_logger("gateway")

TYPING_SECONDS = 4.0
"""Telegram shows an action for at most five seconds."""
HELP = ("language", "help_set_language"), ("clear", "help_clear_history"), ("help", "help_help")


class TelegramChannel:
    """Implements `gateway.chat.ports.Channel` for Telegram."""

    name = "telegram"

    def __init__(
        self, calls: TelegramCalls, texts: Texts, *, typing_seconds: float = TYPING_SECONDS
    ) -> None:
        self._calls = calls
        self._texts = texts
        self.activity_seconds: float | None = typing_seconds

    async def show_activity(self, question: Question, post: Mapping[str, str]) -> None:
        await self._calls.typing(post["chat"], _number(post, "thread"))

    async def hide_activity(self, question: Question, post: Mapping[str, str]) -> None:
        """Do nothing: the typing action ends by itself."""

    def render(self, shown: Shown) -> Sequence[Fields]:
        text, more = split_off_passages(shown.answer)
        if fixed := self._render_fixed(shown):
            text, more = fixed, ""
        sources = () if shown.fixed else shown.answer.sources
        title = self._texts.text("push_sources", shown.language)
        made = messages(text, sources, title=title, more=more)
        rows = keyboard(shown.buttons)
        if rows:
            made[-1]["keyboard"] = rows  # type: ignore[assignment] # rows of JSON objects are JSON
        return made

    async def post_placeholder(
        self, post: Mapping[str, str], text: str, *, soon: bool = False
    ) -> str:
        thread, reply_to = _number(post, "thread"), _number(post, "reply_to")
        return await self._calls.send(post["chat"], thread, text, reply_to=reply_to, soon=soon)

    async def edit(
        self, post: Mapping[str, str], id_: str, part: Fields, *, is_draft: bool = False
    ) -> None:
        rows: Any = part.get("keyboard", ())
        entities = MessageEntity.de_list(part["entities"])  # type: ignore[arg-type] # JSON
        chat, text = post["chat"], str(part["text"])
        try:
            await self._calls.edit(chat, id_, text, entities, rows, is_draft=is_draft)
        except FormError as error:
            log.warning("formatting_rejected", channel=self.name, error=str(error))
            plain = _without_links(rows)
            await self._calls.edit(chat, id_, text, (), plain, is_draft=is_draft)

    async def delete(self, post: Mapping[str, str], id_: str) -> None:
        await self._calls.delete(post["chat"], id_)

    def _render_fixed(self, shown: Shown) -> str:
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


def _without_links(rows: Rows) -> Rows:
    """Return the buttons with a token, without link buttons, whose address Telegram may reject."""
    kept = [[button for button in row if "url" not in button] for row in rows]
    return [row for row in kept if row]


def _number(post: Mapping[str, str], name: str) -> int | None:
    return int(post[name]) if name in post else None
