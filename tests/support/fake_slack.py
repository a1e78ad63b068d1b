"""A server that speaks Slack's Web API and Socket Mode, and refuses what Slack refuses."""

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web
from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block

TOKEN = "xoxb-test"  # noqa: S105 - of a server that only tests reach
APP_TOKEN = "xapp-test"  # noqa: S105 - as above
TEAM, BOT = "T1", "UBOT"
BLOCKS = 50
SECTION_CHARACTERS = 3_000
ALL_CHARACTERS = 13_200
UPDATE_BYTES = 4_000
"""The longest `text` of `chat.update`, in UTF-8, after `&`, `<` and `>` were escaped."""


ALLOWED = {
    "chat.postEphemeral": 100,
    "users.info": 100,
    "chat.update": 50,
    "chat.delete": 50,
    "reactions.add": 50,
    "reactions.remove": 20,
    "usergroups.users.list": 20,
    "conversations.replies": 50,
}
"""Calls of a method in a minute, by the tiers that Slack publishes."""
POSTS_IN_A_ROW = 3
"""Messages in one channel that may come at once; a second allows one more."""


class RefusedError(Exception):
    """What the server answers instead."""

    def __init__(self, code: str, *, status: int = 200, retry_after: int = 0) -> None:
        super().__init__(code)
        self.code = code
        self.status = status
        self.retry_after = retry_after
        self.headers = {"Retry-After": str(retry_after)} if retry_after else {}


@dataclass
class Said:
    """One message as people see it; `versions` holds what it said before."""

    channel: str
    thread: str | None
    text: str
    blocks: list[dict[str, Any]]
    versions: list[str] = field(default_factory=list)
    user: str = BOT

    @property
    def shown(self) -> str:
        """What the sections say, or the text where there are none."""
        sections = [block["text"]["text"] for block in self.blocks if block["type"] == "section"]
        return "\n".join(sections) if sections else self.text

    @property
    def buttons(self) -> list[dict[str, Any]]:
        rows = [block["elements"] for block in self.blocks if block["type"] == "actions"]
        return [button for row in rows for button in row]


