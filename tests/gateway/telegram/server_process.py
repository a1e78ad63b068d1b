"""A Telegram channel in a separate process, which can be killed."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from broker.transport.connect import connect
from tests.support.chat_harness import WITH_DRAFTS
from tests.support.fake_telegram import BotApi
from tests.support.telegram_harness import telegram_desk
from tests.support.worker_harness import WorkerHarness

ROOT = Path(__file__).parent.parent.parent.parent
LEASE_SECONDS = 1.0


@asynccontextmanager
async def serve_telegram(
    redis_url: str, api_url: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Run a channel while inside; return its process and the address of its webhook."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, redis_url, api_url,
        cwd=ROOT, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield process, (await process.stdout.readline()).decode().strip()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def serve(redis_url: str, api_url: str) -> None:
    """Stand open until killed."""
    harness = WorkerHarness(lambda: connect(redis_url), played=False)
    async with telegram_desk(
        harness, BotApi(api_url), lease_seconds=LEASE_SECONDS, policy=WITH_DRAFTS
    ) as desk:
        sys.stdout.write(f"{desk.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(serve(*sys.argv[1:]))
