"""Slack and Telegram as one: what people do and see in a group, for scenarios that hold on both."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from tests.support.chat_harness import TEXTS
from tests.support.fake_slack import BOT, SlackApi
from tests.support.fake_slack import RefusedError as SlackRefusal
from tests.support.fake_telegram import BotApi, flood
from tests.support.fake_telegram import RefusedError as TelegramRefusal
from tests.support.slack_harness import SlackHarness, slack_desk
from tests.support.slack_harness import wait_until_settled as wait_until_slack_settled
from tests.support.telegram_harness import PERSON, TelegramHarness, telegram_desk
from tests.support.telegram_harness import wait_until_settled as wait_until_telegram_settled
from tests.support.waiting import wait_until
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
    calls: tuple[str, ...] = ("chat.postMessage", "chat.update", "reactions.add")
    asked: int = 0
    last: dict[str, Any] = field(default_factory=dict)

    def open(self, harness: WorkerHarness, **options: Any) -> AbstractAsyncContextManager[Any]:
        return slack_desk(harness, self.api, **options)

    async def write(
        self, desk: SlackHarness, text: str = "How?", *, language: str = "en", **fields: Any
    ) -> int:
        """Have a message sent in the channel; return how it was acknowledged."""
        self.asked += 1
        self.api.locale = language
        desk.count = 10 * self.asked
        mention = "" if fields else f"<@{BOT}> "
        self.last = desk.message(f"{mention}{text}", **fields)
        return (await desk.send(self.last)).status_code

    async def ask(self, desk: SlackHarness, text: str = "How?", *, language: str = "en") -> str:
        assert await self.write(desk, text, language=language) == 200
        return str(self.last["ts"])

    async def say(self, desk: SlackHarness, text: str, *, language: str = "en") -> None:
        """Say something to the desk alone."""
        private = {"channel": "D1", "channel_type": "im"}
        assert await self.write(desk, text, language=language, **private) == 200

    async def send_again(self, desk: SlackHarness) -> int:
        """Send the last message in every way in which Slack may send it again."""
        await desk.send({**self.last, "type": "app_mention"})
        return (await desk.send(self.last, X_Slack_Retry_Num="1")).status_code

    async def approve_in_words(self, desk: SlackHarness, asked: str) -> None:
        """Have another person approve below a question, until the desk has reacted."""
        await desk.say("approve/en", thread_ts=asked, user="U2")
        await wait_until(lambda: self.count_refused_presses() == 1)

    async def press(self, desk: SlackHarness, button: Button, *, is_other: bool = False) -> None:
        answer = await desk.press(button.place, button.fields, user="U2" if is_other else "U1")
        assert answer.status_code == 200

    def list_texts(self) -> list[str]:
        return self.api.shown()

    def list_buttons(self) -> list[Button]:
        return [
            Button(ts, button) for ts, said in self.api.posts.items() for button in said.buttons
        ]

    def list_questions_replied_to(self) -> set[str]:
        return {str(said.thread) for said in self.api.posts.values()}

    def count_refused_presses(self) -> int:
        return sum("pause_foreign/en" in shown for shown in self.api.shown())

    def count_signs(self) -> int:
        return len(self.api.reacted)

    def limit_next(self, *methods: str) -> None:
        for method in methods:
            self.api.refusals[method] = [SlackRefusal("ratelimited", status=429, retry_after=1)]

    def forget_token(self) -> None:
        self.api.refusals[self.editing] = [SlackRefusal("token_expired")]

    def refuse_markup(self) -> None:
        self.api.refusals[self.editing] = [SlackRefusal("invalid_blocks")]

    def shows_markup(self) -> bool:
        return any(said.blocks for said in self.api.posts.values())

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
    calls: tuple[str, ...] = ("sendMessage", "editMessageText", "sendChatAction")
    asked: int = 0
    last: dict[str, Any] = field(default_factory=dict)

    def open(self, harness: WorkerHarness, **options: Any) -> AbstractAsyncContextManager[Any]:
        return telegram_desk(harness, self.api, **options)

    async def write(
        self, desk: TelegramHarness, text: str = "How?", *, language: str = "en", **fields: Any
    ) -> int:
        """Have a message sent in the group; return how it was acknowledged."""
        self.asked += 1
        writer = {"from": {**PERSON, "language_code": language}}
        self.last = desk.group(f"@desk_bot\n{text}", **{"id_": 10 * self.asked, **writer, **fields})
        return (await desk.send(self.last)).status_code

    async def ask(self, desk: TelegramHarness, text: str = "How?", *, language: str = "en") -> str:
        assert await self.write(desk, text, language=language) == 200
        return str(self.last["message"]["message_id"])

    async def say(self, desk: TelegramHarness, text: str, *, language: str = "en") -> None:
        """Say something to the desk alone."""
        self.last = await desk.say(text, **{"from": {**PERSON, "language_code": language}})

    async def send_again(self, desk: TelegramHarness) -> int:
        """Send the last message again."""
        return (await desk.send(self.last)).status_code

    async def approve_in_words(self, desk: TelegramHarness, asked: str) -> None:
        """Have another person approve in the group, until the desk has reacted."""
        del asked
        await desk.send(desk.group("@desk_bot approve/en", **{"from": EVE}))
        await wait_until(lambda: sum(bool(said.buttons) for said in self.api.chats.values()) == 2)

    async def press(self, desk: TelegramHarness, button: Button, *, is_other: bool = False) -> None:
        person = EVE if is_other else PERSON
        pressed = desk.press(button.place, button.value, person=person, chat=GROUP)
        assert (await desk.send(pressed)).status_code == 200

    def list_texts(self) -> list[str]:
        return [said.text for said in self.api.chats.values()]

    def list_buttons(self) -> list[Button]:
        return [
            Button(id_, button) for id_, said in self.api.chats.items() for button in said.buttons
        ]

    def list_questions_replied_to(self) -> set[str]:
        replied = [call.get("reply_parameters") for call in self.api.called(self.sending)]
        return {str(item["message_id"]) for item in replied if item is not None}

    def count_refused_presses(self) -> int:
        notices = [call.get("text") for call in self.api.called("answerCallbackQuery")]
        return notices.count(TEXTS.text("pause_foreign", "de"))

    def count_signs(self) -> int:
        return len(self.api.called("sendChatAction"))

    def limit_next(self, *methods: str) -> None:
        for method in methods:
            self.api.refusals[method] = [flood(1)]

    def forget_token(self) -> None:
        self.api.refusals[self.editing] = [TelegramRefusal(401, "Unauthorized")]

    def refuse_markup(self) -> None:
        refusal = TelegramRefusal(400, "Bad Request: can't parse entities: unsupported")
        self.api.refusals[self.editing] = [refusal]

    def shows_markup(self) -> bool:
        return any(said.fields.get("entities") for said in self.api.chats.values())

    def refuse_outcomes(self) -> None:
        self.api.malformed.add(self.editing)

    async def wait_until_settled(self, harness: WorkerHarness) -> None:
        await wait_until_telegram_settled(harness, self.api)


ChatPlatform = SlackPlatform | TelegramPlatform
