"""A server with the widget in a separate process, to be killed: arguments `URL PORT`."""

import asyncio
import sys

import structlog

from broker.transport.connect import connect
from gateway.widget.routes import widget_router
from tests.support.http_server import open_http_server
from tests.support.worker_harness import WorkerHarness


async def serve(redis_url: str, port: int) -> None:
    """Serve until killed; the answers are worked out elsewhere."""
    harness = WorkerHarness(lambda: connect(redis_url), played=False)
    async with open_http_server(harness, port=port, others=(widget_router(),)) as http_server:
        sys.stdout.write(f"{http_server.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
