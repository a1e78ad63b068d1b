"""A Slack channel in a separate process, which can be killed."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

import structlog

from broker.transport.connect import connect
from gateway.slack.app import SlackEvents, make_app
from gateway.slack.events import SlackIdentity
from gateway.slack.transport import make_client, socket_mode
from tests.support.chat_harness import WITH_DRAFTS
from tests.support.fake_slack import APP_TOKEN, BOT, TEAM, TOKEN, SlackApi
from tests.support.slack_harness import calls_of, slack_desk
from tests.support.worker_harness import WorkerHarness

ROOT = Path(__file__).parent.parent.parent.parent
LEASE_SECONDS = 1.0
ConnectionMode = Literal["http", "socket"]


@asynccontextmanager
async def serve_slack(
    redis_url: str, api_url: str, connection: ConnectionMode = "http"
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Run a channel while inside; return its process and the address of its events."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, redis_url, api_url, connection,
        cwd=ROOT, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield process, (await process.stdout.readline()).decode().strip()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def serve(redis_url: str, api_url: str, connection: str) -> None:
    """Stand open until killed."""
    harness = WorkerHarness(lambda: connect(redis_url), played=False)
    async with AsyncExitStack() as stack:
        desk = await stack.enter_async_context(
            slack_desk(harness, SlackApi(api_url), lease_seconds=LEASE_SECONDS, policy=WITH_DRAFTS)
        )
        if connection == "socket":
            client = make_client(TOKEN, url=api_url)
            events = SlackEvents(
                calls_of(harness, desk.api), SlackIdentity(TEAM, BOT), desk.connector
            )
            app = make_app(client, events, signing_secret="")
            await stack.enter_async_context(socket_mode(app, APP_TOKEN))
        sys.stdout.write(f"{desk.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(serve(*sys.argv[1:]))
