"""An empty Redis for one test: played in the process, or a real one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis, FakeServer

from broker.embedded_redis import Endpoint
from broker.transport.connect import connect

EMPTY_REDIS = ("played", pytest.param("real", marks=pytest.mark.redis))
"""The parameters of a fixture whose tests are the contract of what stores in Redis."""
ON_REAL = pytest.mark.parametrize("client", EMPTY_REDIS[1:], indirect=True)
"""Marks a test of what a played Redis lacks (a file), or is slow with (hundreds of messages)."""
PLAYED_REDIS = ("played", pytest.param("real", marks=(pytest.mark.redis, pytest.mark.long)))
"""The parameters of a fixture whose tests stand above that contract: `test-all` repeats them."""


def play_redis() -> Endpoint:
    """Return an empty Redis that is played in the process."""
    return Endpoint(url="", durable=False, played=FakeServer())


@asynccontextmanager
async def open_empty_redis(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    """Yield a client of the Redis that the parameter of a fixture names."""
    if request.param == "played":
        client: Any = FakeAsyncRedis(protocol=2)
    else:
        client = connect(request.getfixturevalue("redis_url"))
        await client.flushall()
    yield client
    await client.aclose()
