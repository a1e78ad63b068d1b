"""Serves the HTTP door on a socket until told to stop."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp

from gateway.errors import GatewayError

GRACE_SECONDS = 5
"""How long answers under way may take to end when the process stops."""
BACKLOG = 1024


class PortTakenError(GatewayError):
    """Nothing can listen there."""


class _Server(uvicorn.Server):
    """Leaves signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket; raises `PortTakenError`."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise PortTakenError(
            f"expected a free port to listen on, found {host}:{port}: {error.strerror}"
        ) from error


@asynccontextmanager
async def serving(
    app: ASGIApp,
    listener: socket.socket,
    stopping: asyncio.Event,
    *,
    trusted_proxies: Sequence[str] = (),
) -> AsyncIterator[None]:
    """Serve while inside; on the way out `stopping` is set, and answers under way may end.

    What `trusted_proxies` (addresses or networks) say of who calls them is believed, and nobody
    else's word: the last address in `X-Forwarded-For` that is not a proxy's own.
    """
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        timeout_graceful_shutdown=GRACE_SECONDS,
        # What came before the connection broke is never answered again: requests are small.
        h11_max_incomplete_event_size=64 * 1024,
    )
    server = _Server(config)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve(sockets=[listener]))
        try:
            yield
        finally:
            stopping.set()
            server.should_exit = True
