"""A server in a process that may open few files, and takes them all when it is asked to."""

import asyncio
import os
import resource
import sys

import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from gateway.connections.limits import ConnectionLimits
from gateway.connections.server import listening, serving

DESCRIPTORS = 80
HUNGRY_SECONDS = 4.0


async def serve() -> None:
    """Serve until killed; `/starve` takes every descriptor for some seconds."""

    async def starve(_request: Request) -> Response:
        asyncio.get_running_loop().call_later(HUNGRY_SECONDS, release)
        while True:
            try:
                taken.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                return PlainTextResponse(str(len(taken)))

    async def alive(_request: Request) -> Response:
        return PlainTextResponse("ok")

    def release() -> None:
        while taken:
            os.close(taken.pop())

    taken: list[int] = []
    app = Starlette(routes=[Route("/starve", starve), Route("/", alive)])
    listener = listening("127.0.0.1", 0)
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    async with serving(app, listener, asyncio.Event(), limits=ConnectionLimits()):
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(serve())
