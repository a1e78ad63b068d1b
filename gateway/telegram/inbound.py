"""Handles updates: submits messages, and processes button presses."""

from collections.abc import Mapping
from typing import Any

import structlog
from telegram import Update

from gateway.chat.buttons import Choice
from gateway.chat.connector import ChatChannel
from gateway.chat.errors import PushError, reads_foreign_form
from gateway.chat.platform_calls import retry
from gateway.chat.ports import Incoming
from gateway.telegram.bot_api import TelegramCalls
from gateway.telegram.updates import BotIdentity, Pressed, TelegramAudience, read

log = structlog.get_logger("gateway")


class Updates:
    """Handles updates of webhook and polling; after `take` returns, the update is stored."""

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
        """Handle one update; raises `UnreadableError` and the errors of broker and memory."""
        with reads_foreign_form("an update of Telegram"):
            found = read(
                Update.de_json(dict(body), self._calls.bot), self._me, self._chat.name_question
            )
        match found:
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
        """Confirm a button press; Telegram rejects the confirmation of an old press."""
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
