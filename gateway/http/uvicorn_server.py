"""Serves an application on a socket until `stopping` is set, within the limits of connections."""

import asyncio
import contextlib
import math
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from gateway.connections.accepting import accept_errors_logged_rarely
from gateway.connections.limits import ConnectionLimits
from gateway.connections.protocol import BoundedConnection, new_buffer
from gateway.connections.registry import ConnectionRegistry
from gateway.connections.responses import BoundedResponses
from gateway.errors import GatewayError

GRACE_SECONDS = 5
"""How long running requests may take to end when the process stops."""
BACKLOG = 1024


class PortTakenError(GatewayError):
    """The address cannot be used for listening."""


class _UvicornServer(uvicorn.Server):
    """Leaves signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket; raises `PortTakenError`.

    Its connections send small pieces at once (TCP_NODELAY), which asyncio sets only for a socket
    that names its protocol. Headers and body are two pieces, and the second would wait 40 ms for
    the client's delayed acknowledgement of the first.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise PortTakenError(
            f"expected a free port to listen on, found {host}:{port}: {error.strerror}"
        ) from error
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


@asynccontextmanager
async def serving(
    app: ASGIApp,
    listener: socket.socket,
    stopping: asyncio.Event,
    *,
    trusted_proxies: Sequence[str] = (),
    limits: ConnectionLimits | None = None,
) -> AsyncIterator[ConnectionRegistry]:
    """Serve inside the context; at its end `stopping` is set, and running requests may end.

    Only `trusted_proxies` (addresses or networks) are trusted to name their callers: the last
    address in `X-Forwarded-For` that is no proxy's own. They have no limit per address.
    """
    limits = ConnectionLimits() if limits is None else limits
    registry = ConnectionRegistry(limits, trusted_proxies=trusted_proxies)
    protocol = partial(BoundedConnection, registry=registry, buffer=new_buffer())
    config = uvicorn.Config(
        BoundedResponses(app),
        http=cast("type[asyncio.Protocol]", protocol),
        ws="none",
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=math.ceil(limits.idle_seconds),
        log_level="error",  # not each attempt to speak another protocol
    )
    server = _UvicornServer(config)
    with accept_errors_logged_rarely():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve(sockets=[listener]))
            try:
                yield registry
            finally:
                stopping.set()
                server.should_exit = True
