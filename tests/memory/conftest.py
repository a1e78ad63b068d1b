from collections.abc import AsyncIterator
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis

from broker.transport.connect import connect


@pytest.fixture(params=["played", pytest.param("real", marks=pytest.mark.redis)])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    """An empty Redis: played in the process, and a real one."""
    if request.param == "played":
        played = FakeAsyncRedis(protocol=2)
        yield played
        await played.aclose()
        return
    real = connect(request.getfixturevalue("redis_url"))
    await real.flushall()
    yield real
    await real.aclose()
