"""A Bot API server that keeps what chats show, and refuses what the real one refuses."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

TOKEN = "123456:test-token"  # noqa: S105 - of a server that only tests reach
BOT: dict[str, Any] = {"id": 42, "is_bot": True, "first_name": "Desk", "username": "desk_bot"}
LONGEST_UNITS = 4096
MOST_ENTITIES = 100


class RefusedError(Exception):
    """What the server answers instead."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.answer = {
            "ok": False,
            "error_code": code,
            "description": description,
            **({"parameters": parameters} if parameters else {}),
        }
        self.code = code


@dataclass
class Said:
    """One message in a chat as people see it; `versions` tells what it said before."""

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
    """The server; `gates` hold back answers to a method after it was done."""

    url: str = ""
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
        return [told for name, told in self.calls if name == method]

    def tell(self, update: dict[str, Any]) -> None:
        """Have an update fetched by whoever polls."""
        self.updates.append(update)
        self.news.set()

    async def answer(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        told = await _read(request)
        self.calls.append((method, told))
        try:
            if self.refusals.get(method):
                raise self.refusals[method].pop(0)
            result = await self._do(method, told)
        except RefusedError as refusal:
            return web.json_response(refusal.answer, status=refusal.code)
        if method in self.gates:
            await self.gates[method].wait()
        return web.json_response({"ok": True, "result": result})

    async def _do(self, method: str, told: dict[str, Any]) -> Any:
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
            return await self._updates(told)
        return acts[method](told) if method in acts else True

    def _send(self, told: dict[str, Any]) -> dict[str, Any]:
        _check(told)
        self.next_id += 1
        self.chats[self.next_id] = Said(str(told["chat_id"]), told["text"], told)
        return self._message(self.next_id)

    def _edit(self, told: dict[str, Any]) -> dict[str, Any]:
        _check(told)
        id_ = int(told["message_id"])
        if id_ not in self.chats:
            raise RefusedError(400, "Bad Request: message to edit not found")
        said = self.chats[id_]
        same = said.text == told["text"] and (
            said.fields.get("reply_markup") == told.get("reply_markup")
        )
        if same:
            raise RefusedError(400, "Bad Request: message is not modified: same content")
        said.versions.append(said.text)
        said.text, said.fields = told["text"], told
        return self._message(id_)

    def _mark(self, told: dict[str, Any]) -> dict[str, Any]:
        id_ = int(told["message_id"])
        self.chats[id_].fields = {
            **self.chats[id_].fields,
            "reply_markup": told.get("reply_markup"),
        }
        return self._message(id_)

    def _delete(self, told: dict[str, Any]) -> bool:
        if self.chats.pop(int(told["message_id"]), None) is None:
            raise RefusedError(400, "Bad Request: message to delete not found")
        return True

    def _hook(self, told: dict[str, Any]) -> bool:
        self.webhook = told
        return True

    async def _updates(self, told: dict[str, Any]) -> list[dict[str, Any]]:
        offset = int(told.get("offset", 0))
        self.updates = [update for update in self.updates if update["update_id"] >= offset]
        if not self.updates:
            self.news.clear()
            try:
                async with asyncio.timeout(1):
                    await self.news.wait()
            except TimeoutError:
                pass
        return list(self.updates)

    def _message(self, id_: int) -> dict[str, Any]:
        said = self.chats[id_]
        chat = {"id": int(said.chat), "type": "private"}
        return {"message_id": id_, "date": 1, "chat": chat, "from": BOT, "text": said.text}


async def _read(request: web.Request) -> dict[str, Any]:
    form = await request.post()
    told: dict[str, Any] = {}
    for name, value in form.items():
        text = str(value)
        structured = text[:1] in "[{" and name in {
            "entities", "reply_markup", "reply_parameters", "allowed_updates", "commands",
        }  # fmt: skip
        told[name] = json.loads(text) if structured else text
    return told


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _check(told: dict[str, Any]) -> None:
    text = told.get("text", "")
    if not text.strip():
        raise RefusedError(400, "Bad Request: message text is empty")
    if units(text) > LONGEST_UNITS:
        raise RefusedError(400, "Bad Request: message is too long")
    entities = told.get("entities") or []
    if len(entities) > MOST_ENTITIES:
        raise RefusedError(400, "Bad Request: too many entities")
    for entity in entities:
        if entity["offset"] + entity["length"] > units(text) or entity["length"] < 1:
            raise RefusedError(400, "Bad Request: can't parse entities: out of the text")
    _check_buttons(told)


def _check_buttons(told: dict[str, Any]) -> None:
    for row in (told.get("reply_markup") or {}).get("inline_keyboard", []):
        for button in row:
            if len(button.get("callback_data", "x").encode()) not in range(1, 65):
                raise RefusedError(400, "Bad Request: BUTTON_DATA_INVALID")


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
