from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis, FakeServer

from broker.connecting import connect
from tests.gateway.http.rig import Booth, open_booth
from tests.worker.cast import House


@pytest.fixture(params=["played", pytest.param("real", marks=pytest.mark.redis)])
async def house(request: pytest.FixtureRequest) -> AsyncIterator[House]:
    """A desk on an empty Redis: played in the process, and a real one."""
    made = House(_clients(request), played=request.param == "played")
    await made.client.flushall()
    yield made
    await made.close()


@pytest.fixture
async def booth(house: House) -> AsyncIterator[Booth]:
    """An open door before a desk that works."""
    async with house.open(), open_booth(house) as opened:
        yield opened


def _clients(request: pytest.FixtureRequest) -> Callable[[], Any]:
    if request.param == "played":
        server = FakeServer()
        return lambda: FakeAsyncRedis(server=server, protocol=2)
    url = request.getfixturevalue("redis_url")
    return lambda: connect(url)
