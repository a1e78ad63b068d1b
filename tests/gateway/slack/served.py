"""A Slack door in a process of its own, which can be killed."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

import structlog

from broker.connecting import connect
from gateway.slack.app import SlackEvents, made_app
from gateway.slack.events import Me
from gateway.slack.serving import made_client, socket_mode
from tests.gateway.slack.api import APP_TOKEN, BOT, TEAM, TOKEN, SlackApi
from tests.gateway.slack.rig import calls_of, slack_desk
from tests.worker.cast import House

ROOT = Path(__file__).parent.parent.parent.parent
LEASE_SECONDS = 1.0
Hearing = Literal["http", "socket"]


@asynccontextmanager
async def served(
    redis_url: str, api_url: str, hearing: Hearing = "http"
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Have a door while inside; return its process and the address of its events."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, redis_url, api_url, hearing,
        cwd=ROOT, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield process, (await process.stdout.readline()).decode().strip()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def serve(redis_url: str, api_url: str, hearing: str) -> None:
    """Stand open until killed."""
    house = House(lambda: connect(redis_url), played=False)
    async with AsyncExitStack() as stack:
        desk = await stack.enter_async_context(
            slack_desk(house, SlackApi(api_url), lease_seconds=LEASE_SECONDS)
        )
        if hearing == "socket":
            client = made_client(TOKEN, url=api_url)
            events = SlackEvents(calls_of(house, desk.api), Me(TEAM, BOT), desk.door)
            app = made_app(client, events, signing_secret="")
            await stack.enter_async_context(socket_mode(app, APP_TOKEN))
        sys.stdout.write(f"{desk.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(serve(*sys.argv[1:]))
