"""Connects to Redis, and turns its silence into one error."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redis import asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
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

from broker.errors import BrokerUnavailableError
from broker.packing import pack_fast

CONNECTIONS = 512
TIMEOUT_SECONDS = 10.0
LONGEST_BLOCK_SECONDS = 8.0
"""A blocking read ends before its connection is taken for dead."""

UNREACHABLE = (
    RedisConnectionError,
    RedisTimeoutError,
    BusyLoadingError,
    ReadOnlyError,
    ClusterDownError,
    TryAgainError,
    OutOfMemoryError,
    OSError,
)

UNABLE = ("OOM command", "MISCONF", "READONLY", "LOADING", "MASTERDOWN", "NOREPLICAS")
"""What a server that cannot write just now says; before 7.0 inside the error of a script."""

_OPTIONS: dict[str, Any] = {
    # A command whose answer was lost is never sent again blindly: the caller knows what is safe.
    "socket_keepalive": True,
    "socket_timeout": TIMEOUT_SECONDS,
    "socket_connect_timeout": 2.0,
    "protocol": 2,
}


def connect(url: str) -> "aioredis.Redis":
    """Return a client for the broker's port."""
    pool = aioredis.BlockingConnectionPool.from_url(
        url,
        max_connections=CONNECTIONS,
        timeout=TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 0),
        **_options(url),
    )
    pack_fast(pool)
    return aioredis.Redis.from_pool(pool)


@contextmanager
def reachable() -> Iterator[None]:
    """Turn every way in which Redis can be away into `BrokerUnavailableError`."""
    try:
        yield
    except UNREACHABLE as error:
        raise BrokerUnavailableError(f"Redis does not answer: {error}") from error
    except ResponseError as error:
        if not any(word in str(error) for word in UNABLE):
            raise
        raise BrokerUnavailableError(f"Redis cannot write: {error}") from error


def _options(url: str) -> dict[str, Any]:
    if not url.startswith("unix:"):
        return _OPTIONS
    options = {name: value for name, value in _OPTIONS.items() if name != "socket_keepalive"}
    options.pop("socket_connect_timeout")
    return options
