"""The Telegram channel before a scripted desk and a fake Bot API."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from gateway.chat.connector import ChatChannel
from gateway.chat.platform_calls import Pacer
from gateway.chat.ports import ChatPolicy
from gateway.connections.server import listening, serving
from gateway.telegram.bot_api import RATES, TelegramCalls
from gateway.telegram.channel import TYPING_SECONDS, TelegramChannel
from gateway.telegram.connection import (
    HEADER,
    PATH,
    Webhook,
    connect_bot,
    make_bot,
    receive_updates,
)
from gateway.telegram.updates import TelegramAudience
from memory.rate_limits import RedisTurns
from tests.support.chat_harness import AT_ONCE, TEXTS, all_shown, open_connector
from tests.support.fake_telegram import BOT, TOKEN, BotApi
from tests.support.worker_harness import WorkerHarness

SECRET = "a-secret_of-this-test"  # noqa: S105 - of this test
PERSON: dict[str, Any] = {"id": 7, "is_bot": False, "first_name": "Ann", "language_code": "en"}


@dataclass
class TelegramHarness:
    """An open channel, and what people do before it."""

    api: BotApi
    connector: ChatChannel
    url: str
    client: httpx.AsyncClient
    harness: WorkerHarness
    count: int = field(default=0)

    def message(self, text: str, *, id_: int | None = None, **fields: Any) -> dict[str, Any]:
        """Telegram's update of a message in a private chat, unless `fields` say otherwise."""
        self.count += 1
        message = {
            "message_id": self.count if id_ is None else id_,
            "date": 1_700_000_000,
            "chat": {"id": 7, "type": "private"},
            "from": PERSON,
            "text": text,
            **fields,
        }
        if text.startswith("/"):
            length = len(text.split(" ")[0])
            message["entities"] = [{"type": "bot_command", "offset": 0, "length": length}]
        kind = "edited_message" if "edit_date" in fields else "message"
        return {"update_id": 9000 + self.count, kind: message}

    def group(self, text: str, **fields: Any) -> dict[str, Any]:
        """Telegram's update of a message in a group."""
        at = text.find("@desk_bot")
        entities = [{"type": "mention", "offset": at, "length": 9}] if at >= 0 else []
        chat = {"id": -100, "type": "supergroup", "title": "Team"}
        return self.message(text, **{"chat": chat, "entities": entities, **fields})

    def press(
        self, message_id: int, data: str, *, person: Any = None, **message: Any
    ) -> dict[str, Any]:
        """Telegram's update of a pressed button; `message` says more of what it is under."""
        self.count += 1
        query = {
            "id": f"q{self.count}",
            "from": PERSON if person is None else person,
            "chat_instance": "1",
            "data": data,
            "message": {
                "message_id": message_id,
                "date": 1,
                "chat": {"id": 7, "type": "private"},
                "from": BOT,
                "text": "-",
                **message,
            },
        }
        return {"update_id": 9000 + self.count, "callback_query": query}

    async def send(self, update: dict[str, Any], *, secret: str = SECRET) -> httpx.Response:
        """Call the webhook, as Telegram does."""
        return await self.client.post(self.url, json=update, headers={HEADER: secret})

    async def say(self, text: str, **fields: Any) -> dict[str, Any]:
        """Have a message sent and taken in."""
        update = self.message(text, **fields)
        answer = await self.send(update)
        assert answer.status_code == 200, answer.text
        return update


def calls_of(harness: WorkerHarness, api: BotApi) -> TelegramCalls:
    """Calls that are paced for a Telegram whose minutes pass as fast as those of this one."""
    rates = {
        name: replace(rate, per_minute=rate.per_minute * api.speed) for name, rate in RATES.items()
    }
    bot = make_bot(TOKEN, url=api.url)
    return TelegramCalls(bot, Pacer(RedisTurns(harness.client, "telegram"), rates))


def channel_of(calls: TelegramCalls, api: BotApi) -> TelegramChannel:
    """A channel that types as often as one does in such minutes."""
    return TelegramChannel(calls, TEXTS, typing_seconds=TYPING_SECONDS / api.speed)


@asynccontextmanager
async def telegram_desk(
    harness: WorkerHarness,
    api: BotApi,
    *,
    policy: ChatPolicy = AT_ONCE,
    audience: TelegramAudience | None = None,
    **options: Any,
) -> AsyncIterator[TelegramHarness]:
    """Stand open while inside, with a webhook."""
    calls = calls_of(harness, api)
    listener = listening("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}"
    channel = channel_of(calls, api)
    try:
        async with (
            connect_bot(calls.bot) as me,
            open_connector(harness, channel, policy=policy, **options) as connector,
            receive_updates(
                calls, me, connector, TEXTS, how=Webhook(url, SECRET), audience=audience
            ) as app,
            httpx.AsyncClient(timeout=None) as client,
        ):
            assert app is not None
            async with serving(app, listener, asyncio.Event()):
                yield TelegramHarness(api, connector, url, client, harness)
    finally:
        listener.close()


async def wait_until_settled(harness: WorkerHarness, api: BotApi) -> None:
    """Wait until nothing is left to do."""
    await all_shown(harness, "telegram", lambda: [said.text for said in api.chats.values()])
