"""A Bot API server that keeps what chats show, and refuses what the real one refuses."""

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from telegram.constants import FloodLimit, InlineKeyboardButtonLimit, MessageLimit

TOKEN = "123456:test-token"  # noqa: S105 - of a server that only tests reach
BOT: dict[str, Any] = {"id": 42, "is_bot": True, "first_name": "Desk", "username": "desk_bot"}
LONGEST_UNITS = int(MessageLimit.MAX_TEXT_LENGTH)
MOST_ENTITIES = int(MessageLimit.MESSAGE_ENTITIES)
CALLBACK_BYTES = int(InlineKeyboardButtonLimit.MAX_CALLBACK_DATA)
IN_A_SECOND = int(FloodLimit.MESSAGES_PER_SECOND)
"""Calls that show something, in all."""
IN_A_GROUP = int(FloodLimit.MESSAGES_PER_MINUTE_PER_GROUP)
"""Messages in a minute; so are edits and deletions counted, as often as they were seen to be."""
IN_A_ROW = 5
"""Messages in one chat that may come at once; a second allows one more."""
MESSAGES = frozenset({"sendMessage", "editMessageText", "editMessageReplyMarkup", "deleteMessage"})
SHOWING = MESSAGES | {"sendChatAction", "answerCallbackQuery"}


