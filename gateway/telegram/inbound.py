"""Hands updates to the desk, and answers the presses of buttons."""

from collections.abc import Mapping
from typing import Any

import structlog
from telegram import Update

from gateway.chat.buttons import Choice
from gateway.chat.connector import ChatChannel
from gateway.chat.errors import PushError, reads_foreign_form
from gateway.chat.ports import Incoming
from gateway.chat.retry import retry
from gateway.telegram.audience import TelegramAudience
from gateway.telegram.bot_api import TelegramCalls
from gateway.telegram.updates import BotIdentity, Pressed, read

log = structlog.get_logger("gateway")


class Updates:
    """Takes updates, however they come; when `take` returns, Telegram may forget the update."""

    def __init__(
        self,
        calls: TelegramCalls,
        me: BotIdentity,
        door: ChatChannel,
        audience: TelegramAudience | None = None,
    ) -> None:
        self._audience = TelegramAudience() if audience is None else audience
        self._calls = calls
        self._me = me
        self._door = door

    async def take(self, told: Mapping[str, Any]) -> None:
        """Take one update in; raises `UnreadableError`, and what broker and memory raise."""
        with reads_foreign_form("an update of Telegram"):
            found = read(
                Update.de_json(dict(told), self._calls.bot), self._me, self._door.name_question
            )
        match found:
            case Incoming() as incoming:
                await self._hear(incoming)
            case Pressed() as pressed:
                await self._press(pressed)
            case None:
                pass

    async def _hear(self, incoming: Incoming) -> None:
        with reads_foreign_form("an update of Telegram"):
            chat, user = int(incoming.post["chat"]), int(incoming.person)
        if self._audience.admits(chat=chat, user=user):
            await self._door.intake.accept(incoming)
            return
        # A stranger in a private chat is told so; a group that strangers made hears nothing.
        post = incoming.post if chat == user else None
        language = await self._door.intake.language(incoming.question, incoming.language)
        await self._door.declining.decline("not_allowed", incoming.person, post, language)

    async def _press(self, pressed: Pressed) -> None:
        with reads_foreign_form("an update of Telegram"):
            chat = int(pressed.post["chat"])
        if not self._audience.admits(chat=chat, user=pressed.person):
            await self._door.declining.decline("not_allowed", str(pressed.person), None, "")
            return
        choice = await self._door.buttons.choice(pressed.token)
        place = self._door.name_question(pressed.conversation_id, pressed.message_id)
        if choice is None or choice.question.conversation != place.conversation:
            await self._answer(pressed, "push_expired", choice)
            return
        await self._door.submit_choice(
            choice,
            post=pressed.post,
            order=pressed.order,
            language=pressed.language,
            person=str(pressed.person),
        )
        await self._answer(pressed, "push_thanks" if choice.thumb else "", choice)
        if not choice.thumb:
            self._door.spawn(self._close(pressed))

    async def _answer(self, pressed: Pressed, key: str, choice: Choice | None) -> None:
        """Tell that a press was heard; an old query cannot be answered any more."""
        question = self._door.name_question(pressed.conversation_id, pressed.message_id)
        language = await self._door.intake.language(question, pressed.language)
        text = self._door.texts.text(key, language) if key else None
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
        """Take the options away once one was chosen."""
        chat, id_ = pressed.post["chat"], pressed.message_id
        await retry(lambda: self._calls.without_buttons(chat, id_), call_name="remove_buttons")
