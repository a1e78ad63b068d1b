from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fakeredis import FakeAsyncRedis, FakeServer

from broker.connecting import connect
from tests.gateway.http.rig import DOCUMENT, Booth, Shelf, open_booth
from tests.worker.cast import House

SHELF = Shelf(("acme", "docs", "rules#1", DOCUMENT))


@asynccontextmanager
async def played() -> AsyncIterator[House]:
    server = FakeServer()
    made = House(lambda: FakeAsyncRedis(server=server, protocol=2), played=True)
    yield made
    await made.close()


@pytest.fixture
async def house() -> AsyncIterator[House]:
    """A desk on an empty Redis, played in the process."""
    async with played() as made:
        yield made


@pytest.fixture(params=["played", pytest.param("real", marks=pytest.mark.redis)])
async def any_house(request: pytest.FixtureRequest) -> AsyncIterator[House]:
    """A desk on an empty Redis, played and a real one: for what several processes share."""
    if request.param == "played":
        async with played() as made:
            yield made
        return
    url = request.getfixturevalue("redis_url")
    made = House(lambda: connect(url), played=False)
    await made.client.flushall()
    yield made
    await made.close()


@pytest.fixture
async def booth(house: House) -> AsyncIterator[Booth]:
    """An open door before a desk that works."""
    async with house.open(), open_booth(house, documents=SHELF) as opened:
        yield opened
