from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest_asyncio
from fakeredis import FakeAsyncRedis, FakeServer
from playwright.async_api import Browser

from gateway.widget.routes import widget_router
from tests.gateway.http.rig import Booth, Shelf, open_booth
from tests.gateway.widget.browsing import Visitor, chromium
from tests.gateway.widget.documents import DOCUMENTS
from tests.worker.cast import House

SHELF = Shelf(*(("acme", "docs", chunk, document) for chunk, document in DOCUMENTS.items()))
Come = Callable[..., Awaitable[Visitor]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Chromium, once for all tests: people in it are strangers to each other."""
    async with chromium() as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def booth() -> AsyncIterator[Booth]:
    """An open door with the widget, before a desk that works, on a Redis that is played."""
    server = FakeServer()
    house = House(lambda: FakeAsyncRedis(server=server, protocol=2), played=True)
    door = open_booth(house, documents=SHELF, others=(widget_router(),))
    async with house.open(), door as opened:
        yield opened
    await house.close()


@pytest_asyncio.fixture(loop_scope="session")
async def come(browser: Browser, booth: Booth) -> AsyncIterator[Come]:
    """Let people come; at the end no page may have had an error."""
    visitors = []

    async def comes(door: str = "", **options: Any) -> Visitor:
        context = await browser.new_context(**options)
        visitors.append(Visitor(context, door or booth.url))
        return visitors[-1]

    yield comes
    for visitor in visitors:
        await visitor.context.close()
    assert [error for visitor in visitors for error in visitor.errors] == []
