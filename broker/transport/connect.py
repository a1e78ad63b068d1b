"""Connects to Redis, and reports every way in which it is unreachable as one error."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import SplitResult, urlsplit
from weakref import WeakValueDictionary

from redis import asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.driver_info import DriverInfo
from redis.exceptions import (
    AskError,
    BusyLoadingError,
    ClusterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
)
from redis.exceptions import (
    TimeoutError as RedisTimeoutError,
)

from broker.errors import BrokerUnavailableError, UnsuitableServerError
from broker.transport.auto_pipelining import AutoPipeliningRedis
from broker.transport.cluster import Address, ClusterClient
from broker.transport.connection import ServerLink, use_ours

CONNECTIONS = 512
POOL_SECONDS = 10.0
"""How long a call waits for a free connection of the pool."""
LONGEST_BLOCK_SECONDS = 8.0
"""A blocking read ends before its connection would count as dead."""

UNREACHABLE = (
    RedisConnectionError,
    RedisTimeoutError,
    BusyLoadingError,
    ReadOnlyError,
    ClusterDownError,
    TryAgainError,
    AskError,
    OutOfMemoryError,
    OSError,
)
"""Errors that pass with time, such as a slot that moves during a command (MOVED, ASK)."""

UNABLE = (
    "OOM command", "MISCONF", "READONLY", "LOADING", "MASTERDOWN", "NOREPLICAS",
    "instance state changed",
)  # fmt: skip
"""Errors of a server that cannot write now; before 7.0 they are part of a script's error."""

DEAD_MS = 2_000
"""How long the other end may leave sent data unacknowledged."""

_PROBES = {"TCP_KEEPIDLE": 1, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 2, "TCP_USER_TIMEOUT": DEAD_MS}
"""The system probes a silent connection every second, if it has these options."""

_OPTIONS: dict[str, Any] = {
    # Without retries: only the caller knows whether a command whose answer was lost is idempotent.
    "socket_keepalive": True,
    "socket_keepalive_options": {
        getattr(socket, name): value for name, value in _PROBES.items() if hasattr(socket, name)
    },
    "socket_connect_timeout": 1.0,
    "protocol": 2,
}


CLUSTER = "+cluster"
"""The end of the scheme of a cluster's address: `redis+cluster://host:port,host:port`."""


class ServerLinks(WeakValueDictionary[str, ServerLink]):
    """The state of the connections to each server, by its address, while a connection exists."""

    def __reduce__(self) -> tuple[type["ServerLinks"], tuple[()]]:
        """Pickle as empty: another process has other connections."""
        return ServerLinks, ()


def connect(url: str, lines: ServerLinks | None = None) -> "aioredis.Redis":
    """Return a client of one server, or of a cluster.

    Clients of one process should share `lines`: if one of them notices an outage, all know it.
    """
    known = ServerLinks() if lines is None else lines
    parts = urlsplit(url)
    if not parts.scheme.endswith(CLUSTER):
        return _connect(url, known)
    return ClusterClient(_seeds(parts), lambda address: _connect(_node_url(parts, address), known))


@cache
def _driver() -> DriverInfo:
    """Return the name of this client for the server; redis-py reads it from a file otherwise."""
    return DriverInfo()


def _connect(url: str, lines: ServerLinks) -> "aioredis.Redis":
    pool = aioredis.BlockingConnectionPool.from_url(
        url,
        max_connections=CONNECTIONS,
        timeout=POOL_SECONDS,
        retry=Retry(NoBackoff(), 0),
        driver_info=_driver(),
        **_options(url),
    )
    use_ours(pool, lines.setdefault(url, ServerLink()))
    return AutoPipeliningRedis.from_pool(pool)


@contextmanager
def reachable() -> Iterator[None]:
    """Raise `BrokerUnavailableError` for every error that means that Redis is unreachable."""
    try:
        yield
    except UNREACHABLE as error:
        raise BrokerUnavailableError(f"Redis does not answer: {error}") from error
    except ResponseError as error:
        if not any(word in str(error) for word in UNABLE):
            raise
        raise BrokerUnavailableError(f"Redis cannot write: {error}") from error


def _seeds(parts: SplitResult) -> list[Address]:
    """Return the nodes in an address; any of them knows all others."""
    hosts = parts.netloc.rpartition("@")[2].split(",")
    try:
        named = [urlsplit(f"//{host}") for host in hosts]
        return [(str(one.hostname), one.port or 6379) for one in named if one.hostname]
    except ValueError as error:
        raise UnsuitableServerError(
            f"expected redis+cluster://host:port,host:port, found an invalid node: {error}"
        ) from error


def _node_url(parts: SplitResult, address: Address) -> str:
    login = "".join(parts.netloc.rpartition("@")[:2])
    host, port = address
    named = f"[{host}]" if ":" in host else host
    scheme = parts.scheme.removesuffix(CLUSTER)
    return parts._replace(scheme=scheme, netloc=f"{login}{named}:{port}", path="").geturl()


def _options(url: str) -> dict[str, Any]:
    if not url.startswith("unix:"):
        return _OPTIONS
    return {name: value for name, value in _OPTIONS.items() if not name.startswith("socket_")}