@dataclass
class SlackApi:
    """The server; `gates` hold back answers to a method after it was done, `walls` the doing.

    Its limits are those of Slack, with minutes that pass `speed` times as fast.
    """

    url: str = ""
    speed: float = 20.0
    limited: list[str] = field(default_factory=list)
    impatient: list[str] = field(default_factory=list)
    waits_until: dict[str, float] = field(default_factory=dict)
    times: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    tokens: dict[str, tuple[float, float]] = field(default_factory=dict)
    posts: dict[str, Said] = field(default_factory=dict)
    reactions: set[tuple[str, str, str]] = field(default_factory=set)
    reacted: list[tuple[str, str, str]] = field(default_factory=list)
    whispers: list[dict[str, Any]] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    refusals: dict[str, list[RefusedError]] = field(default_factory=dict)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    walls: dict[str, asyncio.Event] = field(default_factory=dict)
    sockets: list[web.WebSocketResponse] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    malformed: set[str] = field(default_factory=set)
    locale: str = "en-US"
    user_groups: dict[str, list[str]] = field(default_factory=dict)
    next_ts: int = 0

    def called(self, method: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.calls if name == method]

    def shown(self) -> list[str]:
        return [said.shown for said in self.posts.values()]

    async def answer(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        fields = await _read(request)
        self.calls.append((method, fields))
        try:
            if request.headers.get("Authorization") not in {
                f"Bearer {TOKEN}", f"Bearer {APP_TOKEN}",
            }:  # fmt: skip
                raise RefusedError("invalid_auth")
            if method in self.walls:
                await self.walls[method].wait()
                raise RefusedError("internal_error")
            self._count(method, fields)
            if self.refusals.get(method):
                refusal = self.refusals[method].pop(0)
                self.waits_until[method] = time.monotonic() + refusal.retry_after
                raise refusal
            result = self._do(method, fields)
        except RefusedError as refusal:
            answer = {"ok": False, "error": refusal.code}
            return web.json_response(answer, status=refusal.status, headers=refusal.headers)
        if method in self.gates:
            await self.gates[method].wait()
        return web.json_response({"ok": True, **({} if method in self.malformed else result)})

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        """Hold a socket; note what is acknowledged on it."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1})
        self.sockets.append(socket)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                self.acknowledged.append(json.loads(message.data)["envelope_id"])
        return socket

    def _count(self, method: str, fields: dict[str, Any]) -> None:
        """Refuse what comes faster than Slack allows; note what does not wait as asked."""
        if time.monotonic() < self.waits_until.get(method, 0.0):
            self.impatient.append(method)
        now = time.monotonic() * self.speed
        if method == "chat.postMessage":
            at, tokens = self.tokens.get(fields["channel"], (now, POSTS_IN_A_ROW))
            tokens = min(tokens + now - at, POSTS_IN_A_ROW)
            allowed = tokens >= 1
            self.tokens[fields["channel"]] = now, tokens - allowed
        else:
            self.times[method] = [at for at in self.times[method] if now - at < 60]
            allowed = len(self.times[method]) < ALLOWED.get(method, 1_000)
            self.times[method] += [now] * allowed
        if not allowed:
            self.limited.append(method)
            raise RefusedError("ratelimited", status=429, retry_after=1)

    def _do(self, method: str, fields: dict[str, Any]) -> dict[str, Any]:
        acts: dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = {
            "auth.test": lambda _: {"team_id": TEAM, "user_id": BOT, "bot_id": "B1"},
            "users.info": lambda fields: {"user": {"id": fields["user"], "locale": self.locale}},
            "usergroups.users.list": self._list_members,
            "conversations.replies": self._list_thread,
            "apps.connections.open": lambda _: {"url": f"{self.url.replace('http', 'ws')}socket"},
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "chat.delete": self._delete,
            "chat.postEphemeral": self.whispers.append,
            "reactions.add": lambda fields: self._react(method, fields),
            "reactions.remove": lambda fields: self._react(method, fields),
        }
        if method not in acts:
            raise RefusedError("unknown_method")
        return acts[method](fields) or {}

    def _list_members(self, fields: dict[str, Any]) -> dict[str, Any]:
        if fields["usergroup"] not in self.user_groups:
            raise RefusedError("no_such_subteam")
        return {"users": self.user_groups[fields["usergroup"]]}

    def _list_thread(self, fields: dict[str, Any]) -> dict[str, Any]:
        said = self.posts.get(fields["ts"])
        if said is None or said.channel != fields["channel"]:
            raise RefusedError("thread_not_found")
        return {"messages": [{"ts": fields["ts"], "user": said.user, "blocks": said.blocks}]}

    def _delete(self, fields: dict[str, Any]) -> None:
        if self.posts.pop(fields["ts"], None) is None:
            raise RefusedError("message_not_found")

    def _post(self, fields: dict[str, Any]) -> dict[str, Any]:
        blocks = fields.get("blocks") or []
        _check(fields.get("text", ""), blocks)
        self.next_ts += 1
        ts = f"1800000000.{self.next_ts:06d}"
        self.posts[ts] = Said(fields["channel"], fields.get("thread_ts"), fields["text"], blocks)
        return {"ts": ts, "channel": fields["channel"]}

    def _update(self, fields: dict[str, Any]) -> dict[str, Any]:
        blocks = fields.get("blocks") or []
        _check(fields.get("text", ""), blocks)
        if len(fields.get("text", "").encode()) > UPDATE_BYTES:
            raise RefusedError("msg_too_long")
        if fields["ts"] not in self.posts:
            raise RefusedError("message_not_found")
        said = self.posts[fields["ts"]]
        said.versions.append(said.shown)
        said.text, said.blocks = fields["text"], blocks
        return {"ts": fields["ts"], "channel": fields["channel"]}

    def _react(self, method: str, fields: dict[str, Any]) -> None:
        reaction = (fields["channel"], fields["timestamp"], fields["name"])
        if method == "reactions.add":
            if reaction in self.reactions:
                raise RefusedError("already_reacted")
            self.reactions.add(reaction)
            self.reacted.append(reaction)
        elif reaction not in self.reactions:
            raise RefusedError("no_reaction")
        else:
            self.reactions.remove(reaction)


def allows(text: str, blocks: list[dict[str, Any]]) -> bool:
    """Whether the server takes such a message."""
    try:
        _check(text, blocks)
    except RefusedError:
        return False
    return True


def _check(text: str, blocks: list[dict[str, Any]]) -> None:
    if not text and not blocks:
        raise RefusedError("no_text")
    if len(blocks) > BLOCKS or not all(_is_valid(block) for block in blocks):
        raise RefusedError("invalid_blocks")
    if len(json.dumps(blocks, ensure_ascii=False)) > ALL_CHARACTERS:
        raise RefusedError("msg_blocks_too_long")


def _is_valid(block: dict[str, Any]) -> bool:
    """Return whether Slack's own package accepts a block, and the rules that it lacks are kept."""
    try:
        _validate(block)
    except SlackObjectFormationError:
        return False
    texts = [block["text"]["text"]] if block["type"] == "section" else []
    elements = block.get("elements", ())
    ids = [each["action_id"] for each in elements if "action_id" in each]
    if block["type"] == "context":
        texts += [each["text"] for each in elements]
    return len(set(ids)) == len(ids) and all(1 <= len(text) <= SECTION_CHARACTERS for text in texts)


def _validate(block: dict[str, Any]) -> None:
    parsed = Block.parse(block)
    if parsed is None:
        raise SlackObjectFormationError(f"expected a known type of block, found {block['type']!r}")
    parsed.validate_json()
    for element in getattr(parsed, "elements", ()):
        element.validate_json()


async def _read(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        fields: dict[str, Any] = await request.json()
        return fields
    form = await request.post()
    read = {name: str(value) for name, value in (*request.query.items(), *form.items())}
    return {name: json.loads(value) if name == "blocks" else value for name, value in read.items()}


@asynccontextmanager
async def slack_api() -> AsyncIterator[SlackApi]:
    """Serve while inside."""
    api = SlackApi()
    app = web.Application()
    app.router.add_get("/api/socket", api.socket)
    app.router.add_route("*", "/api/{method}", api.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    api.url = f"http://127.0.0.1:{runner.addresses[0][1]}/api/"
    try:
        yield api
    finally:
        for gate in (*api.gates.values(), *api.walls.values()):
            gate.set()
        await runner.cleanup()