class RefusedError(Exception):
    """What the server answers instead."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.answer: dict[str, Any] = {
            "ok": False,
            "error_code": code,
            "description": description,
            **({"parameters": parameters} if parameters else {}),
        }
        self.code = code


@dataclass
class Said:
    """One message in a chat as people see it; `versions` holds what it said before."""

    chat: str
    text: str
    fields: dict[str, Any]
    versions: list[str] = field(default_factory=list)

    @property
    def buttons(self) -> list[dict[str, Any]]:
        markup = self.fields.get("reply_markup") or {}
        return [button for row in markup.get("inline_keyboard", []) for button in row]


@dataclass
class BotApi:
    """The server; `gates` hold back answers to a method after it was done.

    Its limits are those of Telegram, with minutes that pass `speed` times as fast. `refusals` are
    by method, or by method and chat.
    """

    url: str = ""
    speed: float = 20.0
    limited: list[tuple[str, str]] = field(default_factory=list)
    impatient: list[tuple[str, str]] = field(default_factory=list)
    waits_until: dict[str, float] = field(default_factory=dict)
    times: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    tokens: dict[str, tuple[float, float]] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)
    closed: dict[str, "RefusedError"] = field(default_factory=dict)
    gone_topics: set[str] = field(default_factory=set)
    malformed: set[str] = field(default_factory=set)
    polls: int = 0
    conflicts: list[int] = field(default_factory=list)
    chats: dict[int, Said] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    refusals: dict[str, list[RefusedError]] = field(default_factory=dict)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    updates: list[dict[str, Any]] = field(default_factory=list)
    webhook: dict[str, Any] | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    next_id: int = 1000

    def texts(self, chat: int | str) -> list[str]:
        """What a chat shows of the bot."""
        return [said.text for said in self.chats.values() if said.chat == str(chat)]

    def called(self, method: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.calls if name == method]

    def queue_update(self, update: dict[str, Any]) -> None:
        """Have an update fetched by whoever polls."""
        self.updates.append(update)
        self.news.set()

    async def answer(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        fields = await _read(request)
        self.calls.append((method, fields))
        try:
            self._count(method, fields)
            self._refuse(method, str(fields.get("chat_id", "")))
            if fields.get("message_thread_id") in self.gone_topics:
                raise RefusedError(400, "Bad Request: message thread not found")
            if method in self.malformed:
                return web.json_response({"ok": True, "result": {"nothing": "of use"}})
            result = await self._do(method, fields, request)
        except RefusedError as refusal:
            return web.json_response(refusal.answer, status=refusal.code)
        if method in self.gates:
            await self.gates[method].wait()
        return web.json_response({"ok": True, "result": result})

    def _refuse(self, method: str, chat: str) -> None:
        for name in (method, f"{method} {chat}"):
            if self.refusals.get(name):
                refusal = self.refusals[name].pop(0)
                seconds = refusal.answer.get("parameters", {}).get("retry_after", 0)
                self.waits_until[chat] = time.monotonic() + seconds
                raise refusal
        if chat in self.closed:
            raise self.closed[chat]
        if chat in self.moved and method in SHOWING:
            raise RefusedError(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                migrate_to_chat_id=self.moved[chat],
            )

    def _count(self, method: str, fields: dict[str, Any]) -> None:
        """Refuse what comes faster than Telegram allows; note what does not wait as asked."""
        chat = str(fields.get("chat_id", ""))
        now = time.monotonic() * self.speed
        if method not in SHOWING:
            return
        if method in MESSAGES and time.monotonic() < self.waits_until.get(chat, 0.0):
            self.impatient.append((method, chat))
        allowed = self._in_window("all", now, 1.0, IN_A_SECOND)
        if method in MESSAGES and allowed:
            allowed = self._in_a_row(chat, now)
            if chat.startswith("-"):
                allowed = self._in_window(chat, now, 60.0, IN_A_GROUP) and allowed
        if not allowed:
            self.limited.append((method, chat))
            raise flood(1)

    def _in_window(self, name: str, now: float, seconds: float, most: int) -> bool:
        self.times[name] = [at for at in self.times[name] if now - at < seconds]
        self.times[name].append(now)
        return len(self.times[name]) <= most

    def _in_a_row(self, chat: str, now: float) -> bool:
        at, tokens = self.tokens.get(chat, (now, IN_A_ROW))
        tokens = min(tokens + now - at, IN_A_ROW)
        self.tokens[chat] = now, tokens - (tokens >= 1)
        return tokens >= 1

    async def _do(self, method: str, fields: dict[str, Any], request: web.Request) -> Any:
        acts: dict[str, Callable[[dict[str, Any]], Any]] = {
            "getMe": lambda _: BOT,
            "sendMessage": self._send,
            "editMessageText": self._edit,
            "editMessageReplyMarkup": self._mark,
            "deleteMessage": self._delete,
            "setWebhook": self._hook,
            "deleteWebhook": lambda _: True,
        }
        if method == "getUpdates":
            return await self._updates(fields, request)
        return acts[method](fields) if method in acts else True

    def _send(self, fields: dict[str, Any]) -> dict[str, Any]:
        _check(fields)
        self.next_id += 1
        self.chats[self.next_id] = Said(str(fields["chat_id"]), fields["text"], fields)
        return self._message(self.next_id)

    def _edit(self, fields: dict[str, Any]) -> dict[str, Any]:
        _check(fields)
        id_ = int(fields["message_id"])
        if id_ not in self.chats:
            raise RefusedError(400, "Bad Request: message to edit not found")
        said = self.chats[id_]
        same = said.text == fields["text"] and (
            said.fields.get("reply_markup") == fields.get("reply_markup")
        )
        if same:
            raise RefusedError(400, "Bad Request: message is not modified: same content")
        said.versions.append(said.text)
        said.text, said.fields = fields["text"], fields
        return self._message(id_)

    def _mark(self, fields: dict[str, Any]) -> dict[str, Any]:
        id_ = int(fields["message_id"])
        self.chats[id_].fields = {
            **self.chats[id_].fields,
            "reply_markup": fields.get("reply_markup"),
        }
        return self._message(id_)

    def _delete(self, fields: dict[str, Any]) -> bool:
        if self.chats.pop(int(fields["message_id"]), None) is None:
            raise RefusedError(400, "Bad Request: message to delete not found")
        return True

    def _hook(self, fields: dict[str, Any]) -> bool:
        self.webhook = fields
        return True

    async def _updates(self, fields: dict[str, Any], request: web.Request) -> list[dict[str, Any]]:
        """Answer a poll; the newest one ends those before it, as the real one does."""
        self.polls += 1
        mine = self.polls
        offset = int(fields.get("offset", 0))
        self.updates = [update for update in self.updates if update["update_id"] >= offset]
        self.news.set()
        if not self.updates:
            try:
                async with asyncio.timeout(1):
                    while mine == self.polls and not self.updates:
                        self.news.clear()
                        await self.news.wait()
            except TimeoutError:
                pass
        if mine != self.polls:
            if request.transport is not None:
                self.conflicts.append(mine)
            raise RefusedError(
                409,
                "Conflict: terminated by other getUpdates request; "
                "make sure that only one bot instance is running",
            )
        return list(self.updates)

    def _message(self, id_: int) -> dict[str, Any]:
        said = self.chats[id_]
        kind = "supergroup" if said.chat.startswith("-") else "private"
        chat = {"id": int(said.chat), "type": kind, "title": "Chat"}
        return {"message_id": id_, "date": 1, "chat": chat, "from": BOT, "text": said.text}


def flood(seconds: int) -> RefusedError:
    """What the server answers when it is asked too often."""
    description = f"Too Many Requests: retry after {seconds}"
    return RefusedError(429, description, retry_after=seconds)


async def _read(request: web.Request) -> dict[str, Any]:
    form = await request.post()
    fields: dict[str, Any] = {}
    for name, value in form.items():
        text = str(value)
        structured = text[:1] in "[{" and name in {
            "entities", "reply_markup", "reply_parameters", "allowed_updates", "commands",
            "link_preview_options",
        }  # fmt: skip
        fields[name] = json.loads(text) if structured else text
    return fields


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _check(fields: dict[str, Any]) -> None:
    text = fields.get("text", "")
    if not text.strip():
        raise RefusedError(400, "Bad Request: message text is empty")
    if units(text) > LONGEST_UNITS:
        raise RefusedError(400, "Bad Request: message is too long")
    entities = fields.get("entities") or []
    if len(entities) > MOST_ENTITIES:
        raise RefusedError(400, "Bad Request: too many entities")
    for entity in entities:
        if entity["offset"] + entity["length"] > units(text) or entity["length"] < 1:
            raise RefusedError(400, "Bad Request: can't parse entities: out of the text")
    _check_buttons(fields)


def _check_buttons(fields: dict[str, Any]) -> None:
    for row in (fields.get("reply_markup") or {}).get("inline_keyboard", []):
        for button in row:
            if not 1 <= len(button.get("callback_data", "x").encode()) <= CALLBACK_BYTES:
                raise RefusedError(400, "Bad Request: BUTTON_DATA_INVALID")
            if "//localhost" in button.get("url", ""):
                what = f"inline keyboard button URL '{button['url']}' is invalid: Wrong HTTP URL"
                raise RefusedError(400, f"Bad Request: {what}")


@asynccontextmanager
async def bot_api() -> AsyncIterator[BotApi]:
    """Serve while inside."""
    api = BotApi()
    app = web.Application()
    app.router.add_post(f"/bot{TOKEN}/{{method}}", api.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    api.url = f"http://127.0.0.1:{port}"
    try:
        yield api
    finally:
        for gate in api.gates.values():
            gate.set()
        await runner.cleanup()
