"""A console with its owner signed in, over records in a file."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
from fastapi import APIRouter, FastAPI

from gateway.console.frame import Frame
from records.store import RecordStore

DESK = ("acme", "desk")
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)> [x](javascript:alert(1))"
_TOKEN = re.compile(r'name="token" value="([0-9a-f]{64})"')


@dataclass
class FakeSessions:
    codes: set[str] = field(default_factory=lambda: {"code"})
    tokens: set[str] = field(default_factory=set)

    async def open(self, code: str) -> str | None:
        if code not in self.codes:
            return None
        self.codes.remove(code)
        self.tokens.add(f"token-of-{code}")
        return f"token-of-{code}"

    async def is_open(self, token: str) -> bool:
        return token in self.tokens

    async def end(self, token: str) -> None:
        self.tokens.discard(token)


def make_frame(store: RecordStore | None) -> Frame:
    return Frame(FakeSessions(), store, assistants=[DESK], records_days=90.0)


def make_app(routers: Sequence[APIRouter]) -> FastAPI:
    app = FastAPI()
    for router in routers:
        app.include_router(router)
    return app


@asynccontextmanager
async def visitor(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://desk") as client:
        yield client


@asynccontextmanager
async def signed_in(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with visitor(app) as client:
        assert (await client.get("/console/login?code=code")).status_code == 303
        yield client


async def send(owner: httpx.AsyncClient, page: str, path: str, **fields: str) -> httpx.Response:
    """Send a form with the token that `page` shows, and the names of the assistant."""
    found = _TOKEN.search((await owner.get(page)).text)
    assert found is not None, f"{page} has no form"
    named = {"tenant": DESK[0], "assistant": DESK[1], "token": found[1]}
    return await owner.post(path, data={**named, **fields})
