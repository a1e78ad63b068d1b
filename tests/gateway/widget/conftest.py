from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest_asyncio
from fakeredis import FakeAsyncRedis, FakeServer
from fastapi import Request
from playwright.async_api import Browser

from gateway.widget.routes import PageContents, widget_router
from tests.gateway.widget.sample_documents import DOCUMENTS
from tests.support.browser import BrowserVisitor, chromium, open_context
from tests.support.http_server import FakeDocuments, HttpServerFixture, open_http_server
from tests.support.worker_harness import WorkerHarness

SHELF = FakeDocuments(*(("acme", "docs", chunk, document) for chunk, document in DOCUMENTS.items()))
Come = Callable[..., Awaitable[BrowserVisitor]]


async def show_example(_request: Request) -> PageContents:
    return PageContents(questions=("How do I add a rule?",))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Chromium, once for all tests: people in it are strangers to each other."""
    async with chromium() as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def http_server() -> AsyncIterator[HttpServerFixture]:
    """An open server with the widget, before a desk that works, on a fake Redis."""
    server = FakeServer()
    harness = WorkerHarness(lambda: FakeAsyncRedis(server=server, protocol=2), played=True)
    opening = open_http_server(harness, documents=SHELF, others=(widget_router(show_example),))
    async with harness.open(), opening as opened:
        yield opened
    await harness.close()


@pytest_asyncio.fixture(loop_scope="session")
async def come(browser: Browser, http_server: HttpServerFixture) -> AsyncIterator[Come]:
    """Let people come; at the end no page may have had an error."""
    visitors = []

    async def comes(url: str = "", **options: Any) -> BrowserVisitor:
        context = await open_context(browser, **options)
        visitors.append(BrowserVisitor(context, url or http_server.url))
        return visitors[-1]

    yield comes
    for visitor in visitors:
        await visitor.context.close()
    assert [error for visitor in visitors for error in visitor.errors] == []
