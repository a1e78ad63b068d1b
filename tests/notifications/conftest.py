from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from tests.support.broker_harness import BrokerHarness, play_broker


@pytest.fixture
async def harness() -> AsyncIterator[BrokerHarness]:
    async with play_broker() as made:
        yield made


@dataclass
class Receiver:
    """A server on a real socket that notes what it is sent, and answers by its script."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    received: list[tuple[dict[str, str], str]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        self.received.append((dict(request.headers), await request.text()))
        status = self.statuses.pop(0) if self.statuses else 200
        headers = {"Location": "http://169.254.169.254/"} if status == 302 else {}
        return web.Response(status=status, headers=headers)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    app = web.Application()
    app.router.add_post("/hook", made.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server: Any = site._server  # noqa: SLF001 - where it listens, which aiohttp tells in no other way
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    yield made
    await runner.cleanup()
