"""Slack and Telegram as one: what people do and see in a group, for scenarios that hold on both."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from tests.support.chat_harness import TEXTS
from tests.support.fake_slack import BOT, SlackApi
from tests.support.fake_slack import RefusedError as SlackRefusal
from tests.support.fake_telegram import BotApi, flood
from tests.support.slack_harness import SlackHarness, slack_desk
from tests.support.slack_harness import wait_until_settled as wait_until_slack_settled
from tests.support.telegram_harness import PERSON, TelegramHarness, telegram_desk
from tests.support.telegram_harness import wait_until_settled as wait_until_telegram_settled
from tests.support.worker_harness import WorkerHarness

GROUP: dict[str, Any] = {"id": -100, "type": "supergroup", "title": "Team"}
EVE: dict[str, Any] = {"id": 8, "is_bot": False, "first_name": "Eve", "language_code": "de"}


@dataclass
class Button:
    """A button of a message, as the platform gave it."""

    place: Any
    fields: dict[str, Any]

    @property
    def value(self) -> str:
        """What the platform sends when it is pressed."""
        return str(self.fields.get("value") or self.fields.get("callback_data"))


@dataclass
class SlackPlatform:
    """A channel of Slack, where each question has a thread."""

    api: SlackApi
    name: str = "slack"
    sending: str = "chat.postMessage"
    editing: str = "chat.update"
    asked: int = 0

    def open(self, harness: WorkerHarness, **options: Any) -> AbstractAsyncContextManager[Any]:
        return slack_desk(harness, self.api, **options)

    async def ask(self, desk: SlackHarness) -> str:
        self.asked += 1
        desk.count = 10 * self.asked
        return str((await desk.say(f"<@{BOT}> How?"))["ts"])

    async def press(self, desk: SlackHarness, button: Button, *, is_other: bool = False) -> None:
        answer = await desk.press(button.place, button.fields, user="U2" if is_other else "U1")
        assert answer.status_code == 200

    def list_texts(self) -> list[str]:
        return self.api.shown()

    def list_buttons(self) -> list[Button]:
        return [Button(ts, one) for ts, said in self.api.posts.items() for one in said.buttons]

    def list_questions_replied_to(self) -> set[str]:
        return {str(said.thread) for said in self.api.posts.values()}

    def count_refused_presses(self) -> int:
        return sum("pause_foreign/en" in shown for shown in self.api.shown())

    def refuse_next_edit(self) -> None:
        self.api.refusals[self.editing] = [SlackRefusal("ratelimited", status=429, retry_after=1)]

    def refuse_outcomes(self) -> None:
        self.api.posts.clear()
        self.api.malformed.add(self.sending)

    async def wait_until_settled(self, harness: WorkerHarness) -> None:
        await wait_until_slack_settled(harness, self.api)


@dataclass
class TelegramPlatform:
    """A group of Telegram."""

    api: BotApi
    name: str = "telegram"
    sending: str = "sendMessage"
    editing: str = "editMessageText"
    asked: int = 0

    def open(self, harness: WorkerHarness, **options: Any) -> AbstractAsyncContextManager[Any]:
        return telegram_desk(harness, self.api, **options)

    async def ask(self, desk: TelegramHarness) -> str:
        self.asked += 1
        update = desk.group("@desk_bot\nHow?", id_=10 * self.asked)
        assert (await desk.send(update)).status_code == 200
        return str(update["message"]["message_id"])

    async def press(self, desk: TelegramHarness, button: Button, *, is_other: bool = False) -> None:
        person = EVE if is_other else PERSON
        pressed = desk.press(button.place, button.value, person=person, chat=GROUP)
        assert (await desk.send(pressed)).status_code == 200

    def list_texts(self) -> list[str]:
        return [said.text for said in self.api.chats.values()]

    def list_buttons(self) -> list[Button]:
        return [Button(id_, one) for id_, said in self.api.chats.items() for one in said.buttons]

    def list_questions_replied_to(self) -> set[str]:
        replied = [call.get("reply_parameters") for call in self.api.called(self.sending)]
        return {str(one["message_id"]) for one in replied if one is not None}

    def count_refused_presses(self) -> int:
        notices = [call.get("text") for call in self.api.called("answerCallbackQuery")]
        return notices.count(TEXTS.text("pause_foreign", "de"))

    def refuse_next_edit(self) -> None:
        self.api.refusals[self.editing] = [flood(1)]

    def refuse_outcomes(self) -> None:
        self.api.malformed.add(self.editing)

    async def wait_until_settled(self, harness: WorkerHarness) -> None:
        await wait_until_telegram_settled(harness, self.api)


ChatPlatform = SlackPlatform | TelegramPlatform
