"""The shared parts of the commands of chat channels: listening, probes and secrets."""

import argparse
import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog
from pydantic import SecretStr

from config.settings import Settings
from deploy.errors import CommandError
from gateway.chat.channel_health import ChannelHealth

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from starlette.types import ASGIApp

    from deploy.assembly.runtime import Runtime
    from gateway.connections.limits import ConnectionLimits

log = structlog.get_logger("gateway")

LOCAL = "127.0.0.1"
STUCK_DEADLINES = 2.0
"""The event loop counts as stuck if it is blocked for this multiple of a question's time limit."""


def add_place(parser: argparse.ArgumentParser, port: int) -> None:
    """Add the arguments for the listening address, and for whether to run workers as well."""
    parser.add_argument(
        "--port", type=int, default=port, help=f"port for webhook events (default {port}; 0: any)"
    )
    parser.add_argument("--host", default=LOCAL, help=f"address to listen on (default {LOCAL})")
    parser.add_argument(
        "--gateway-only",
        action="store_true",
        help="do not run agents in this process; `refdesk up` or `refdesk worker` must use the "
        "same Redis",
    )


def require_secret(secret: SecretStr | None, name: str, what: str) -> str:
    """Return a secret; raises `CommandError` if it is not set."""
    value = "" if secret is None else secret.get_secret_value()
    if not value:
        raise CommandError(f"{name} is not set; it must contain {what}")
    return value


def limits_of(settings: Settings) -> "ConnectionLimits":
    """Return the connection limits, reduced to the number of files that the process may open."""
    from gateway.connections.limits import ConnectionLimits
    from gateway.connections.server import raise_descriptor_limit

    limits = ConnectionLimits(
        connections=settings.http_connections,
        connections_per_address=settings.http_connections_per_address,
        idle_seconds=settings.http_idle_seconds,
    ).within(raise_descriptor_limit())
    if limits.connections < settings.http_connections:
        log.warning(
            "connection_limit_reduced",
            connections=limits.connections,
            configured=settings.http_connections,
        )
    return limits


@asynccontextmanager
async def serve_app(
    app: "ASGIApp",
    host: str,
    port: int,
    *,
    trusted_proxies: Sequence[str],
    limits: "ConnectionLimits",
) -> AsyncIterator[int]:
    """Serve an application inside the context; yield the port."""
    from gateway.connections.server import listening, serving

    listener = listening(host, port)
    try:
        async with serving(
            app, listener, asyncio.Event(), trusted_proxies=trusted_proxies, limits=limits
        ):
            yield listener.getsockname()[1]
    finally:
        listener.close()


@asynccontextmanager
async def serve_probes(runtime: "Runtime", registry: "CollectorRegistry") -> AsyncIterator[None]:
    """Inside the context, serve probes and metrics on `HEALTH_PORT`, or nothing if the port is
    0.
    """
    if not runtime.settings.health_port:
        yield
        return
    from worker.health import serving

    watch = ChannelHealth(
        runtime.broker.replies, STUCK_DEADLINES * runtime.settings.deadline_seconds
    )
    async with runtime.jobs.running("redis_probe", watch.run):
        port = runtime.settings.health_port
        with serving(port, registry, dead=watch.dead, unready=watch.unready):
            yield
