from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis, FakeServer

from broker.transport.connect import connect
from tests.support.empty_redis import PLAYED_REDIS
from tests.support.worker_harness import WorkerHarness


@pytest.fixture(params=PLAYED_REDIS)
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[WorkerHarness]:
    """A desk on an empty Redis: played in the process, and a real one."""
    made = WorkerHarness(_clients(request), played=request.param == "played")
    await made.client.flushall()
    yield made
    await made.close()


def _clients(request: pytest.FixtureRequest) -> Callable[[], Any]:
    if request.param == "played":
        server = FakeServer()
        return lambda: FakeAsyncRedis(server=server, protocol=2)
    url = request.getfixturevalue("redis_url")
    return lambda: connect(url)
