"""Connects to Redis, and maps all errors of an unreachable server to one error class.

At startup, `check_server` checks the version, eviction policy, and number of shards. An outage is
logged when it starts, every few seconds while it lasts, and when it ends.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit
from weakref import WeakValueDictionary

import structlog
from redis import asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.driver_info import DriverInfo
from redis.exceptions import (
    AskError,
    BusyLoadingError,
    ClusterDownError,
    NoPermissionError,
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
from broker.keys import SHARDS
from broker.transport.cluster import Address, ClusterClient
from broker.transport.connection import AutoPipeliningRedis, ServerLink, use_bounded_connections

if TYPE_CHECKING:
    from redis.asyncio import Redis

CONNECTIONS = 512
POOL_SECONDS = 10.0
"""How long a call waits for a free connection from the pool."""
LONGEST_BLOCK_SECONDS = 8.0
"""The longest blocking read. It ends before its connection counts as dead."""

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
"""Temporary errors, such as those for a slot that moves during a command (MOVED, ASK)."""

UNABLE = (
    "OOM command", "MISCONF", "READONLY", "LOADING", "MASTERDOWN", "NOREPLICAS",
    "instance state changed",
)  # fmt: skip
"""Errors of a server that currently cannot write. Before Redis 7.0, a script wraps them in its own
error.
"""

DEAD_MS = 2_000
"""How long the server may leave sent data unacknowledged."""

_PROBES = {"TCP_KEEPIDLE": 1, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 2, "TCP_USER_TIMEOUT": DEAD_MS}
"""Make the operating system, if it supports these options, probe an idle connection every
second.
"""

_OPTIONS: dict[str, Any] = {
    # No retries: only the caller knows whether a command is safe to repeat.
    "socket_keepalive": True,
    "socket_keepalive_options": {
        getattr(socket, name): value for name, value in _PROBES.items() if hasattr(socket, name)
    },
    "socket_connect_timeout": 1.0,
    "protocol": 2,
}

CLUSTER = "+cluster"
"""The suffix of the URL scheme for a cluster: `redis+cluster://host:port,host:port`."""
OLDEST = (6, 2)
log = structlog.get_logger("broker")

PAUSE_SECONDS = 5.0
"""Minimum time between two warnings."""


class ServerLinks(WeakValueDictionary[str, ServerLink]):
    """The shared state of the connections to each server, by server address."""

    def __reduce__(self) -> tuple[type["ServerLinks"], tuple[()]]:
        """Pickle without content, because another process has other connections."""
        return ServerLinks, ()


class Outage:
    """Counts and logs failures of a process or thread; thread-safe.

    `troubles` is the number of operations that failed since the process started.
    """

    def __init__(
        self, event: str = "broker_unreachable", *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._event = event
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._is_logged = False
        self._quiet_until = float("-inf")
        self.troubles = 0

    def record_failure(self, operation: str, error: Exception, **fields: str | int) -> None:
        """Record a failed operation, identified by a slug, and log it at most once every
        `PAUSE_SECONDS`.
        """
        with self._lock:
            self._failures += 1
            self.troubles += 1
            now, failures = self._clock(), self._failures
            if now < self._quiet_until:
                return
            self._quiet_until = now + PAUSE_SECONDS
            self._is_logged = True
        log.warning(self._event, operation=operation, **fields, error=str(error), failures=failures)

    def record_success(self) -> None:
        """Record that Redis responds; log this once after failures that were logged."""
        if not self._failures:
            return
        with self._lock:
            failures, self._failures = self._failures, 0
            was_logged, self._is_logged = self._is_logged, False
        if was_logged:
            log.info("broker_reconnected", failures=failures)


def connect(url: str, lines: ServerLinks | None = None) -> "aioredis.Redis":
    """Return a client for one server, or for a cluster.

    Clients of one process should share `lines`, so that all of them learn of an outage that one of
    them detects.
    """
    known = ServerLinks() if lines is None else lines
    parts = urlsplit(url)
    if not parts.scheme.endswith(CLUSTER):
        return _connect(url, known)
    return ClusterClient(_seeds(parts), lambda address: _connect(_node_url(parts, address), known))


@contextmanager
def reachable() -> Iterator[None]:
    """Raise `BrokerUnavailableError` for every error that means that Redis is unreachable."""
    try:
        yield
    except (OutOfMemoryError, ReadOnlyError) as error:
        raise BrokerUnavailableError(f"Redis cannot write: {error}") from error
    except UNREACHABLE as error:
        raise BrokerUnavailableError(f"Redis does not respond: {error}") from error
    except ResponseError as error:
        if not any(word in str(error) for word in UNABLE):
            raise
        raise BrokerUnavailableError(f"Redis cannot write: {error}") from error


async def check_server(client: "Redis", shards: int) -> bool:
    """Return whether the server is a cluster; raises `UnsuitableServerError`."""
    with reachable():
        nodes = await client.nodes() if isinstance(client, ClusterClient) else [client]
        infos = [await _info(node) for node in nodes]
        for info in infos:
            check_server_info(info)
        clustered = any(info.get("cluster_enabled") for info in infos)
        if clustered and not isinstance(client, ClusterClient):
            await _check_alone(client)
        stored_shards = await client.get(SHARDS)
        if stored_shards is None:
            stored_shards = await _set_shards(client, shards)
    if stored_shards is not None and int(stored_shards) != shards:
        raise UnsuitableServerError(
            f"SHARDS is {shards}, but this Redis was set up with {int(stored_shards)} shards; "
            "the number is fixed at the first start"
        )
    return clustered


def check_server_info(info: dict[str, Any]) -> None:
    """Raise `UnsuitableServerError` when the server is too old or evicts keys."""
    version = str(info.get("redis_version", ""))
    numbers = version_numbers(version)
    if numbers and numbers < OLDEST:
        raise UnsuitableServerError(f"expected Redis 6.2 or newer, found {version}")
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise UnsuitableServerError(
            "expected maxmemory-policy noeviction, because other policies may delete "
            f"envelopes, found {policy}"
        )


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version, or () if the text contains no numbers."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


@cache
def _driver() -> DriverInfo:
    """Return the client information; cached because redis-py reads it from a file."""
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
    use_bounded_connections(pool, lines.setdefault(url, ServerLink()))
    return AutoPipeliningRedis.from_pool(pool)


def _seeds(parts: SplitResult) -> list[Address]:
    """Return the nodes listed in the URL of a cluster."""
    hosts = parts.netloc.rpartition("@")[2].split(",")
    try:
        named = [urlsplit(f"//{host}") for host in hosts]
        return [
            (str(split_result.hostname), split_result.port or 6379)
            for split_result in named
            if split_result.hostname
        ]
    except ValueError as error:
        raise UnsuitableServerError(
            "the address contains an invalid node; expected "
            f"redis+cluster://host:port,host:port: {error}"
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


async def _set_shards(client: "Redis", shards: int) -> bytes | None:
    """Store the number of shards on first start; return the stored number."""
    try:
        await client.set(SHARDS, shards, nx=True)
    except NoPermissionError as error:
        raise UnsuitableServerError(
            "this Redis is not set up yet, and the user of REDIS_URL has no permission to set "
            "it up; start a worker first, then restart this process"
        ) from error
    stored_shards = await client.get(SHARDS)
    return stored_shards.encode() if isinstance(stored_shards, str) else stored_shards


async def _check_alone(client: Any) -> None:
    """Reject a single node of a cluster, because it would redirect most conversations."""
    rows = await client.execute_command("CLUSTER", "SLOTS")
    masters = {tuple(row[2][:2]) for row in rows}
    if len(masters) > 1:
        raise UnsuitableServerError(
            f"redis:// leads to a cluster of {len(masters)} masters; use "
            "redis+cluster://host:port,... as the address of a cluster"
        )


async def _info(client: "Redis") -> dict[str, Any]:
    try:
        return await client.info()
    except ResponseError:
        return {}  # fakeredis has no INFO, and evicts nothing
